//! The table of hyper-parameters: a line for each.

use super::domain::{Domain, Value};
use crate::Preset;
use crate::model::{Model, NetworkKind, RewiringKind, Tower};

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// The values it can take.
    pub domain: Domain,
    /// The value where nothing is said; none: unset, and the meaning says what that means.
    pub default: Option<Value>,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// What has it.
    pub of: Of,
}

/// What has a hyper-parameter.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// The whole model, if it is of this sort.
    Model(fn(&Model) -> bool),
    /// Each tower of this sort: a value for all of them, and one for each that differs.
    Tower(fn(Tower) -> bool),
}

impl Entry {
    /// Whether `model` has this hyper-parameter.
    pub fn applies_to(&self, model: &Model) -> bool {
        match self.of {
            Of::Model(test) => test(model),
            Of::Tower(test) => model.has(test),
        }
    }

    /// Whether a tower has it as its own.
    pub fn applies_to_tower(&self, tower: Tower) -> bool {
        matches!(self.of, Of::Tower(test) if test(tower))
    }
}

const fn integers(low: u64, high: u64) -> Domain {
    Domain::Integer { low, high }
}

const fn reals(low: f64, high: f64, low_included: bool, high_included: bool) -> Domain {
    Domain::Real { low, high, low_included, high_included }
}

const fn whole(value: usize) -> Option<Value> {
    Some(Value::Integer(value as u64))
}

const fn real(value: f64) -> Option<Value> {
    Some(Value::Real(value))
}

const fn word(value: &'static str) -> Option<Value> {
    Some(Value::word(value))
}

const EVERY_MODEL: Of = Of::Model(|_| true);
const SEVERAL_TOWERS: Of = Of::Model(|model| model.towers().len() > 1);
const EVERY_TOWER: Of = Of::Tower(|_| true);
const GAT: Of = Of::Tower(|tower| tower.network == NetworkKind::Gat);
const ON_GRAPH: Of = Of::Tower(|tower| tower.network != NetworkKind::Mlp && !tower.network.is_bank());
const LAYERED: Of = Of::Tower(|tower| !tower.network.is_bank());
const CHANNELLED: Of = Of::Tower(|tower| tower.network.is_bank());
const BANK: Of = Of::Tower(|tower| tower.network == NetworkKind::Bank);
const KERNEL: Of = Of::Tower(|tower| tower.rewiring.is_kernel());
const WINDOWED: Of = Of::Tower(|tower| tower.rewiring.is_windowed());
const QDC: Of = Of::Tower(|tower| tower.rewiring == RewiringKind::Qdc);
const BPDC: Of = Of::Tower(|tower| tower.rewiring == RewiringKind::Bpdc);
const GDC: Of = Of::Tower(|tower| tower.rewiring == RewiringKind::Gdc);
const SDRF: Of = Of::Tower(|tower| tower.rewiring == RewiringKind::Sdrf);

const INFINITY: f64 = f64::INFINITY;

/// Every hyper-parameter.
#[rustfmt::skip]
pub static TABLE: [Entry; 32] = {
    use qdc_core::defaults as core;
    use Domain::{Choice, CountOr};
    [
        Entry { name: "layers", domain: integers(1, 64), default: whole(2), meaning: "number of layers", of: LAYERED },
        Entry { name: "hidden", domain: integers(1, 16384), default: whole(64), meaning: "columns of a hidden layer; of each head, in an attention", of: EVERY_TOWER },
        Entry { name: "heads", domain: integers(1, 256), default: whole(4), meaning: "heads of an attention", of: GAT },
        Entry { name: "dropout", domain: reals(0.0, 1.0, true, false), default: real(0.5), meaning: "share of each layer's input, and of attention, dropped in training", of: EVERY_TOWER },
        Entry { name: "edge_values", domain: Choice(&["ignore", "multiply", "bias"]), default: word("ignore"), meaning: "what the matrix's values do in an attention", of: GAT },
        Entry { name: "learning_rate", domain: reals(0.0, 10.0, false, true), default: real(0.01), meaning: "learning rate of Adam", of: EVERY_MODEL },
        Entry { name: "weight_decay", domain: reals(0.0, 10.0, true, true), default: real(5e-4), meaning: "L2 decay of all parameters", of: EVERY_MODEL },
        Entry { name: "features", domain: Choice(&["raw", "row"]), default: word("raw"), meaning: "features as they are, or with rows that sum to 1", of: EVERY_MODEL },
        Entry { name: "combinator", domain: Choice(&["concat", "add"]), default: word("concat"), meaning: "how towers meet", of: SEVERAL_TOWERS },
        Entry { name: "preset", domain: Choice(&Preset::NAMES), default: word("ends"), meaning: "the configuration of a bank, for whatever is not set", of: BANK },
        Entry { name: "channels", domain: Choice(&["ends", "ends-knn", "ranks"]), default: None, meaning: "the windows of a bank; unset, as all that follow: the preset's", of: BANK },
        Entry { name: "norm", domain: Choice(&["l2", "none"]), default: None, meaning: "whether rows of a channel are divided by their norm", of: CHANNELLED },
        Entry { name: "readout", domain: Choice(&["linear", "layers"]), default: None, meaning: "what follows the channels: a matrix, or two layers", of: CHANNELLED },
        Entry { name: "input_dropout", domain: reals(0.0, 1.0, true, false), default: None, meaning: "share of each channel's input dropped in training", of: CHANNELLED },
        Entry { name: "dropout_on", domain: Choice(&["features", "channels"]), default: None, meaning: "what input dropout acts on: features before a window, or the channel after it", of: BANK },
        Entry { name: "readout_decay", domain: reals(0.0, 10.0, true, true), default: None, meaning: "L2 decay of a bank's readout", of: CHANNELLED },
        Entry { name: "mu", domain: reals(-2.0, 2.0, true, true), default: real(core::MU), meaning: "centre of the filter", of: WINDOWED },
        Entry { name: "sigma", domain: reals(0.0, 100.0, false, true), default: real(core::SIGMA), meaning: "width of the Gaussian filter", of: QDC },
        Entry { name: "gamma", domain: reals(0.0, 100.0, false, true), default: real(core::GAMMA), meaning: "half width of the band filter", of: BPDC },
        Entry { name: "alpha", domain: reals(0.0, 1.0, false, true), default: real(core::ALPHA), meaning: "teleport probability of PageRank", of: GDC },
        Entry { name: "time", domain: reals(0.0, 1000.0, false, true), default: None, meaning: "time of the heat kernel; where it is set, the heat kernel takes the place of PageRank", of: GDC },
        Entry { name: "epsilon", domain: reals(0.0, INFINITY, false, false), default: real(core::EPSILON), meaning: "entries of the kernel below it are dropped", of: KERNEL },
        Entry { name: "top_k", domain: integers(1, u32::MAX as u64), default: None, meaning: "where it is set, the largest entries of each row are kept instead", of: KERNEL },
        Entry { name: "pairs", domain: CountOr("all"), default: word("all"), meaning: "eigenpairs that enter the kernel: the nearest to mu, or all", of: WINDOWED },
        Entry { name: "sign", domain: Choice(&["positive", "absolute"]), default: word("positive"), meaning: "whether entries are compared by value or by magnitude", of: KERNEL },
        Entry { name: "normalize", domain: Choice(&["sym", "row", "col", "none"]), default: word("sym"), meaning: "how the kernel is normalised", of: KERNEL },
        Entry { name: "diagonal", domain: Choice(&["keep", "drop"]), default: word("keep"), meaning: "whether the kernel's diagonal stays; dropped before it is normalised", of: KERNEL },
        Entry { name: "self_loop", domain: reals(0.0, 1000.0, true, true), default: real(core::SELF_LOOP), meaning: "weight of the self-loops in the transition matrix", of: ON_GRAPH },
        Entry { name: "iterations", domain: integers(0, 10_000_000), default: whole(core::ITERATIONS), meaning: "edges SDRF adds at most", of: SDRF },
        Entry { name: "tau", domain: reals(0.0, INFINITY, false, true), default: real(core::TAU), meaning: "how sharply SDRF prefers the best edge; inf: always the best", of: SDRF },
        Entry { name: "removal_bound", domain: reals(-INFINITY, INFINITY, false, true), default: real(core::REMOVAL_BOUND), meaning: "curvature above which SDRF removes an edge; inf: never", of: SDRF },
        Entry { name: "variant", domain: Choice(&["formula", "code"]), default: word("formula"), meaning: "the curvature of SDRF: the published formula, or the published program's", of: SDRF },
    ]
};
