//! Sums of many Gaussians at one point: the hot loop of TPE.
//!
//! sum_k scale_k exp(-((x - mu_k) / sigma_k)^2 / 2) over ten thousand kernels, for 24 candidates and every
//! parameter. The exponential is a polynomial without branches, so that the compiler vectorises it for the
//! CPU that `dispatch` finds.

use qdc_core::cpu::{Loops, dispatch};

const LANES: usize = 8;

/// Exponents below this contribute nothing to a double; the polynomial is not valid further down.
const LOWEST: f64 = -700.0;

/// sum_k exp(exponents_k).
pub(super) fn sum_of_exponentials(exponents: &[f64]) -> f64 {
    struct Sum<'a>(&'a [f64]);
    impl Loops for Sum<'_> {
        type Output = f64;
        #[inline(always)]
        fn run<const FUSED: bool>(self) -> f64 {
            sum::<FUSED>(self.0)
        }
    }
    dispatch(Sum(exponents))
}

/// exponent_k -= ((x - mu_k) inverse_k)^2 / 2.
pub(super) fn subtract_half_squares(exponents: &mut [f64], x: f64, mus: &[f64], inverse: &[f64]) {
    struct Squares<'a>(&'a mut [f64], f64, &'a [f64], &'a [f64]);
    impl Loops for Squares<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FUSED: bool>(self) {
            squares(self.0, self.1, self.2, self.3);
        }
    }
    dispatch(Squares(exponents, x, mus, inverse));
}

#[inline(always)]
fn squares(exponents: &mut [f64], x: f64, mus: &[f64], inverse: &[f64]) {
    for ((exponent, mu), inverse) in exponents.iter_mut().zip(mus).zip(inverse) {
        let z = (x - mu) * inverse;
        *exponent -= 0.5 * z * z;
    }
}

#[inline(always)]
fn sum<const FUSED: bool>(exponents: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = exponents.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += exponential::<FUSED>(chunk[lane]);
        }
    }
    let mut total = lanes.iter().sum();
    for &exponent in rest {
        total += exponential::<FUSED>(exponent);
    }
    total
}

/// exp(x) = 2^n exp(r) with n the integer nearest x / log 2, |r| <= log 2 / 2, exp(r) by its Taylor
/// polynomial.
#[inline(always)]
fn exponential<const FUSED: bool>(x: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: adding it leaves the integer in the low bits
    const LOG2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOG2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let multiply_add = |a: f64, b: f64, c: f64| if FUSED { a.mul_add(b, c) } else { a * b + c };
    let x = if x < LOWEST { LOWEST } else { x };
    let shifted = multiply_add(x, std::f64::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = multiply_add(-n, LOG2_LOW, multiply_add(-n, LOG2_HIGH, x));
    let mut p = 1.0 / 479_001_600.0; // 1 / 12!
    for coefficient in [
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = multiply_add(p, r, coefficient);
    }
    p * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_the_last_digits() {
        for i in -70_000..1_000 {
            let x = f64::from(i) * 0.01;
            for (name, found) in
                [("portable", sum::<false>(&[x])), ("dispatched", sum_of_exponentials(&[x; 8]) / 8.0)]
            {
                assert!((found / x.exp() - 1.0).abs() < 4e-15, "{name} exp({x}) = {found}");
            }
        }
        assert!(sum_of_exponentials(&[-1e9]) < 1e-300);
    }
}
