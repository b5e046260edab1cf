//! The search spaces that come with the program.

use qdc_core::defaults::PAPER_PAIRS;
use qdc_tune::Distribution;
use serde_json::{Value, json};

use super::space::{Builder, SearchSpace};
use crate::model::{NetworkKind, RewiringKind};
use crate::{Error, Model, Preset};

/// The published space; ranges of our own where the publication gives none (MLP, SDRF, BPDC).
pub(super) fn paper(model: Model) -> Result<SearchSpace, Error> {
    if model.is_bank() {
        let problem = format!("the published search knows no {model}: choose wide, or presets for the bank");
        return Err(Error::SearchSpace { name: "paper".into(), problem });
    }
    let mut space = Builder::default();
    for (number, tower) in model.towers().iter().enumerate() {
        space.search_of(number, "layers", Distribution::categorical([1, 2])?);
        space.search_of(number, "hidden", Distribution::categorical([2, 4, 8, 16, 32, 64, 128])?);
        if tower.network == NetworkKind::Gat {
            space.search_of(number, "heads", Distribution::categorical([1, 2, 3, 4, 5])?);
        }
        space.search_of(number, "dropout", Distribution::uniform(0.0, 0.99)?);
    }
    for (number, tower) in model.towers().iter().enumerate() {
        if tower.rewiring == RewiringKind::Gdc {
            space.search_of(number, "alpha", Distribution::uniform(0.001, 0.5)?);
            space.search_of(number, "epsilon", Distribution::uniform(1e-7, 1e-1)?);
        }
        if tower.rewiring.is_windowed() {
            space.search_of(number, "mu", Distribution::uniform(-1.0, 1.0)?);
            match tower.rewiring {
                RewiringKind::Qdc => space.search_of(number, "sigma", Distribution::uniform(0.1, 1.0)?),
                _ => space.search_of(number, "gamma", Distribution::uniform(0.05, 1.0)?),
            }
            space.search_of(number, "epsilon", Distribution::log_uniform(1e-7, 1e-1)?);
            space.fix("pairs", json!(PAPER_PAIRS));
        }
        search_flow(&mut space, number, tower.rewiring)?;
    }
    if model.towers().len() > 1 {
        space.search("combinator", Distribution::categorical(["concat", "add"])?);
    }
    space.search("learning_rate", Distribution::log_uniform(1e-4, 1e-1)?);
    space.search("weight_decay", Distribution::uniform(0.0, 0.9)?);
    space.finish("paper", model)
}

/// What a careful practitioner would search.
pub(super) fn wide(model: Model) -> Result<SearchSpace, Error> {
    if model.is_bank() {
        return wide_bank(model);
    }
    let mut space = Builder::default();
    for (number, tower) in model.towers().iter().enumerate() {
        space.search_of(number, "layers", Distribution::categorical([1, 2, 3])?);
        space.search_of(number, "hidden", Distribution::categorical([16, 32, 64, 128, 256])?);
        if tower.network == NetworkKind::Gat {
            space.search_of(number, "heads", Distribution::categorical([1, 2, 4, 8])?);
        }
        space.search_of(number, "dropout", Distribution::uniform(0.0, 0.9)?);
    }
    for (number, tower) in model.towers().iter().enumerate() {
        if tower.rewiring == RewiringKind::Gdc {
            space.search_of(number, "alpha", Distribution::uniform(0.01, 0.5)?);
        }
        if tower.rewiring.is_windowed() {
            space.search_of(number, "mu", Distribution::uniform(-1.0, 1.0)?);
            match tower.rewiring {
                RewiringKind::Qdc => space.search_of(number, "sigma", Distribution::log_uniform(0.02, 1.0)?),
                _ => space.search_of(number, "gamma", Distribution::log_uniform(0.02, 1.0)?),
            }
            let pairs = Distribution::categorical([json!(128), json!(512), json!("all")])?;
            space.search_of(number, "pairs", pairs);
        }
        if tower.rewiring.is_kernel() {
            space.search_of(number, "epsilon", Distribution::log_uniform(1e-6, 1e-1)?);
            // null leaves the threshold in place
            let top_k = Distribution::categorical([Value::Null, json!(16), json!(64), json!(256)])?;
            space.search_of(number, "top_k", top_k);
            space.search_of(number, "sign", Distribution::categorical(["positive", "absolute"])?);
        }
        search_flow(&mut space, number, tower.rewiring)?;
    }
    if model.towers().len() > 1 {
        space.search("combinator", Distribution::categorical(["concat", "add"])?);
    }
    space.search("features", Distribution::categorical(["raw", "row"])?);
    space.search("learning_rate", Distribution::log_uniform(1e-3, 1e-1)?);
    space.search("weight_decay", Distribution::log_uniform(1e-7, 1e-1)?);
    space.finish("wide", model)
}

/// Around the presets of the bank; 60 to 100 trials serve.
fn wide_bank(model: Model) -> Result<SearchSpace, Error> {
    let mut space = Builder::default();
    if model.has(|tower| tower.network == NetworkKind::Bank) {
        space.search("channels", Distribution::categorical(["ends", "ends-knn", "ranks"])?);
    }
    space.search("hidden", Distribution::categorical([64, 128])?);
    space.search("norm", Distribution::categorical(["l2", "none"])?);
    space.search("readout", Distribution::categorical(["linear", "layers"])?);
    space.search("dropout", Distribution::uniform(0.2, 0.9)?);
    space.search("input_dropout", Distribution::categorical([0.0, 0.3, 0.5])?);
    space.search("features", Distribution::categorical(["raw", "row"])?);
    space.search("learning_rate", Distribution::log_uniform(1e-3, 0.05)?);
    space.search("weight_decay", Distribution::log_uniform(1e-6, 0.03)?);
    space.search("readout_decay", Distribution::log_uniform(1e-6, 0.01)?);
    space.finish("wide", model)
}

/// The five configurations of the bank, each tried once; for the window its settings as they come, one trial.
pub(super) fn presets(model: Model) -> Result<SearchSpace, Error> {
    let mut space = Builder::default();
    let points: Vec<(&str, Value)> = if model.has(|tower| tower.network == NetworkKind::Bank) {
        space.search("preset", Distribution::categorical(Preset::NAMES)?);
        Preset::NAMES.iter().map(|name| ("preset", json!(name))).collect()
    } else if model.has(|tower| tower.network == NetworkKind::Window) {
        space.search("hidden", Distribution::categorical([64])?);
        vec![("hidden", json!(64))]
    } else {
        let problem = format!("presets are those of the bank and the window; {model} has none");
        return Err(Error::SearchSpace { name: "presets".into(), problem });
    };
    let mut space = space.finish("presets", model)?;
    space.points = points.into_iter().map(|(name, value)| [(name.to_owned(), value)].into()).collect();
    space.complete = true;
    Ok(space)
}

/// The parameters of SDRF, the same in both spaces.
fn search_flow(space: &mut Builder, number: usize, rewiring: RewiringKind) -> Result<(), Error> {
    if rewiring == RewiringKind::Sdrf {
        space.search_of(number, "iterations", Distribution::log_integer(1, 1000)?);
        space.search_of(number, "tau", Distribution::log_uniform(1.0, 500.0)?);
        space.search_of(number, "removal_bound", Distribution::uniform(0.0, 2.0)?);
    }
    Ok(())
}
