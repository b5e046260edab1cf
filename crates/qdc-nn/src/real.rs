//! The real numbers of a network: `f32` to train, `f64` to check.

use qdc_core::Scalar;

use crate::hardware;
use crate::once::Once;

/// A precision networks can be computed in.
pub trait Real: Scalar + Once {
    /// The exponential, written so that loops over it vectorise; within 3 units in the last place for `f32`.
    fn fast_exp<const FUSED: bool>(self) -> Self;

    /// `sum += factor * row`, lane by lane; fused where `FUSED` says that is one instruction.
    #[inline(always)]
    fn add_scaled_lanes<const FUSED: bool>(sum: &mut [Self; 8], factor: Self, row: &[Self; 8]) {
        for lane in 0..8 {
            sum[lane] = hardware::multiply_add::<Self, FUSED>(factor, row[lane], sum[lane]);
        }
    }

    /// The scalar product of two slices whose lengths are multiples of 8; lanes are summed in a fixed order.
    #[inline(always)]
    fn dot<const FUSED: bool>(a: &[Self], b: &[Self]) -> Self {
        let mut lanes = [Self::ZERO; 8];
        for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
            for lane in 0..8 {
                lanes[lane] = hardware::multiply_add::<Self, FUSED>(a[lane], b[lane], lanes[lane]);
            }
        }
        sum_lanes(lanes)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn fast_exp<const FUSED: bool>(self) -> Self {
        self.exp()
    }
}

impl Real for f32 {
    /// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7.
    #[inline(always)]
    fn fast_exp<const FUSED: bool>(self) -> Self {
        const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it leaves round(x) in the low bits
        const LN2_HIGH: f32 = 0.693_359_4; // exact in 12 bits, so n * LN2_HIGH is exact
        const LN2_LOW: f32 = -2.121_944_4e-4;
        /// 1 / 6!, 1 / 5! ... 1 / 0!.
        const TAYLOR: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
        let x = self.clamp(-87.0, 88.0);
        let shifted = hardware::multiply_add::<f32, FUSED>(x, std::f32::consts::LOG2_E, ROUND);
        let n = shifted - ROUND;
        let r = hardware::multiply_add::<f32, FUSED>(-n, LN2_HIGH, x);
        let r = hardware::multiply_add::<f32, FUSED>(-n, LN2_LOW, r);
        let mut power = 1.0 / 5040.0;
        for coefficient in TAYLOR {
            power = hardware::multiply_add::<f32, FUSED>(power, r, coefficient);
        }
        let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
        let value = power * f32::from_bits(exponent);
        if self < -87.0 { 0.0 } else { value }
    }

    // The compiler vectorises long loops by itself, but not accumulators of eight lanes.
    #[inline(always)]
    fn add_scaled_lanes<const FUSED: bool>(sum: &mut [Self; 8], factor: Self, row: &[Self; 8]) {
        hardware::add_scaled_f32::<FUSED>(sum, factor, row);
    }

    #[inline(always)]
    fn dot<const FUSED: bool>(a: &[Self], b: &[Self]) -> Self {
        sum_lanes(hardware::dot_lanes_f32::<FUSED>(a, b))
    }
}

/// The sum of eight lanes, as a tree.
#[inline(always)]
fn sum_lanes<T: Scalar>([a, b, c, d, e, f, g, h]: [T; 8]) -> T {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_exponential_is_right_to_the_last_bits() {
        for step in -86_900..88_000 {
            let x = step as f32 * 1e-3;
            let exact = f64::from(x).exp();
            for value in [x.fast_exp::<false>(), x.fast_exp::<true>()] {
                let error = (f64::from(value) - exact).abs() / exact;
                assert!(error < 4e-7, "exp({x}) is off by {error}");
            }
        }
        assert_eq!(0f32.fast_exp::<true>(), 1.0);
        assert_eq!(f32::NEG_INFINITY.fast_exp::<true>(), 0.0);
        assert!(f32::NAN.fast_exp::<true>().is_nan());
    }
}
