//! Bessel functions of integer order, all orders at once, by Miller's downward recurrence.
//!
//! Upwards the recurrences amplify the solution one does not want; downwards, from an order where the
//! function has all but vanished, they damp it. The scale comes out of a sum rule at the end.

/// J_0(x), J_1(x), ... up to the last order whose magnitude is at least `negligible`, for x >= 0.
///
/// J_{k-1} = (2k / x) J_k - J_{k+1}, scaled by J_0 + 2 (J_2 + J_4 + ...) = 1. Cost O(x + x^(1/3)).
pub fn bessel_j(x: f64, negligible: f64) -> Vec<f64> {
    let sum_rule =
        |values: &[f64]| values.iter().step_by(2).skip(1).map(|value| 2.0 * value).sum::<f64>() + values[0];
    downward(x, -1.0, sum_rule, negligible)
}

/// exp(-x) I_0(x), exp(-x) I_1(x), ... up to the last order at least `negligible`, for x >= 0.
///
/// I_{k-1} = (2k / x) I_k + I_{k+1}, scaled by I_0 + 2 (I_1 + I_2 + ...) = exp(x). Cost O(x + x^(1/3)).
pub fn bessel_i_scaled(x: f64, negligible: f64) -> Vec<f64> {
    let sum_rule = |values: &[f64]| values.iter().skip(1).map(|value| 2.0 * value).sum::<f64>() + values[0];
    downward(x, 1.0, sum_rule, negligible)
}

fn downward(x: f64, sign: f64, sum_rule: impl Fn(&[f64]) -> f64, negligible: f64) -> Vec<f64> {
    const LARGE: f64 = 1e200;
    if x < 1e-12 {
        return vec![1.0]; // the next term, x / 2, is below any rounding that matters
    }
    // Beyond order x both functions fall faster than exponentially, over a width of about x^(1/3).
    let start = (x + 30.0 + 20.0 * x.cbrt()).ceil() as usize;
    let mut values = vec![0.0; start + 2];
    values[start] = 1e-200;
    for k in (1..=start).rev() {
        values[k - 1] = 2.0 * k as f64 / x * values[k] + sign * values[k + 1];
        if values[k - 1].abs() > LARGE {
            // Scale everything down; what underflows is far below the rounding of the large ones.
            values[k - 1..].iter_mut().for_each(|value| *value /= LARGE);
        }
    }
    let scale = 1.0 / sum_rule(&values);
    values.iter_mut().for_each(|value| *value *= scale);
    let last = values.iter().rposition(|value| value.abs() >= negligible).unwrap_or(0);
    values.truncate(last + 1);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from SciPy 1.17, `scipy.special.jv` and `ive`, checked against the series for small orders.
    #[test]
    fn known_values_are_met() {
        let j = bessel_j(10.0, 1e-18);
        assert!((j[0] - -0.245_935_764_451_348_34).abs() < 1e-15);
        assert!((j[10] - 0.207_486_106_633_358_86).abs() < 1e-15);
        let i = bessel_i_scaled(10.0, 1e-18);
        assert!((i[0] - 0.127_833_337_163_428_6).abs() < 1e-15);
        assert!((i[1] - 0.121_262_681_384_455_56).abs() < 1e-15);
    }

    #[test]
    fn sum_rules_hold_from_tiny_to_large_arguments() {
        for x in [0.0, 1e-11, 1e-6, 0.1, 1.0, 7.5, 50.0, 1000.0, 20_000.0] {
            let j = bessel_j(x, 1e-18);
            let squares = j[0] * j[0] + 2.0 * j[1..].iter().map(|v| v * v).sum::<f64>(); // = 1
            assert!((squares - 1.0).abs() < 1e-12, "J at {x}: {squares}");
            let i = bessel_i_scaled(x, 1e-18);
            // The alternating sum is exp(-2 x): it was not used for scaling.
            let alternating: f64 = i
                .iter()
                .enumerate()
                .map(|(k, v)| {
                    if k == 0 {
                        *v
                    } else if k % 2 == 0 {
                        2.0 * v
                    } else {
                        -2.0 * v
                    }
                })
                .sum();
            assert!((alternating - (-2.0 * x).exp()).abs() < 1e-12, "I at {x}: {alternating}");
        }
    }
}
