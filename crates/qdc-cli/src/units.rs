//! Sizes and durations as people write them, and the memory of this process.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, read from and written as `512MB`, `4GB` and so on (powers of 1000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub(crate) u64);

const UNITS: [(&str, f64); 5] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = trimmed[digits.len()..].to_ascii_lowercase();
        let factor = UNITS
            .iter()
            .find(|(name, _)| {
                unit == name.to_ascii_lowercase() || format!("{unit}b") == name.to_ascii_lowercase()
            })
            .map(|(_, factor)| *factor);
        match (digits.trim().parse::<f64>(), factor) {
            (Ok(number), Some(factor)) if number > 0.0 && number.is_finite() => {
                Ok(Self((number * factor) as u64))
            }
            _ => Err(format!("'{text}' is not a size; write a number and a unit, such as 512MB or 4GB")),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let (unit, factor) = UNITS.iter().find(|(_, factor)| bytes >= *factor).unwrap_or(&("B", 1.0));
        if *factor == 1.0 { write!(f, "{bytes} B") } else { write!(f, "{:.1} {unit}", bytes / factor) }
    }
}

/// The most memory this process has held, in bytes; `None` where the system does not tell.
pub(crate) fn peak_memory() -> Option<u64> {
    qdc_data::kilobytes("/proc/self/status", "VmHWM:")
}

/// The memory this process holds now, in bytes; `None` where the system does not tell.
pub(crate) fn current_memory() -> Option<u64> {
    qdc_data::kilobytes("/proc/self/status", "VmRSS:")
}

/// The CPU time of all threads that are alive, in seconds; `None` where the system does not tell.
pub(crate) fn cpu_seconds() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds: u64 = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    Some(nanoseconds as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_or_without_the_final_b() {
        let read = |text: &str| text.parse::<Bytes>().map(|size| size.0);
        assert_eq!(read("4GB"), Ok(4_000_000_000));
        assert_eq!(read("1.5 g"), Ok(1_500_000_000));
        assert_eq!(read("512mb"), Ok(512_000_000));
        assert_eq!(read("100B"), Ok(100));
        for wrong in ["", "GB", "-1GB", "4 parsecs", "nan"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_fits() {
        assert_eq!(Bytes(3_110_000_000).to_string(), "3.1 GB");
        assert_eq!(Bytes(999).to_string(), "999 B");
    }
}
