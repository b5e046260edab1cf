//! The numbers in a generator's name: `20,1`, `20x30` or `n=1000,p=0.01`.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::budget::Account;
use crate::{Budget, Error};

/// Numbers not yet asked for; those without a key are taken in order.
pub(super) struct Parameters<'a> {
    name: &'a str,
    given: Vec<(Option<&'a str>, &'a str)>,
    known: Vec<&'static str>,
    account: Account,
}

impl<'a> Parameters<'a> {
    pub(super) fn parse(name: &'a str, arguments: &'a str, budget: Budget) -> Result<Self, Error> {
        let separator = if arguments.contains('=') { ',' } else { 'x' };
        let given: Vec<_> = arguments
            .split([',', separator])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| match part.split_once('=') {
                Some((key, value)) => (Some(key.trim()), value.trim()),
                None => (None, part),
            })
            .collect();
        let account = budget.account(Path::new(name));
        let parameters = Self { name, given, known: Vec::new(), account };
        for (at, (key, _)) in parameters.given.iter().enumerate() {
            if key.is_some() && parameters.given[..at].iter().any(|(other, _)| other == key) {
                return Err(parameters.error(format!("'{}' is given twice", key.unwrap_or_default())));
            }
        }
        Ok(parameters)
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::Generator { name: self.name.into(), problem: problem.into() }
    }

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let at = self
            .given
            .iter()
            .position(|(given, _)| *given == Some(key))
            .or_else(|| self.given.iter().position(|(given, _)| given.is_none()))?;
        Some(self.given.remove(at).1)
    }

    fn number<T: std::str::FromStr>(&mut self, key: &'static str, default: T) -> Result<T, Error> {
        match self.take(key) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| self.error(format!("{key}: '{text}' is no number that fits")))
            }
        }
    }

    pub(super) fn whole(&mut self, key: &'static str, default: u64, least: u64) -> Result<u64, Error> {
        let value = self.number(key, default)?;
        if value < least {
            return Err(self.error(format!("{key} = {value} must be at least {least}")));
        }
        Ok(value)
    }

    pub(super) fn real(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, Error> {
        let value = self.number(key, default)?;
        if !range.contains(&value) {
            let (start, end) = range.into_inner();
            return Err(self.error(format!("{key} = {value} must lie in [{start}, {end}]")));
        }
        Ok(value)
    }

    pub(super) fn probability(&mut self, key: &'static str, default: f64) -> Result<f64, Error> {
        self.real(key, default, 0.0..=1.0)
    }

    pub(super) fn seed(&mut self) -> Result<u64, Error> {
        self.number("seed", 0)
    }

    /// Refuses what was given but not asked for.
    pub(super) fn finish(&self) -> Result<(), Error> {
        match self.given.first() {
            None => Ok(()),
            Some((Some(key), _)) => {
                Err(self.error(format!("there is no number '{key}', only {}", self.known.join(", "))))
            }
            Some((None, value)) => Err(self.error(format!("too many numbers: '{value}' has no meaning"))),
        }
    }

    /// Refuses sizes that numbers of 32 bits cannot count, or the budget does not hold.
    pub(super) fn check_size(&self, nodes: f64, edges: f64) -> Result<(), Error> {
        if nodes >= f64::from(u32::MAX) {
            return Err(self.error(format!("too large: {nodes:.0} vertices are more than 32 bits can name")));
        }
        // The list of edges, which is made first, has 16 bytes for each; it grows by doubling.
        self.check_values("the list of edges", edges, 32)?;
        self.account.charge_graph(nodes as usize, edges as usize)
    }

    /// Refuses values of so many bytes each that the budget does not hold.
    pub(super) fn check_values(&self, what: &str, count: f64, bytes: u64) -> Result<(), Error> {
        self.account.charge::<u8>(what, (count * bytes as f64) as usize) // saturates where it is beyond any memory
    }
}
