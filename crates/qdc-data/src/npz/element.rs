//! Turning stored numbers into the type asked for, refusing any that would change.

use super::header::Kind;

/// A type array values can be read as.
///
/// Whole numbers must fit, reals must be whole to become integers, and only 0 and 1 become booleans. Reals
/// may be rounded to `f32`, but not beyond its range.
pub trait Element: Copy + Send + Sync + 'static {
    /// How NumPy names the type.
    const DESCR: &'static str;
    /// The same number, if this type has it.
    fn from_i64(value: i64) -> Option<Self>;
    /// The same number, if this type has it.
    fn from_u64(value: u64) -> Option<Self>;
    /// The same number, if this type has it.
    fn from_f64(value: f64) -> Option<Self>;
    /// Appends the little-endian bytes.
    fn put(self, bytes: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty, $descr:literal, $stored:ty;)*) => {$(
        impl Element for $type {
            const DESCR: &'static str = $descr;
            fn from_i64(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
            fn from_u64(value: u64) -> Option<Self> {
                Self::try_from(value).ok()
            }
            fn from_f64(value: f64) -> Option<Self> {
                // Every whole number that may become an integer here is exact in 64 bits.
                if value.fract() != 0.0 || value.abs() > 9_007_199_254_740_992.0 { return None; }
                Self::try_from(value as i64).ok()
            }
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend((self as $stored).to_le_bytes());
            }
        }
    )*};
}

integers! {
    u8, "|u1", u8;
    i8, "|i1", i8;
    u16, "<u2", u16;
    i16, "<i2", i16;
    u32, "<u4", u32;
    i32, "<i4", i32;
    u64, "<u8", u64;
    i64, "<i8", i64;
    usize, "<i8", i64;
}

impl Element for f64 {
    const DESCR: &'static str = "<f8";
    fn from_i64(value: i64) -> Option<Self> {
        (value.unsigned_abs() <= 1 << 53).then_some(value as Self)
    }
    fn from_u64(value: u64) -> Option<Self> {
        (value <= 1 << 53).then_some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        Some(value)
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Element for f32 {
    const DESCR: &'static str = "<f4";
    fn from_i64(value: i64) -> Option<Self> {
        (value.unsigned_abs() <= 1 << 24).then_some(value as Self)
    }
    fn from_u64(value: u64) -> Option<Self> {
        (value <= 1 << 24).then_some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        let rounded = value as Self;
        (rounded.is_finite() || !value.is_finite()).then_some(rounded)
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Element for bool {
    const DESCR: &'static str = "|b1";
    fn from_i64(value: i64) -> Option<Self> {
        matches!(value, 0 | 1).then_some(value == 1)
    }
    fn from_u64(value: u64) -> Option<Self> {
        matches!(value, 0 | 1).then_some(value == 1)
    }
    fn from_f64(value: f64) -> Option<Self> {
        (value == 0.0 || value == 1.0).then_some(value == 1.0)
    }
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

/// Appends the values stored in `bytes` to `out`, stopping at the first that does not fit.
pub(crate) fn decode<T: Element>(kind: Kind, bytes: &[u8], out: &mut Vec<T>) -> Result<(), String> {
    macro_rules! each {
        ($type:ty, $wide:ty, $convert:path) => {
            each(bytes, out, |stored| <$wide>::from(<$type>::from_le_bytes(stored)), $convert)
        };
    }
    match kind {
        Kind::Bool => each(
            bytes,
            out,
            |stored: [u8; 1]| u64::from(stored[0]),
            |value| {
                if value <= 1 { T::from_u64(value) } else { None }
            },
        ),
        Kind::Int(1) => each!(i8, i64, T::from_i64),
        Kind::Int(2) => each!(i16, i64, T::from_i64),
        Kind::Int(4) => each!(i32, i64, T::from_i64),
        Kind::Int(_) => each!(i64, i64, T::from_i64),
        Kind::Unsigned(1) => each!(u8, u64, T::from_u64),
        Kind::Unsigned(2) => each!(u16, u64, T::from_u64),
        Kind::Unsigned(4) => each!(u32, u64, T::from_u64),
        Kind::Unsigned(_) => each!(u64, u64, T::from_u64),
        Kind::Real(2) => each(bytes, out, |stored| half(u16::from_le_bytes(stored)), T::from_f64),
        Kind::Real(4) => each!(f32, f64, T::from_f64),
        Kind::Real(_) => each!(f64, f64, T::from_f64),
        Kind::Bytes(_) | Kind::Unicode(_) => Err("a text is no number".into()),
    }
}

fn each<const SIZE: usize, W: Copy + std::fmt::Display, T>(
    bytes: &[u8],
    out: &mut Vec<T>,
    read: impl Fn([u8; SIZE]) -> W,
    convert: impl Fn(W) -> Option<T>,
) -> Result<(), String> {
    let (stored, _) = bytes.as_chunks::<SIZE>();
    out.reserve(stored.len());
    for &stored in stored {
        let value = read(stored);
        match convert(value) {
            Some(converted) => out.push(converted),
            None => {
                return Err(format!("{value} does not fit the {} expected here", std::any::type_name::<T>()));
            }
        }
    }
    Ok(())
}

/// A 16-bit real: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert<T: Element>(kind: Kind, bytes: &[u8]) -> Result<Vec<T>, String> {
        let mut out = Vec::new();
        decode(kind, bytes, &mut out).map(|()| out)
    }

    #[test]
    fn numbers_that_fit_are_converted_and_others_are_named() {
        assert_eq!(convert::<u32>(Kind::Int(8), &7i64.to_le_bytes()), Ok(vec![7]));
        let negative = convert::<u32>(Kind::Int(8), &(-7i64).to_le_bytes()).unwrap_err();
        assert_eq!(negative, "-7 does not fit the u32 expected here");
        assert_eq!(convert::<i32>(Kind::Real(8), &3.0f64.to_le_bytes()), Ok(vec![3]));
        assert!(convert::<i32>(Kind::Real(8), &3.5f64.to_le_bytes()).is_err());
        assert!(convert::<i32>(Kind::Real(8), &f64::NAN.to_le_bytes()).is_err());
        assert!(convert::<f32>(Kind::Real(8), &1e300f64.to_le_bytes()).is_err());
        assert_eq!(convert::<f32>(Kind::Real(8), &0.1f64.to_le_bytes()), Ok(vec![0.1]));
        assert_eq!(convert::<bool>(Kind::Unsigned(1), &[0, 1]), Ok(vec![false, true]));
        assert!(convert::<bool>(Kind::Unsigned(1), &[2]).is_err());
    }

    #[test]
    fn half_precision_is_read_exactly() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (1, 2f64.powi(-24))] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
