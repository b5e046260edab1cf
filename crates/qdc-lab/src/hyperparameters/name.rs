//! Names of hyper-parameters as users type them: of the model, of all towers, or of one.

use std::fmt;

use super::table::{Entry, Of, TABLE};
use crate::closest::by_closeness;
use crate::{Error, Model};

/// A hyper-parameter of a model: a line of the table, and the tower it belongs to where it is one tower's own.
///
/// `mu` is the mu of every tower that has one, `tower3_mu` that of the third. The second tower's are spelled
/// `qdc_mu` (as in published studies) or `tower2_mu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The tower, counting from 0; none: all of them, or the model.
    pub(super) tower: Option<usize>,
    /// The line of the table.
    pub(super) line: &'static str,
}

impl Name {
    /// A tower's own; towers count from 0.
    pub(crate) fn of_tower(tower: usize, line: &'static str) -> Self {
        Self { tower: Some(tower), line }
    }

    /// The spelling of a tower's own, whether or not there is such a line.
    pub(crate) fn own(tower: usize, line: &str) -> String {
        format!("tower{}_{line}", tower + 1)
    }

    /// Reads a name and checks that `model` has it.
    ///
    /// # Errors
    /// If no model has such a hyper-parameter, or this one has not.
    pub(super) fn read(text: &str, model: &Model) -> Result<(Self, &'static Entry), Error> {
        let (tower, line) = split(text);
        let Some(entry) = TABLE.iter().find(|entry| entry.name == line) else {
            return Err(Error::UnknownHyperparameter { name: text.into(), known: known(text, model) });
        };
        let applies = match tower {
            None => entry.applies_to(model),
            Some(tower) => model.towers().get(tower).is_some_and(|&tower| entry.applies_to_tower(tower)),
        };
        if !applies {
            let (name, known) = (text.to_owned(), known(text, model));
            return Err(Error::NotOfThisModel { name, model: model.to_string(), known });
        }
        Ok((Self { tower, line: entry.name }, entry))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tower {
            None => f.write_str(self.line),
            Some(1) => write!(f, "qdc_{}", self.line),
            Some(tower) => write!(f, "tower{}_{}", tower + 1, self.line),
        }
    }
}

/// The tower a name belongs to, counting from 0, and the name without it.
fn split(text: &str) -> (Option<usize>, &str) {
    if let Some(line) = text.strip_prefix("qdc_") {
        return (Some(1), line);
    }
    let numbered = text.strip_prefix("tower").and_then(|rest| rest.split_once('_'));
    match numbered.map(|(number, line)| (number.parse::<usize>(), line)) {
        Some((Ok(number), line)) if number > 0 => (Some(number - 1), line),
        _ => (None, text),
    }
}

/// The names a model has, the closest to `text` first.
fn known(text: &str, model: &Model) -> Vec<String> {
    let entries = TABLE.iter().filter(|entry| entry.applies_to(model));
    let mut names: Vec<String> = entries.map(|entry| entry.name.to_owned()).collect();
    if model.towers().len() > 1 {
        for (number, &tower) in model.towers().iter().enumerate().skip(1) {
            let own = TABLE
                .iter()
                .filter(|entry| matches!(entry.of, Of::Tower(_)) && entry.applies_to_tower(tower));
            names.extend(own.map(|entry| Name::of_tower(number, entry.name).to_string()));
        }
    }
    by_closeness(text, names)
}
