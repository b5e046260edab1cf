//! What networks of every kind have on the device: runs, weights, the parts of their gradient, and layers as
//! kernels with their grids.

use qdc_nn::Width;
use qdc_nn::program::{ActivateStage, Dropout};

use crate::grid::{Sites, THREADS, inner_of_a_part, rows_of_a_part, spread};
use crate::launch::{Argument, Launch};
use crate::matrices::{Matrices, counted};
use crate::room::Room;
use crate::state::{Add, Address, Back, Drop, Finish, Gather, Mask, Product, Run, Site, code};
use crate::{Device, Error};

/// The addresses of a layer: its output and the gradient of that, of the first run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) output: Address,
    pub(crate) gradient: Address,
    /// Numbers from run to run.
    pub(crate) run: u64,
    pub(crate) stride: u32,
}

/// The runs of a batch with their weights.
pub(crate) struct Frame<'a> {
    device: &'a Device,
    pub(crate) nodes: u32,
    pub(crate) runs: u32,
    /// The runs' states.
    pub(crate) states: Address,
    /// The weights of all runs.
    pub(crate) weights: Address,
    /// Numbers from the weights of a run to those of the next.
    pub(crate) weights_run: u64,
    /// Parts of the gradient, and how they are summed.
    pub(crate) parts: Address,
    pub(crate) parts_run: u64,
    pub(crate) sites: Vec<Site>,
}

impl<'a> Frame<'a> {
    /// Places runs of `weights` numbers each.
    pub(crate) fn new(
        device: &'a Device,
        nodes: usize,
        weights: usize,
        runs: u32,
        sites: Sites,
        room: &mut Room,
    ) -> Result<Self, Error> {
        counted("parameters", weights as u64)?;
        let (sites, parts_run) = sites.finish()?;
        let (count, weights_run) = (u64::from(runs), weights as u64);
        Ok(Self {
            device,
            nodes: counted("vertices", nodes as u64)?,
            runs,
            states: room.reserve::<Run>(count),
            weights: room.reserve::<f32>(count * weights_run),
            weights_run,
            parts: room.reserve::<f32>(count * parts_run),
            parts_run,
            sites,
        })
    }

    /// Room for a row of every vertex, and for the gradient of it.
    pub(crate) fn array(&self, width: Width, gradient: bool, room: &mut Room) -> Result<Place, Error> {
        let run = counted("numbers of a layer", u64::from(self.nodes) * width.stride() as u64)?;
        let (run, runs) = (u64::from(run), u64::from(self.runs));
        let output = room.reserve::<f32>(runs * run);
        let gradient = if gradient { room.reserve::<f32>(runs * run) } else { 0 };
        Ok(Place { output, gradient, run, stride: width.stride() as u32 })
    }

    /// The address of a parameter of the first run.
    pub(crate) fn weight(&self, at: usize) -> Address {
        self.weights + 4 * at as u64
    }

    /// The site of the parameters that begin at `begin`.
    pub(crate) fn site(&self, begin: usize) -> Site {
        *self.sites.iter().find(|site| site.begin as usize == begin).expect("every parameter has a site")
    }

    /// The address of the parts of a site's gradient, of the first run.
    pub(crate) fn parts_of(&self, site: Site) -> Address {
        self.parts + 4 * u64::from(site.offset)
    }

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

    pub(crate) fn gather(&self, gather: Gather, width: Width, entries: u64) -> Launch {
        let chunks = width.occupied() as u32 / 4;
        let gather = Gather { runs: self.states, stride: width.stride() as u32, chunks, ..gather };
        let (grid, block) = spread(chunks, gather.rows, entries, self.runs);
        self.launch("gather", grid, block, block.0 * block.1 * block.2 * 16, gather)
    }

    fn back_rows(&self, place: Place) -> Back {
        Back {
            runs: self.states,
            y: place.output,
            dy: place.gradient,
            y_run: place.run,
            parts_run: self.parts_run,
            rows: self.nodes,
            stride: place.stride,
            per_block: rows_of_a_part(self.nodes),
            ..Back::default()
        }
    }

    fn back(&self, back: Back) -> Launch {
        let grid = (back.rows.div_ceil(back.per_block), back.stride.div_ceil(32), self.runs);
        self.launch("back", grid, (32, 8, 1), THREADS * 4, back)
    }

    /// dx = dy relu'(x), in place.
    pub(crate) fn relu_back(&self, place: Place) -> Launch {
        self.back(Back { activation: Finish::relu().activation, ..self.back_rows(place) })
    }

    /// The sums of dy over rows, which are the gradient of the bias at `begin`.
    pub(crate) fn bias_back(&self, place: Place, begin: usize) -> Launch {
        self.back(Back { parts: self.parts_of(self.site(begin)), ..self.back_rows(place) })
    }

    /// The way back through bias, activation and dropout.
    pub(crate) fn activate_back(&self, place: Place, activate: &ActivateStage, launches: &mut Vec<Launch>) {
        let site = (!activate.bias.is_empty()).then(|| self.site(activate.bias.start));
        let mask = Mask::of(activate.dropout, true);
        if site.is_none() && mask.scale == 0.0 && code(activate.activation) == 0 {
            return;
        }
        launches.push(self.back(Back {
            parts: site.map_or(0, |site| self.parts_of(site)),
            mask,
            activation: code(activate.activation),
            ..self.back_rows(place)
        }));
    }

    /// A dense product; the inner sum is cut into `parts`.
    pub(crate) fn product(&self, name: &str, product: Product, parts: u32) -> Launch {
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
    pub(crate) fn finish(&self, place: Place, finish: Finish, launches: &mut Vec<Launch>) {
        if finish.is_nothing() {
            return;
        }
        let (y, y_run, length) = (place.output, place.run, place.run as u32);
        let add = Add { runs: self.states, y, y_run, finish, length, stride: place.stride, ..Add::default() };
        launches.push(self.flat("add", length, add));
    }

    /// y = drop(x) W with the matrix at `theta` of the parameters; all runs share x where `x.run` is 0.
    pub(crate) fn linear(&self, x: Place, mask: Mask, theta: usize, y: Place) -> Launch {
        let product = Product {
            a: x.output,
            a_run: x.run,
            b: self.weight(theta),
            b_run: self.weights_run,
            c: y.output,
            c_run: y.run,
            mask,
            rows: self.nodes,
            columns: y.stride,
            inner: self.site(theta).length / y.stride,
            a_stride: x.stride,
            b_stride: y.stride,
            c_stride: y.stride,
            ..Product::default()
        };
        self.product("product", product, 1)
    }

    /// dW = drop(x)^T dy, in parts; all runs share x where `x.run` is 0.
    pub(crate) fn weight_back(&self, x: Place, dropout: Dropout, theta: usize, y: Place) -> Launch {
        let site = self.site(theta);
        let product = Product {
            a: x.output,
            a_run: x.run,
            b: y.gradient,
            b_run: y.run,
            c: self.parts_of(site),
            c_run: self.parts_run,
            mask: Mask::of(dropout, true),
            rows: site.length / y.stride,
            columns: y.stride,
            inner: self.nodes,
            a_stride: x.stride,
            b_stride: y.stride,
            c_stride: y.stride,
            ..Product::default()
        };
        self.product("product_a_transposed", product, site.parts)
    }

    /// dx = dy W^T, written to `to`, which lies as x does.
    pub(crate) fn input_back(&self, x: Place, to: Address, theta: usize, y: Place) -> Launch {
        let product = Product {
            a: y.gradient,
            a_run: y.run,
            b: self.weight(theta),
            b_run: self.weights_run,
            c: to,
            c_run: x.run,
            rows: self.nodes,
            columns: x.stride,
            inner: y.stride,
            a_stride: y.stride,
            b_stride: y.stride,
            c_stride: x.stride,
            ..Product::default()
        };
        self.product("product_b_transposed", product, 1)
    }

    /// y = drop(X) with dense features X that all runs share.
    pub(crate) fn drop(&self, x: Address, mask: Mask, y: Place) -> Launch {
        let length = self.nodes * y.stride;
        let drop = Drop { runs: self.states, x, y: y.output, y_run: y.run, mask, length, pad: 0 };
        self.flat("drop", length, drop)
    }

    /// y = drop(X) W with sparse features X, and what follows.
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn features(
        &self,
        matrix: &Matrices,
        mask: Mask,
        theta: usize,
        y: Place,
        width: Width,
        finish: Finish,
    ) -> Launch {
        let gather = Gather {
            matrix: matrix.forward,
            x: self.weight(theta),
            x_run: self.weights_run,
            y: y.output,
            y_run: y.run,
            mask,
            finish,
            rows: matrix.rows,
            ..Gather::default()
        };
        self.gather(gather, width, matrix.entries)
    }

    /// dW = drop(X)^T dy with sparse features X.
    pub(crate) fn features_back(
        &self,
        matrix: &Matrices,
        dropout: Dropout,
        theta: usize,
        y: Place,
        width: Width,
    ) -> Launch {
        let gather = Gather {
            matrix: matrix.backward,
            x: y.gradient,
            x_run: y.run,
            y: self.parts_of(self.site(theta)),
            y_run: self.parts_run,
            mask: Mask::of(dropout, true),
            rows: matrix.columns,
            ..Gather::default()
        };
        self.gather(gather, width, matrix.entries)
    }
}
