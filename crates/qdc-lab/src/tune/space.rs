//! Search spaces: what of a model is searched, and what is fixed.
//!
//! `paper` is the appendix of the published method to the letter; `wide` is what a careful practitioner would search.
//! A user's own is a TOML file:
//!
//! ```toml
//! [fixed]
//! pairs = 512
//! [search]
//! hidden = [16, 32, 64]                        # one of a list
//! dropout = { low = 0.0, high = 0.9 }
//! learning_rate = { low = 1e-3, high = 1e-1, log = true }
//! heads = { low = 1, high = 8 }                # whole numbers: both ends are
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use qdc_core::defaults::PAPER_PAIRS;
use qdc_tune::{Distribution, Space};
use serde::Serialize;
use serde_json::{Value, json};

use crate::hyperparameters;
use crate::model::{NetworkKind, RewiringKind};
use crate::{Error, Hyperparameters, Model};

/// The parameters of a model that are searched, and those that are fixed to something else than their default.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSpace {
    /// `paper`, `wide`, or the name of a file.
    pub name: String,
    /// The model.
    pub model: Model,
    /// What is searched, in order.
    pub space: Space,
    /// What is fixed.
    pub fixed: BTreeMap<String, Value>,
}

impl SearchSpace {
    /// The published space; ranges of our own where the publication gives none (MLP, SDRF, BPDC).
    pub fn paper(model: Model) -> Result<Self, Error> {
        let mut space = Builder::default();
        let layers = || Distribution::categorical([1, 2]);
        let hidden = || Distribution::categorical([2, 4, 8, 16, 32, 64, 128]);
        let heads = || Distribution::categorical([1, 2, 3, 4, 5]);
        let dropout = || Distribution::uniform(0.0, 0.99);
        let attention = model.network() == NetworkKind::Gat;
        let towers: &[&str] = if model.is_multiscale() { &["", "qdc_"] } else { &[""] };
        for tower in towers {
            space.search(&format!("{tower}layers"), layers()?);
            space.search(&format!("{tower}hidden"), hidden()?);
            if attention {
                space.search(&format!("{tower}heads"), heads()?);
            }
            space.search(&format!("{tower}dropout"), dropout()?);
        }
        if model.uses(|kind| kind == RewiringKind::Gdc) {
            space.search("alpha", Distribution::uniform(0.001, 0.5)?);
            space.search("epsilon", Distribution::uniform(1e-7, 1e-1)?);
        }
        if windowed(model) {
            space.search("mu", Distribution::uniform(-1.0, 1.0)?);
            if model.uses(|kind| kind == RewiringKind::Qdc) {
                space.search("sigma", Distribution::uniform(0.1, 1.0)?);
            } else {
                space.search("gamma", Distribution::uniform(0.05, 1.0)?);
            }
            space.search("epsilon", Distribution::log_uniform(1e-7, 1e-1)?);
            space.fix("pairs", json!(PAPER_PAIRS));
        }
        if model.uses(|kind| kind == RewiringKind::Sdrf) {
            space.search("iterations", Distribution::log_integer(1, 1000)?);
            space.search("tau", Distribution::log_uniform(1.0, 500.0)?);
            space.search("removal_bound", Distribution::uniform(0.0, 2.0)?);
        }
        if model.is_multiscale() {
            space.search("combinator", Distribution::categorical(["concat", "add"])?);
        }
        space.search("learning_rate", Distribution::log_uniform(1e-4, 1e-1)?);
        space.search("weight_decay", Distribution::uniform(0.0, 0.9)?);
        space.finish("paper", model)
    }

    /// What a careful practitioner would search.
    pub fn wide(model: Model) -> Result<Self, Error> {
        let mut space = Builder::default();
        let attention = model.network() == NetworkKind::Gat;
        let towers: &[&str] = if model.is_multiscale() { &["", "qdc_"] } else { &[""] };
        for tower in towers {
            space.search(&format!("{tower}layers"), Distribution::categorical([1, 2, 3])?);
            space.search(&format!("{tower}hidden"), Distribution::categorical([16, 32, 64, 128, 256])?);
            if attention {
                space.search(&format!("{tower}heads"), Distribution::categorical([1, 2, 4, 8])?);
            }
            space.search(&format!("{tower}dropout"), Distribution::uniform(0.0, 0.9)?);
        }
        if model.uses(|kind| kind == RewiringKind::Gdc) {
            space.search("alpha", Distribution::uniform(0.01, 0.5)?);
        }
        if windowed(model) {
            space.search("mu", Distribution::uniform(-1.0, 1.0)?);
            if model.uses(|kind| kind == RewiringKind::Qdc) {
                space.search("sigma", Distribution::log_uniform(0.02, 1.0)?);
            } else {
                space.search("gamma", Distribution::log_uniform(0.02, 1.0)?);
            }
            space.search("pairs", Distribution::categorical([json!(128), json!(512), json!("all")])?);
        }
        if windowed(model) || model.uses(|kind| kind == RewiringKind::Gdc) {
            space.search("epsilon", Distribution::log_uniform(1e-6, 1e-1)?);
            // null leaves the threshold in place
            space
                .search("top_k", Distribution::categorical([Value::Null, json!(16), json!(64), json!(256)])?);
            space.search("sign", Distribution::categorical(["positive", "absolute"])?);
        }
        if model.uses(|kind| kind == RewiringKind::Sdrf) {
            space.search("iterations", Distribution::log_integer(1, 1000)?);
            space.search("tau", Distribution::log_uniform(1.0, 500.0)?);
            space.search("removal_bound", Distribution::uniform(0.0, 2.0)?);
        }
        if model.is_multiscale() {
            space.search("combinator", Distribution::categorical(["concat", "add"])?);
        }
        space.search("features", Distribution::categorical(["raw", "row"])?);
        space.search("learning_rate", Distribution::log_uniform(1e-3, 1e-1)?);
        space.search("weight_decay", Distribution::log_uniform(1e-7, 1e-1)?);
        space.finish("wide", model)
    }

    /// A space by name, or from a TOML file.
    pub fn named(name: &str, model: Model) -> Result<Self, Error> {
        match name {
            "paper" => Self::paper(model),
            "wide" => Self::wide(model),
            path => {
                let unreadable = |problem: String| Error::SearchSpace { name: path.to_owned(), problem };
                let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
                Self::from_toml(path, &text, model)
            }
        }
    }

    /// A user's own.
    pub fn from_toml(name: &str, text: &str, model: Model) -> Result<Self, Error> {
        let wrong = |problem: String| Error::SearchSpace { name: name.to_owned(), problem };
        let file: Value = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let mut space = Builder::default();
        for (section, entries) in file.as_object().into_iter().flatten() {
            let Some(entries) = entries.as_object() else {
                return Err(wrong(format!("'{section}' is no section")));
            };
            for (parameter, value) in entries {
                match section.as_str() {
                    "fixed" => space.fix(parameter, value.clone()),
                    "search" => {
                        let distribution = distribution(value)
                            .map_err(|problem| wrong(format!("{parameter}: {problem}")))?;
                        space.search(parameter, distribution);
                    }
                    other => return Err(wrong(format!("section [{other}] is neither [search] nor [fixed]"))),
                }
            }
        }
        // Python and Rust files list names in any order; the sampler needs one
        space.searched.sort_by(|one, other| one.0.cmp(&other.0));
        space.finish(name, model)
    }

    /// The hyper-parameters of a point.
    pub fn hyperparameters(&self, point: &BTreeMap<String, Value>) -> Result<Hyperparameters, Error> {
        let mut values = Hyperparameters::new(self.model);
        for (name, value) in &self.fixed {
            put(&mut values, name, value)?;
        }
        for (name, _) in self.space.iter() {
            if let Some(value) = point.get(name) {
                put(&mut values, name, value)?;
            }
        }
        Ok(values)
    }

    /// The space for people: a line a parameter.
    pub fn text(&self) -> String {
        let mut text = format!("{} for {}\n", self.name, self.model);
        for (name, distribution) in self.space.iter() {
            let _ = writeln!(text, "  {name:<14} {}", distribution.describe());
        }
        for (name, value) in &self.fixed {
            let _ = writeln!(
                text,
                "  {name:<14} fixed to {}",
                value.as_str().map_or(value.to_string(), str::to_owned)
            );
        }
        text
    }

    /// The space for programs.
    pub fn json(&self) -> Value {
        let search: Vec<Value> = self
            .space
            .iter()
            .map(|(name, distribution)| json!({ "parameter": name, "distribution": distribution }))
            .collect();
        json!({ "name": self.name, "model": self.model, "search": search, "fixed": self.fixed })
    }
}

impl Serialize for SearchSpace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

fn windowed(model: Model) -> bool {
    model.uses(|kind| matches!(kind, RewiringKind::Qdc | RewiringKind::Bpdc))
}

/// Sets a hyper-parameter; null leaves it alone.
fn put(values: &mut Hyperparameters, name: &str, value: &Value) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => values.set_value(name, text.as_str()),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => values.set_value(name, whole),
            None => values.set_value(name, number.as_f64().unwrap_or(f64::NAN)),
        },
        other => values.set_value(name, hyperparameters::Value::Text(other.to_string())),
    }
}

fn distribution(value: &Value) -> Result<Distribution, String> {
    let made = match value {
        Value::Array(choices) => Distribution::categorical(choices.clone()),
        Value::Object(range) => {
            if let Some(extra) = range.keys().find(|key| !["low", "high", "log"].contains(&key.as_str())) {
                return Err(format!("'{extra}' is none of low, high, log"));
            }
            let log = range.get("log").is_some_and(|log| log == &Value::Bool(true));
            let (low, high) = (&value["low"], &value["high"]);
            match (low.as_i64(), high.as_i64(), low.as_f64(), high.as_f64()) {
                (Some(low), Some(high), ..) if log => Distribution::log_integer(low, high),
                (Some(low), Some(high), ..) => Distribution::integer(low, high),
                (_, _, Some(low), Some(high)) if log => Distribution::log_uniform(low, high),
                (_, _, Some(low), Some(high)) => Distribution::uniform(low, high),
                _ => return Err("a range needs numbers low and high".into()),
            }
        }
        _ => return Err("it must be a list of choices, or a range { low, high, log }".into()),
    };
    made.map_err(|error| error.to_string())
}

#[derive(Default)]
struct Builder {
    searched: Vec<(String, Distribution)>,
    fixed: BTreeMap<String, Value>,
}

impl Builder {
    fn search(&mut self, name: &str, distribution: Distribution) {
        self.searched.push((name.to_owned(), distribution));
    }

    fn fix(&mut self, name: &str, value: Value) {
        self.fixed.insert(name.to_owned(), value);
    }

    /// Checks that every point of the corners is a set of hyper-parameters of the model.
    fn finish(self, name: &str, model: Model) -> Result<SearchSpace, Error> {
        if let Some((twice, _)) = self.searched.iter().find(|(name, _)| self.fixed.contains_key(name)) {
            return Err(Error::SearchSpace {
                name: name.to_owned(),
                problem: format!("{twice} is searched and fixed"),
            });
        }
        let space = SearchSpace {
            name: name.to_owned(),
            model,
            space: Space::new(self.searched)?,
            fixed: self.fixed,
        };
        let mut defaults = space.hyperparameters(&BTreeMap::new())?;
        for (parameter, distribution) in space.space.iter() {
            let corners = match distribution {
                Distribution::Categorical { choices } => choices.clone(),
                Distribution::Float { low, high, .. } => vec![json!(low), json!(high)],
                Distribution::Integer { low, high, .. } => vec![json!(low), json!(high)],
                _ => Vec::new(),
            };
            for corner in corners {
                put(&mut defaults, parameter, &corner)?;
            }
        }
        Ok(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(space: &SearchSpace) -> Vec<String> {
        space.space.iter().map(|(name, distribution)| format!("{name} {}", distribution.describe())).collect()
    }

    #[test]
    fn the_published_space_of_gcn_qdc_is_that_of_the_appendix() {
        let space = SearchSpace::paper("gcn+qdc".parse().unwrap()).unwrap();
        assert_eq!(
            names(&space),
            [
                "layers {1, 2}",
                "hidden {2, 4, 8, 16, 32, 64, 128}",
                "dropout [0, 0.99]",
                "mu [-1, 1]",
                "sigma [0.1, 1]",
                "epsilon log [0.0000001, 0.1]",
                "learning_rate log [0.0001, 0.1]",
                "weight_decay [0, 0.9]",
            ]
        );
        assert_eq!(space.fixed["pairs"], 512);
    }

    #[test]
    fn a_multiscale_attention_has_two_towers_and_fourteen_parameters() {
        let space = SearchSpace::paper("gat+multiscale".parse().unwrap()).unwrap();
        assert_eq!(space.space.len(), 14);
        assert!(space.space.get("qdc_heads").is_some() && space.space.get("combinator").is_some());
    }

    #[test]
    fn every_model_has_both_spaces() {
        for model in Model::all() {
            for name in ["paper", "wide"] {
                let space = SearchSpace::named(name, model).unwrap();
                assert!(space.space.len() >= 5, "{name} {model}");
            }
        }
    }

    #[test]
    fn a_file_may_search_and_fix_and_is_checked() {
        let model: Model = "gcn+qdc".parse().unwrap();
        let read = |text: &str| SearchSpace::from_toml("own.toml", text, model);
        let space =
            read("[fixed]\npairs = 'all'\n[search]\nhidden = [16, 32]\nsigma = { low = 0.1, high = 0.5 }")
                .unwrap();
        assert_eq!(names(&space), ["hidden {16, 32}", "sigma [0.1, 0.5]"]);
        for (bad, word) in [
            ("[search]\nsigma = { low = 0.5, high = 0.1 }", "above high"),
            ("[search]\nheads = [1, 2]", "heads"),
            ("[search]\nnonsense = [1]", "nonsense"),
            ("[search]\ndropout = { low = 0.0, high = 1.5 }", "dropout"),
            ("[serach]\nhidden = [1]", "serach"),
            ("[fixed]\npairs = 512", "no parameters"),
            ("hidden = ", "hidden"),
            ("[search]\nmu = [0.1]\n[fixed]\nmu = 0.2", "searched and fixed"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }

    #[test]
    fn top_k_of_null_leaves_the_threshold() {
        let space = SearchSpace::wide("gcn+qdc".parse().unwrap()).unwrap();
        let point = |top_k: Value| BTreeMap::from([("epsilon".into(), json!(0.01)), ("top_k".into(), top_k)]);
        assert_eq!(space.hyperparameters(&point(Value::Null)).unwrap().optional_real("epsilon"), Some(0.01));
        assert_eq!(space.hyperparameters(&point(json!(64))).unwrap().optional_real("epsilon"), None);
    }
}
