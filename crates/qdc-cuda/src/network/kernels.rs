//! Kernels with their grids.

use qdc_nn::Width;

use super::{DeviceNetwork, Place};
use crate::grid::{THREADS, inner_of_a_part, rows_of_a_part, spread};
use crate::launch::{Argument, Launch};
use crate::state::{Add, Attention, Back, Finish, Gather, Product};

impl DeviceNetwork<'_> {
    pub(crate) fn launch<A: Argument>(
        &self,
        name: &str,
        grid: (u32, u32, u32),
        block: (u32, u32, u32),
        shared: u32,
        argument: A,
    ) -> Launch {
        Launch::new(name, self.device.kernel(name), grid, block, shared, argument)
    }

    /// A kernel with a thread for each of `length` numbers of every run.
    pub(crate) fn flat<A: Argument>(&self, name: &str, length: u32, argument: A) -> Launch {
        self.launch(name, (length.div_ceil(THREADS), 1, self.runs), (THREADS, 1, 1), 0, argument)
    }

    pub(super) fn gather(&self, gather: Gather, width: Width, entries: u64) -> Launch {
        let chunks = width.occupied() as u32 / 4;
        let gather = Gather { runs: self.states, stride: width.stride() as u32, chunks, ..gather };
        let (grid, block) = spread(chunks, gather.rows, entries, self.runs);
        self.launch("gather", grid, block, block.0 * block.1 * block.2 * 16, gather)
    }

    /// An attention kernel over the entries of rows; `bytes` of shared memory for each thread.
    pub(super) fn spread(&self, name: &str, chunks: u32, attention: Attention, bytes: u32) -> Launch {
        let (grid, block) = spread(chunks, attention.nodes, u64::from(attention.entries), self.runs);
        self.launch(name, grid, block, block.0 * block.1 * block.2 * bytes, attention)
    }

    pub(super) fn back_rows(&self, place: Place) -> Back {
        let rows = self.program.nodes as u32;
        Back { rows, stride: place.stride, per_block: rows_of_a_part(rows), ..Back::default() }
    }

    pub(super) fn back(&self, back: Back) -> Launch {
        let grid = (back.rows.div_ceil(back.per_block), back.stride.div_ceil(32), self.runs);
        self.launch("back", grid, (32, 8, 1), THREADS * 4, back)
    }

    pub(super) fn product(&self, name: &str, product: Product, parts: u32) -> Launch {
        let per_part = if parts == 1 { product.inner } else { inner_of_a_part(product.inner) };
        let product = Product { runs: self.states, parts, per_part, ..product };
        let narrow = product.columns <= 16;
        let (tall, wide) = match (name == "product_a_transposed", narrow) {
            (true, true) => (64, 16),
            (true, false) => (64, 64),
            (false, true) => (128, 16),
            (false, false) => (128, 64),
        };
        let name = format!("{name}_{}", if narrow { "narrow" } else { "wide" });
        let grid = (product.rows.div_ceil(tall), product.columns.div_ceil(wide), self.runs * parts);
        self.launch(&name, grid, (THREADS, 1, 1), 0, product)
    }

    /// What follows a dense product, in place.
    pub(super) fn finish(&self, place: Place, finish: Finish, launches: &mut Vec<Launch>) {
        if finish.is_nothing() {
            return;
        }
        let (y, y_run, length) = (place.output, place.run, place.run as u32);
        let add = Add { runs: self.states, y, y_run, finish, length, stride: place.stride, ..Add::default() };
        launches.push(self.flat("add", length, add));
    }
}
