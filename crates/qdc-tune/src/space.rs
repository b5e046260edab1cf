//! A search space: named distributions in the order they are asked for.

use crate::{Distribution, Error, Result};

/// The parameters of a study, in order. The order matters to the samplers' random streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parameters: Vec<(String, Distribution)>,
}

impl Space {
    /// Checks that there is something to search and that no name stands twice.
    pub fn new<N: Into<String>>(parameters: impl IntoIterator<Item = (N, Distribution)>) -> Result<Self> {
        let parameters: Vec<(String, Distribution)> =
            parameters.into_iter().map(|(name, distribution)| (name.into(), distribution)).collect();
        if parameters.is_empty() {
            return Err(Error::Space { problem: "it has no parameters".into() });
        }
        for (index, (name, _)) in parameters.iter().enumerate() {
            if parameters[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::Space { problem: format!("parameter {name} stands in it twice") });
            }
        }
        Ok(Self { parameters })
    }

    /// Names and distributions, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Distribution)> {
        self.parameters.iter().map(|(name, distribution)| (name.as_str(), distribution))
    }

    /// How many parameters there are.
    #[allow(clippy::len_without_is_empty)] // a space is never empty
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// The distribution at a place in the order.
    pub fn distribution(&self, index: usize) -> &Distribution {
        &self.parameters[index].1
    }

    /// The name at a place in the order.
    pub fn name(&self, index: usize) -> &str {
        &self.parameters[index].0
    }

    /// The distribution of a name.
    pub fn get(&self, name: &str) -> Option<&Distribution> {
        self.parameters.iter().find(|(own, _)| own == name).map(|(_, distribution)| distribution)
    }

    /// The first difference from another space, in words; `None` if there is none (order apart).
    pub fn difference(&self, other: &Self) -> Option<String> {
        for (name, distribution) in self.iter() {
            match other.get(name) {
                None => return Some(format!("{name} is new")),
                Some(old) if old != distribution => {
                    return Some(format!(
                        "{name} was {} and is now {}",
                        old.describe(),
                        distribution.describe()
                    ));
                }
                Some(_) => {}
            }
        }
        other.iter().find(|(name, _)| self.get(name).is_none()).map(|(name, _)| format!("{name} is gone"))
    }
}
