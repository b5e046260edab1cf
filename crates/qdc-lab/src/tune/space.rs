//! Search spaces: what of a model is searched, and what is fixed.
//!
//! `paper` is the appendix of the published method to the letter; `wide` is what a careful practitioner would
//! search; `presets` tries the five configurations of the bank. A user's own is a TOML file:
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

use qdc_tune::{Distribution, Space};
use serde::Serialize;
use serde_json::{Value, json};

use super::presets;
use crate::config::{parse_toml, read_toml};
use crate::hyperparameters::Name;
use crate::{Error, Hyperparameters, Model, bank};

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
    /// Points to be tried first, in order. What a point leaves out is proposed.
    pub points: Vec<BTreeMap<String, Value>>,
    /// Whether these points are the whole search.
    pub complete: bool,
}

impl SearchSpace {
    /// A space by name, or from a TOML file.
    pub fn named(name: &str, model: Model) -> Result<Self, Error> {
        match (name, Self::file_text(name)?) {
            (path, Some(text)) => Self::from_toml(path, &text, model),
            ("paper", None) => presets::paper(model),
            ("wide", None) => presets::wide(model),
            (_, None) => presets::presets(model),
        }
    }

    /// The text of the file that a name stands for, to be read by [`SearchSpace::from_toml`] where the file is
    /// not; `None` for the spaces that are built in.
    ///
    /// # Errors
    /// If it is no name and no file that can be read.
    pub fn file_text(name: &str) -> Result<Option<String>, Error> {
        if matches!(name, "paper" | "wide" | "presets") {
            return Ok(None);
        }
        let unreadable = |problem: String| Error::SearchSpace { name: name.to_owned(), problem };
        read_toml(name.as_ref()).map(Some).map_err(unreadable)
    }

    /// A user's own.
    pub fn from_toml(name: &str, text: &str, model: Model) -> Result<Self, Error> {
        let wrong = |problem: String| Error::SearchSpace { name: name.to_owned(), problem };
        let file: Value = parse_toml(text).map_err(wrong)?;
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
        let mut values = Hyperparameters::new(self.model.clone());
        for (name, value) in &self.fixed {
            values.set_json(name, value)?;
        }
        for (name, _) in self.space.iter() {
            if let Some(value) = point.get(name) {
                values.set_json(name, value)?;
            }
        }
        Ok(values)
    }

    /// How many trials there are to be, where `asked` were asked for.
    pub fn trials(&self, asked: usize) -> usize {
        if self.complete { self.points.len() } else { asked }
    }

    /// Lets the search begin at a point, after those it begins at already: the defaults, with these values in their
    /// place. A default that the space does not hold is left to the sampler. The defaults of a bank are those of the
    /// `preset` that is given, `ends` where none is.
    ///
    /// ```
    /// use qdc_lab::tune::SearchSpace;
    ///
    /// let mut space = SearchSpace::named("paper", "gcn+qdc".parse()?)?;
    /// space.begin_at(&[("mu".into(), "-0.5".into())])?;
    /// assert_eq!((&space.points[0]["mu"], &space.points[0]["sigma"]), (&(-0.5).into(), &0.3.into()));
    /// assert!(space.begin_at(&[("sigma".into(), "7".into())]).is_err()); // beyond the space
    /// # Ok::<(), qdc_lab::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value is none of the model's, or the space does not search it or does not hold it, or if the points of
    /// the space are all there are.
    pub fn begin_at(&mut self, given: &[(String, String)]) -> Result<(), Error> {
        let wrong = |problem: String| Error::StartingPoint { space: self.name.clone(), problem };
        if self.complete {
            return Err(wrong("its points are all there are to try; it begins at no other".into()));
        }
        let mut values = self.hyperparameters(&BTreeMap::new())?;
        let mut own = BTreeMap::new();
        for (name, text) in given {
            values.set(name, text)?;
            // By itself: a threshold and a top-k that are both given both belong to the point.
            let mut alone = Hyperparameters::new(self.model.clone());
            alone.set(name, text)?;
            own.insert(name.as_str(), alone.get(name).map_or(Value::Null, |value| json!(value)));
        }
        let preset = bank::spelled_out(&values);
        let mut point = BTreeMap::new();
        for (name, distribution) in self.space.iter() {
            let default = || values.in_force(name).map_or(Value::Null, |value| json!(value));
            let value = own.get(name).or(preset.get(name)).cloned().unwrap_or_else(default);
            if distribution.internal(&value).is_some() {
                point.insert(name.to_owned(), value);
            } else if own.contains_key(name) {
                return Err(wrong(format!("{name} = {value} is not in {}", distribution.describe())));
            }
        }
        let elsewhere = |name: &str| name != "preset" && self.space.get(name).is_none();
        if let Some(name) = own.keys().find(|name| elsewhere(name)) {
            return Err(wrong(format!("{name} is not searched")));
        }
        self.points.push(point);
        Ok(())
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

/// A space in the making.
#[derive(Default)]
pub(super) struct Builder {
    searched: Vec<(String, Distribution)>,
    fixed: BTreeMap<String, Value>,
}

impl Builder {
    pub(super) fn search(&mut self, name: &str, distribution: Distribution) {
        self.searched.push((name.to_owned(), distribution));
    }

    /// Searches a tower's parameter: under the plain name for the first tower that has it, under the tower's
    /// own after that.
    pub(super) fn search_of(&mut self, tower: usize, line: &'static str, distribution: Distribution) {
        let taken = self.searched.iter().any(|(name, _)| name == line);
        let name = if taken { Name::of_tower(tower, line).to_string() } else { line.to_owned() };
        self.searched.push((name, distribution));
    }

    pub(super) fn fix(&mut self, name: &str, value: Value) {
        self.fixed.insert(name.to_owned(), value);
    }

    /// Checks that every point of the corners is a set of hyper-parameters of the model.
    pub(super) fn finish(self, name: &str, model: Model) -> Result<SearchSpace, Error> {
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
            points: Vec::new(),
            complete: false,
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
                defaults.set_json(parameter, &corner)?;
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
        let space = SearchSpace::named("paper", "gcn+qdc".parse().unwrap()).unwrap();
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
        let space = SearchSpace::named("paper", "gat+multiscale".parse().unwrap()).unwrap();
        assert_eq!(space.space.len(), 14);
        assert!(space.space.get("qdc_heads").is_some() && space.space.get("combinator").is_some());
    }

    #[test]
    fn a_third_tower_is_searched_under_its_own_names() {
        let model: Model = "gcn/gcn+qdc/gcn+qdc".parse().unwrap();
        let space = SearchSpace::named("paper", model.clone()).unwrap();
        for name in ["hidden", "qdc_hidden", "tower3_hidden", "mu", "tower3_mu", "sigma", "tower3_epsilon"] {
            assert!(space.space.get(name).is_some(), "{name}");
        }
        assert!(space.space.get("qdc_mu").is_none(), "the second tower's mu is the plain one");
        let text = "[fixed]\nmu = 0.9\n[search]\ntower3_mu = { low = -1.0, high = 0.0 }";
        let own = SearchSpace::from_toml("own.toml", text, model).unwrap();
        let values = own.hyperparameters(&BTreeMap::from([("tower3_mu".into(), json!(-0.5))])).unwrap();
        assert_eq!(values.get("tower3_mu"), Some(&(-0.5).into()));
        assert_eq!(values.get("mu"), Some(&0.9.into()));
    }

    #[test]
    fn every_model_has_both_spaces() {
        for model in Model::all() {
            for name in ["paper", "wide"] {
                let space = SearchSpace::named(name, model.clone()).unwrap();
                assert!(space.space.len() >= 5, "{name} {model}");
            }
        }
    }

    #[test]
    fn a_file_may_search_and_fix_and_is_checked() {
        let model: Model = "gcn+qdc".parse().unwrap();
        let read = |text: &str| SearchSpace::from_toml("own.toml", text, model.clone());
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
    fn a_search_begins_at_the_defaults_with_the_given_values_in_their_place() {
        let begin = |space: &str, model: &str, given: &[(&str, &str)]| {
            let mut space = SearchSpace::named(space, model.parse().unwrap()).unwrap();
            let given: Vec<_> =
                given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            space.begin_at(&given).map(|()| space)
        };
        let space = begin("wide", "gat+multiscale", &[("qdc_hidden", "128"), ("top_k", "16")]).unwrap();
        let point = &space.points[0];
        assert_eq!((&point["hidden"], &point["qdc_hidden"]), (&json!(64), &json!(128)));
        assert_eq!(point["qdc_heads"], json!(4), "the default of all towers is that of the second");
        assert_eq!(point["top_k"], json!(16));
        assert!(!point.contains_key("epsilon"), "its rival is given, so that it is proposed");
        assert_eq!(space.trials(40), 40);
        let defaults = begin("wide", "gcn+qdc", &[]).unwrap();
        assert_eq!(defaults.points[0]["top_k"], Value::Null);
        assert_eq!(defaults.points[0]["epsilon"], json!(1e-4));
        for given in [[("epsilon", "0.03"), ("top_k", "16")], [("top_k", "16"), ("epsilon", "0.03")]] {
            let both = begin("wide", "gcn+qdc", &given).unwrap();
            assert_eq!((&both.points[0]["epsilon"], &both.points[0]["top_k"]), (&json!(0.03), &json!(16)));
        }
        for (space, model, given, word) in [
            ("paper", "gcn+qdc", ("sigma", "3"), "[0.1, 1]"),
            ("paper", "gcn+qdc", ("pairs", "all"), "not searched"),
            ("paper", "gcn+qdc", ("mew", "0.5"), "mew"),
            ("presets", "bank", ("preset", "ends"), "all there are"),
        ] {
            let error = begin(space, model, &[given]).unwrap_err().to_string();
            assert!(error.contains(word), "{given:?}: {error}");
        }
    }

    #[test]
    fn a_search_of_a_bank_begins_at_a_preset() {
        let begin = |model: &str, given: &[(&str, &str)]| {
            let mut space = SearchSpace::named("wide", model.parse().unwrap()).unwrap();
            let given: Vec<_> =
                given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            space.begin_at(&given).map(|()| space)
        };
        let ends = begin("bank", &[]).unwrap();
        let point = &ends.points[0];
        assert_eq!(point.len(), ends.space.len(), "nothing is left to the sampler: {point:?}");
        assert_eq!((&point["channels"], &point["hidden"]), (&json!("ends"), &json!(64)));
        assert_eq!((&point["weight_decay"], &point["readout_decay"]), (&json!(3e-3), &json!(1e-4)));
        let ranks = begin("bank", &[("dropout", "0.7"), ("preset", "ranks")]).unwrap();
        let point = &ranks.points[0];
        assert_eq!((&point["channels"], &point["learning_rate"]), (&json!("ranks"), &json!(0.002)));
        assert_eq!(point["dropout"], json!(0.7), "what is given stands before the preset's");
        let window = begin("window", &[]).unwrap();
        assert_eq!(window.points[0]["input_dropout"], json!(0.3));
        assert_eq!(window.points[0]["weight_decay"], json!(0.01));
        assert!(begin("window", &[("preset", "ends")]).is_err(), "a window has no presets");
        let error = begin("bank", &[("dropout_on", "channels")]).unwrap_err().to_string();
        assert!(error.contains("dropout_on is not searched"), "{error}");
    }

    #[test]
    fn top_k_of_null_leaves_the_threshold() {
        let space = SearchSpace::named("wide", "gcn+qdc".parse().unwrap()).unwrap();
        let point = |top_k: Value| BTreeMap::from([("epsilon".into(), json!(0.01)), ("top_k".into(), top_k)]);
        assert_eq!(space.hyperparameters(&point(Value::Null)).unwrap().get("epsilon"), Some(&0.01.into()));
        assert_eq!(space.hyperparameters(&point(json!(64))).unwrap().get("epsilon"), None);
    }
}
