//! A filter as a TOML file: the filter part of a recipe.
//!
//! ```toml
//! [filter]
//! name = "gaussian"
//! mu = 1.1
//! sigma = 0.4
//! ```
//! or a sum, `name = "sum"` with a list of `[[filter.terms]]`, each a `weight` and a `filter`.

use std::path::Path;

use qdc_core::Filter;
use qdc_data::output::write_file;
use serde::{Deserialize, Serialize};

use crate::config::{parse_toml, read_toml};
use crate::run::Run;
use crate::{Error, Scores};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterFile {
    filter: Filter,
}

/// Reads the filter of a file.
///
/// # Errors
/// If it cannot be read, has anything else in it, or a parameter is out of range.
pub fn read_filter(path: &Path) -> Result<Filter, Error> {
    let wrong = |problem: String| Error::FilterFile { path: path.into(), problem };
    let file: FilterFile = parse_toml(&read_toml(path).map_err(wrong)?).map_err(wrong)?;
    Ok(file.filter)
}

/// Saves the window learned on the split that did best on validation (the first of equals); `None` where no
/// window was learned.
///
/// # Errors
/// If the file cannot be written.
pub fn save_learned_filter<'a>(path: &Path, run: &'a Run) -> Result<Option<(Filter, &'a Scores)>, Error> {
    let record = &run.record;
    let window_of = |at: usize| {
        let Scores { split, seed, .. } = record.splits[at];
        let learned = record.learned.iter().find(|learned| learned.split == split && learned.seed == seed);
        learned.and_then(|learned| learned.window)
    };
    let Some(best) = run.best_split(|at| window_of(at).is_some()) else { return Ok(None) };
    let filter = window_of(best).expect("chosen because it has one").filter()?;
    let scores = &record.splits[best];
    let body = toml::to_string(&FilterFile { filter: filter.clone() }).expect("numbers and names");
    let Scores { split, seed, validation, test, .. } = scores;
    let text = format!(
        "# Learned by {} on {}, split {split}, seed {seed}: {} {validation:.4} on validation, {test:.4} on test.\n{body}",
        record.model,
        record.dataset.replace(char::is_control, " "),
        record.metric.title()
    );
    write_file(path, |file| file.write_all(text.as_bytes()))?;
    Ok(Some((filter, scores)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_sums_are_read_and_anything_else_is_refused_with_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_filter(&path)
        };
        let gaussian = Filter::gaussian(1.1, 0.4).unwrap();
        assert_eq!(read("[filter]\nname = 'gaussian'\nmu = 1.1\nsigma = 0.4").unwrap(), gaussian);
        let sum = read(
            "[filter]\nname = 'sum'\n[[filter.terms]]\nweight = -2\nfilter = { name = 'heat', time = 3 }\n\
             [[filter.terms]]\nweight = 0.5\nfilter = { name = 'gaussian', mu = 1.1, sigma = 0.4 }",
        );
        assert_eq!(sum.unwrap(), Filter::sum([(-2.0, Filter::heat(3.0).unwrap()), (0.5, gaussian)]).unwrap());
        for (text, word) in [
            ("", "missing field `filter`"),
            ("[filter]\nname = 'gaussian'\nmu = 1.1\nsigma = -0.4", "sigma = -0.4"),
            ("[filter]\nname = 'gaussain'\nmu = 1.1\nsigma = 0.4", "gaussain"),
            ("pairs = 512\n[filter]\nname = 'heat'\ntime = 1", "pairs"),
            ("[filter]\nname = 'custom'\ncalled = 'mine'", "mine"),
            ("[filter\nname", "line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error}");
            assert!(error.to_string().contains("filter.toml") && error.hint().is_some());
        }
        assert!(read(&"#".repeat(1 << 21)).unwrap_err().to_string().contains("bytes"));
        assert!(matches!(read_filter(folder.path()), Err(Error::FilterFile { .. })));
    }
}
