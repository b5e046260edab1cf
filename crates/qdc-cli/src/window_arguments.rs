//! The options --mu, --sigma and --epsilon of figures and reports.

use clap::Args;
use qdc_core::defaults;
use qdc_plot::report::Window;

/// A Gaussian kernel: what is not said comes from the studies given, then from the defaults.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WindowArguments {
    /// Centre of the filter [default: the best of the studies given, else 0.5]
    #[arg(long, allow_negative_numbers = true)]
    mu: Option<f64>,
    /// Width of the filter [default: the best of the studies given, else 0.3]
    #[arg(long)]
    sigma: Option<f64>,
    /// Threshold of the kernel [default: the best of the studies given, else 0.0001]
    #[arg(long)]
    epsilon: Option<f64>,
}

impl WindowArguments {
    /// The window asked for, over what a study found.
    pub(crate) fn resolve(self, found: Option<Window>) -> Window {
        let default = Window { mu: defaults::MU, sigma: defaults::SIGMA, epsilon: defaults::EPSILON };
        let found = found.unwrap_or(default);
        Window {
            mu: self.mu.unwrap_or(found.mu),
            sigma: self.sigma.unwrap_or(found.sigma),
            epsilon: self.epsilon.unwrap_or(found.epsilon),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_goes_before_what_was_found_before_the_defaults() {
        let said = WindowArguments { mu: Some(-0.2), sigma: None, epsilon: None };
        let found = Window { mu: 0.7, sigma: 0.05, epsilon: 0.01 };
        assert_eq!(said.resolve(Some(found)), Window { mu: -0.2, ..found });
        // The help texts above name these.
        let unsaid = WindowArguments { mu: None, ..said };
        assert_eq!(unsaid.resolve(None), Window { mu: 0.5, sigma: 0.3, epsilon: 1e-4 });
    }
}
