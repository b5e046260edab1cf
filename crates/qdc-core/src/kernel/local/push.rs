//! A row of personalised PageRank by pushing, with its own invariant.
//!
//! With b = 1 - alpha and f(L) = alpha (I - b L)^-1, a residual r on the vertices and the row q found so far
//! always satisfy f(L) e_i = q + (f(L) - alpha) r. Pushing a vertex moves its residual on: r_u becomes 0, its
//! neighbours get b L r_u, and q gets alpha times that. On [-1, 1] f(x) - alpha is at most b, so what is left at
//! the end is an error of at most b |r|_2 in any entry; f(x) - alpha - alpha b x is at most b^2, which serves the
//! entries that are kept, as they get their neighbours' alpha b L r. On a graph of 100,000 vertices this took a
//! quarter of the links that the Chebyshev recurrence takes for the same error.
//!
//! Reference: R. Andersen, F. Chung, K. Lang, "Local graph partitioning using PageRank vectors", 2006.

use super::Tally;
use super::field::{Field, Links};
use super::series::UNIT;

/// The share of the cut that is left to hubs, besides their caution: with all of it the error of their entries was
/// 1.2e-4 for an accuracy of 1e-4 (a million vertices).
const HUB: f32 = 0.5;

/// Personalised PageRank with a cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushing {
    alpha: f64,
    cut: f32,
}

impl Pushing {
    /// Pushes where the residual, divided by the root of the row's entries, is above `cut`.
    pub(super) fn new(alpha: f64, cut: f64) -> Self {
        Self { alpha, cut: cut as f32 }
    }

    /// Makes the row of the vertex at `origin`, left in the field, and says how wrong it can be.
    pub(super) fn row(self, links: &Links, origin: u32, field: &mut Field, pushers: &mut Vec<u32>) -> Tally {
        let (alpha, rest) = (self.alpha as f32, 1.0 - self.alpha);
        // All that is held back is positive and adds up, most of all around hubs.
        let caution = links.caution(origin);
        let cut = if caution < 1.0 { HUB * caution.powi(2) * self.cut } else { self.cut };
        field.start(origin, alpha);
        let (mut size, mut additions, mut tally) = (1.0, 0.0, Tally::default());
        loop {
            let mut moved = 0.0;
            field.look(pushers, |cell| {
                let passes_on = cell.value[0] * cell.reach > cut;
                moved += if passes_on { f64::from(cell.value[0]).powi(2) } else { 0.0 };
                passes_on
            });
            if pushers.is_empty() {
                break;
            }
            let most = links.longest().min(pushers.len()) as f64;
            let take = |cell: &mut super::field::Cell| rest as f32 * std::mem::take(&mut cell.value[0]);
            field.spread(links, pushers, take, 0, alpha);
            size += rest * moved.sqrt();
            tally.rounding += (most + 5.0) * UNIT * size;
            additions += most + 1.0;
        }
        tally.rounding += (additions + 4.0) * UNIT * size;
        let mut residual = 0.0;
        for at in 0..field.touched().len() {
            let vertex = field.touched()[at] as usize;
            let cell = &mut field.cells[vertex];
            cell.owed = (self.alpha * rest) as f32 * cell.value[0];
            residual += f64::from(cell.value[0]).powi(2);
        }
        let residual = residual.sqrt();
        (tally.missing, tally.unsettled) = (rest * residual, rest * rest * residual);
        tally.work = field.work;
        tally
    }
}
