//! The normal distribution in the form TPE needs it: logarithms of masses, and quantiles of a truncated
//! normal.
//!
//! Phi is the distribution function. Calculations happen in the left tail, where they keep their digits.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// log sqrt(2 pi).
pub(super) const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Phi(x).
fn phi(x: f64) -> f64 {
    let scaled = x * FRAC_1_SQRT_2;
    if scaled < -FRAC_1_SQRT_2 {
        0.5 * libm::erfc(-scaled)
    } else if scaled < FRAC_1_SQRT_2 {
        0.5 + 0.5 * libm::erf(scaled)
    } else {
        1.0 - 0.5 * libm::erfc(scaled)
    }
}

/// log Phi(x), by its asymptotic series below -20.
pub(super) fn log_phi(x: f64) -> f64 {
    if x > 6.0 {
        return -phi(-x);
    }
    if x > -20.0 {
        return phi(x).ln();
    }
    let square = 1.0 / (x * x);
    let (mut sum, mut last, mut term) = (1.0, 0.0, 1.0);
    let mut odd = 1.0;
    while f64::abs(sum - last) > f64::EPSILON {
        last = sum;
        term *= -odd * square;
        odd += 2.0;
        sum += term;
    }
    -0.5 * x * x - (-x).ln() - LOG_SQRT_TAU + sum.ln()
}

/// log (Phi(b) - Phi(a)) for a < b.
pub(super) fn log_mass(a: f64, b: f64) -> f64 {
    if b <= 0.0 {
        let (upper, lower) = (log_phi(b), log_phi(a));
        upper + (-(lower - upper).exp()).ln_1p()
    } else if a > 0.0 {
        log_mass(-b, -a)
    } else {
        let tail = |x: f64| 0.5 + 0.5 * libm::erf(x * FRAC_1_SQRT_2);
        (-tail(a) - tail(-b)).ln_1p()
    }
}

/// The x in [a, b] below which a share `q` of the truncated normal lies.
pub(super) fn truncated_quantile(q: f64, a: f64, b: f64) -> f64 {
    if q <= 0.0 {
        a
    } else if q >= 1.0 {
        b
    } else if a < 0.0 {
        inverse_log_phi(log_sum(log_phi(a), q.ln() + log_mass(a, b)))
    } else {
        -inverse_log_phi(log_sum(log_phi(-b), (-q).ln_1p() + log_mass(a, b)))
    }
}

/// log(exp(a) + exp(b)).
fn log_sum(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// The x with log Phi(x) = y, by Newton's method from an asymptotic guess.
fn inverse_log_phi(y: f64) -> f64 {
    // Near y = 0 the digits are in 1 - Phi: solve for -x there.
    let flipped = y > -1e-2;
    let z = if flipped { (-y.exp_m1()).ln() } else { y };
    let mut x =
        if z < -5.0 { -(-2.0 * (z + LOG_SQRT_TAU)).sqrt() } else { -(3f64.sqrt() / PI) * (-z).exp_m1().ln() };
    for _ in 0..100 {
        let value = log_phi(x);
        let step = (value - z) * (value + 0.5 * x * x + LOG_SQRT_TAU).exp();
        x -= step;
        if step.abs() <= 1e-9 * x.abs() {
            break;
        }
    }
    if flipped { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_agree_with_scipy() {
        // SciPy 1.17.1: special.log_ndtr, and log_diff of it
        for (x, expected) in
            [(-50.0, -1254.8313611394199), (-5.0, -15.064998393988727), (0.0, -std::f64::consts::LN_2)]
        {
            assert!((log_phi(x) / expected - 1.0).abs() < 1e-13, "{x}: {}", log_phi(x));
        }
        // special.log_ndtr(8)
        assert!((log_phi(8.0) / -6.220960574271742e-16 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_quantile_undoes_the_distribution_function(q in 0.001..0.999f64, a in -30.0..30.0f64, width in 0.01..60.0f64) {
            let b = a + width;
            let x = truncated_quantile(q, a, b);
            prop_assert!(x >= a - 1e-9 && x <= b + 1e-9);
            let share = (log_mass(a, x.max(a + 1e-300)) - log_mass(a, b)).exp();
            prop_assert!((share - q).abs() < 1e-7, "{share} instead of {q}");
        }

        #[test]
        fn masses_add_up(a in -8.0..8.0f64, first in 0.01..4.0f64, second in 0.01..4.0f64) {
            let (b, c) = (a + first, a + first + second);
            let sum = log_mass(a, b).exp() + log_mass(b, c).exp();
            prop_assert!((sum / log_mass(a, c).exp() - 1.0).abs() < 1e-6);
        }
    }
}
