//! Filters of L without its spectrum: P(L) = sum_k c_k T_k(L), T_k the Chebyshev polynomials.
//!
//! [`Series`] finds the coefficients and bounds what they leave out; [`Operator`] holds L in the order and
//! precision that make products fast; [`apply`] runs Clenshaw's recurrence on signals, without forming P(L).
//! The kernel runs the same recurrence on unit vectors, sixteen at a time, and sparsifies each block before
//! the next. [`Recurrence`] serves training, which applies a polynomial in every step.

mod clenshaw;
mod operator;
mod recurrence;
mod series;

pub(crate) use clenshaw::{Workspace, clenshaw_signals, clenshaw_units};
pub use operator::Operator;
pub use recurrence::Recurrence;
pub use series::Series;

use rayon::prelude::*;

use crate::simd::Line;
use crate::{Error, Filter, Scalar, Transition, Watch};

/// The columns that [`apply`] and the kernel take at a time in `f64`: a panel then stays near the
/// second-level cache.
pub(crate) const WIDTH_F64: usize = 16;
/// The columns taken at a time in `f32`.
pub(crate) const WIDTH_F32: usize = 32;

/// sum_k c_k T_k(L) X for any coefficients, X given as `signals` row-major with `columns` numbers for each
/// vertex.
///
/// Cost: one product of L with X per coefficient; memory three times X's. Complex coefficients are two calls.
///
/// ```
/// use qdc_core::{EdgeRule, Graph, Transition, Watch, chebyshev};
///
/// let pair = Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected)?;
/// let operator = chebyshev::Operator::<f64>::new(&Transition::new(&pair));
/// // T_1(L) = L, whose entries are all 1/2
/// let moved = chebyshev::apply(&operator, &[0.0, 1.0], &[1.0, 0.0], 1, &Watch::silent())?;
/// assert_eq!(moved, [0.5, 0.5]);
/// # Ok::<(), qdc_core::Error>(())
/// ```
///
/// # Errors
/// If the watch asks to stop.
///
/// # Panics
/// If `signals` does not hold `columns` numbers for each vertex.
pub fn apply<T: Scalar>(
    operator: &Operator<T>,
    coefficients: &[f64],
    signals: &[T],
    columns: usize,
    watch: &Watch,
) -> Result<Vec<T>, Error> {
    let nodes = operator.nodes();
    assert_eq!(signals.len(), nodes * columns, "{columns} numbers for each of {nodes} vertices");
    let panels: Vec<usize> = (0..columns).step_by(WIDTH_F64).collect();
    let phase = watch.phase("applying the filter", panels.len() as u64);
    let results = panels
        .par_iter()
        .map(|&first| {
            let width = WIDTH_F64.min(columns - first);
            let mut panel = vec![Line::<T, WIDTH_F64>::ZERO; nodes];
            for (position, row) in panel.iter_mut().enumerate() {
                let at = operator.name(position) as usize * columns + first;
                row[..width].copy_from_slice(&signals[at..at + width]);
            }
            let result = clenshaw_signals(operator, coefficients, &panel);
            phase.advance(1)?;
            Ok(result)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut out = vec![T::ZERO; signals.len()];
    for (&first, result) in panels.iter().zip(&results) {
        let width = WIDTH_F64.min(columns - first);
        for (position, row) in result.iter().enumerate() {
            let at = operator.name(position) as usize * columns + first;
            out[at..at + width].copy_from_slice(&row[..width]);
        }
    }
    Ok(out)
}

impl Filter {
    /// P(L) X without forming P(L), with entries right to about `tolerance` times the norm of each column.
    ///
    /// X is `signals`, row-major with `columns` numbers for each vertex. The cost is one product of L with X
    /// for each Chebyshev term. To apply several filters or many times, keep an [`Operator`] and call
    /// [`apply`].
    ///
    /// ```
    /// use qdc_core::{EdgeRule, Filter, Graph, Transition, Watch};
    ///
    /// let path = Graph::from_edges(3, [(0, 1), (1, 2)], EdgeRule::Undirected)?;
    /// let transition = Transition::new(&path);
    /// // The square root of the degrees is the eigenvector of eigenvalue 1, which heat leaves alone.
    /// let root = [2f64.sqrt(), 3f64.sqrt(), 2f64.sqrt()];
    /// let warm = Filter::heat(5.0)?.apply(&transition, &root, 1, 1e-12, &Watch::silent())?;
    /// assert!(root.iter().zip(&warm).all(|(a, b)| (a - b).abs() < 1e-11));
    /// # Ok::<(), qdc_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is too sharp for a series, or the watch asks to stop.
    pub fn apply(
        &self,
        transition: &Transition,
        signals: &[f64],
        columns: usize,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<Vec<f64>, Error> {
        let series = Series::of(self, tolerance)?;
        apply(&Operator::new(transition), series.coefficients(), signals, columns, watch)
    }
}
