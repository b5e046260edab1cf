//! Panels from eigenpairs: a dense product with the eigenvectors on the device.

use super::arguments::Product;
use super::{Panels, Shape};
use crate::Error;
use crate::grid::THREADS;
use crate::matrices::counted;
use crate::room::Room;
use crate::state::Address;

/// Rows and columns that a block of threads makes, as in `device/pairs.cu`.
const TALL: u32 = 128;
const WIDE: u32 = 64;

/// Eigenvectors, their weights, and a panel.
pub(super) struct Pairs {
    vectors: Address,
    weights: Address,
    count: u32,
    pub(super) panel: Address,
}

impl Pairs {
    pub(super) fn new(
        vectors: &[f64],
        weights: &[f64],
        shape: &Shape,
        room: &mut Room,
    ) -> Result<Self, Error> {
        Ok(Self {
            vectors: room.copy(vectors)?,
            weights: room.copy(weights)?,
            count: counted("pairs", weights.len() as u64)?,
            panel: room.reserve::<u8>(shape.panel()),
        })
    }

    pub(super) fn make(&self, panels: &Panels<'_>) -> Result<(), Error> {
        let (rows, width) = (panels.shape.rows as u32, panels.shape.width as u32);
        let places = &panels.places;
        let product = Product {
            vectors: self.vectors,
            weights: self.weights,
            positions: places.positions,
            shares: places.shares,
            last: places.last,
            first: places.first,
            panel: self.panel,
            rows,
            width,
            pairs: self.count,
            pad: 0,
        };
        panels.launch("pairs_product", (rows.div_ceil(TALL), width / WIDE), (THREADS, 1), product)
    }
}
