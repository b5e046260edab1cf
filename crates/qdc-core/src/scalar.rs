//! The two precisions of the library: `f64` in the spectral core, `f32` in training.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real number the numerics can be written for once: `f32` or `f64`.
pub trait Scalar:
    Copy
    + Default
    + PartialOrd
    + Debug
    + Display
    + Send
    + Sync
    + Sum
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// Rounds `value` to this precision.
    fn from_f64(value: f64) -> Self;
    /// Widens to `f64`, exactly.
    fn to_f64(self) -> f64;
    /// `self * factor + addend` with one rounding.
    ///
    /// Fast only inside a function compiled with the `fma` target feature; elsewhere it is a call into libm.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The natural exponential.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The larger of two numbers.
    fn max(self, other: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! scalar {
    ($type:ty) => {
        impl Scalar for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                <$type>::mul_add(self, factor, addend)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                <$type>::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$type>::ln(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$type>::abs(self)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                <$type>::max(self, other)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
        }
    };
}

scalar!(f32);
scalar!(f64);
