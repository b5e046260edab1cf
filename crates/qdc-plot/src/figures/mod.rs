//! The figures, one file each: numbers in, a [`Figure`](crate::Figure) out.

mod barbell;
mod curves;
mod filter;
mod homophily;
mod sparsity;
mod trials;

pub use barbell::{Barbell, barbell};
pub use curves::{Curve, curves};
pub use filter::filter;
pub use homophily::{HomophilyPanel, homophily};
pub use sparsity::sparsity;
pub use trials::{TrialPoint, chosen, scatter, violin};
