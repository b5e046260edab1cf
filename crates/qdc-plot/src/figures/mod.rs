//! The figures, one file each: numbers and a width in, a [`Figure`](crate::Figure) out.

mod barbell;
mod comparison;
mod curves;
mod filter;
mod homophily;
mod scatter;
mod shares;
mod sparsity;
mod trials;
mod violin;

pub use barbell::{Barbell, barbell};
pub use comparison::{ModelScore, comparison};
pub use curves::{Curve, Layer, curves};
pub use filter::{FilterPlot, filter, response};
pub use homophily::{HomophilyPanel, homophily};
pub use scatter::scatter;
pub use shares::{ChannelShares, shares};
pub use sparsity::sparsity;
pub use trials::{TrialPoint, chosen};
pub use violin::violin;
