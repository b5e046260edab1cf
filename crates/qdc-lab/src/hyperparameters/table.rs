//! The table of hyper-parameters: a line for each.

use super::domain::{Domain, Value};
use crate::Model;
use crate::model::{NetworkKind, RewiringKind};

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// The values it can take.
    pub domain: Domain,
    /// The value where nothing is said; none: unset.
    pub default: Default,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Which models have it.
    applies: fn(Model) -> bool,
}

impl Entry {
    /// Whether `model` has this hyper-parameter.
    pub fn applies_to(&self, model: Model) -> bool {
        (self.applies)(model)
    }
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A word.
    Text(&'static str),
    /// Nothing; the meaning says what that means.
    Unset,
}

impl Default {
    /// As a value, where there is one.
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Integer(value) => Some(Value::Integer(value)),
            Self::Real(value) => Some(Value::Real(value)),
            Self::Text(value) => Some(Value::Text(value.into())),
            Self::Unset => None,
        }
    }
}

const fn reals(low: f64, high: f64, low_included: bool, high_included: bool) -> Domain {
    Domain::Real { low, high, low_included, high_included }
}

fn network(model: Model) -> bool {
    model.network() != NetworkKind::Mlp
}
fn kernel(model: Model) -> bool {
    model.uses(|kind| matches!(kind, RewiringKind::Gdc | RewiringKind::Bpdc | RewiringKind::Qdc))
}
fn windowed(model: Model) -> bool {
    model.uses(|kind| matches!(kind, RewiringKind::Bpdc | RewiringKind::Qdc))
}
fn gat(model: Model) -> bool {
    model.network() == NetworkKind::Gat
}
fn sdrf(model: Model) -> bool {
    model.uses(|kind| kind == RewiringKind::Sdrf)
}
fn gdc(model: Model) -> bool {
    model.uses(|kind| kind == RewiringKind::Gdc)
}

const INFINITY: f64 = f64::INFINITY;

/// Every hyper-parameter.
#[rustfmt::skip]
pub const TABLE: [Entry; 28] = {
    use qdc_core::defaults as core;
    use Domain::{Choice, CountOr, Integer};
    [
        Entry { name: "layers", domain: Integer { low: 1, high: 64 }, default: Default::Integer(2), meaning: "number of layers", applies: |_| true },
        Entry { name: "hidden", domain: Integer { low: 1, high: 16384 }, default: Default::Integer(64), meaning: "columns of a hidden layer; of each head, in an attention", applies: |_| true },
        Entry { name: "heads", domain: Integer { low: 1, high: 256 }, default: Default::Integer(4), meaning: "heads of an attention", applies: gat },
        Entry { name: "dropout", domain: reals(0.0, 1.0, true, false), default: Default::Real(0.5), meaning: "share of each layer's input, and of attention, dropped in training", applies: |_| true },
        Entry { name: "learning_rate", domain: reals(0.0, 10.0, false, true), default: Default::Real(0.01), meaning: "learning rate of Adam", applies: |_| true },
        Entry { name: "weight_decay", domain: reals(0.0, 10.0, true, true), default: Default::Real(5e-4), meaning: "L2 decay of all parameters", applies: |_| true },
        Entry { name: "features", domain: Choice(&["raw", "row"]), default: Default::Text("raw"), meaning: "features as they are, or with rows that sum to 1", applies: |_| true },
        Entry { name: "mu", domain: reals(-2.0, 2.0, true, true), default: Default::Real(core::MU), meaning: "centre of the filter", applies: windowed },
        Entry { name: "sigma", domain: reals(0.0, 100.0, false, true), default: Default::Real(core::SIGMA), meaning: "width of the Gaussian filter", applies: |m| m.uses(|k| k == RewiringKind::Qdc) },
        Entry { name: "gamma", domain: reals(0.0, 100.0, false, true), default: Default::Real(core::GAMMA), meaning: "half width of the band filter", applies: |m| m.uses(|k| k == RewiringKind::Bpdc) },
        Entry { name: "alpha", domain: reals(0.0, 1.0, false, true), default: Default::Real(core::ALPHA), meaning: "teleport probability of PageRank", applies: gdc },
        Entry { name: "time", domain: reals(0.0, 1000.0, false, true), default: Default::Unset, meaning: "time of the heat kernel; where it is set, the heat kernel takes the place of PageRank", applies: gdc },
        Entry { name: "epsilon", domain: reals(0.0, INFINITY, false, false), default: Default::Real(core::EPSILON), meaning: "entries of the kernel below it are dropped", applies: kernel },
        Entry { name: "top_k", domain: Integer { low: 1, high: u32::MAX as u64 }, default: Default::Unset, meaning: "where it is set, the largest entries of each row are kept instead", applies: kernel },
        Entry { name: "pairs", domain: CountOr("all"), default: Default::Text("all"), meaning: "eigenpairs that enter the kernel: the nearest to mu, or all", applies: windowed },
        Entry { name: "sign", domain: Choice(&["positive", "absolute"]), default: Default::Text("positive"), meaning: "whether entries are compared by value or by magnitude", applies: kernel },
        Entry { name: "normalize", domain: Choice(&["sym", "row", "col", "none"]), default: Default::Text("sym"), meaning: "how the kernel is normalised", applies: kernel },
        Entry { name: "self_loop", domain: reals(0.0, 1000.0, true, true), default: Default::Real(core::SELF_LOOP), meaning: "weight of the self-loops in the transition matrix", applies: network },
        Entry { name: "edge_values", domain: Choice(&["ignore", "multiply", "bias"]), default: Default::Text("ignore"), meaning: "what the matrix's values do in an attention", applies: gat },
        Entry { name: "combinator", domain: Choice(&["concat", "add"]), default: Default::Text("concat"), meaning: "how two towers meet", applies: Model::is_multiscale },
        Entry { name: "qdc_layers", domain: Integer { low: 1, high: 64 }, default: Default::Unset, meaning: "layers of the second tower; unset: as many as the first", applies: Model::is_multiscale },
        Entry { name: "qdc_hidden", domain: Integer { low: 1, high: 16384 }, default: Default::Unset, meaning: "hidden columns of the second tower; unset: as the first", applies: Model::is_multiscale },
        Entry { name: "qdc_heads", domain: Integer { low: 1, high: 256 }, default: Default::Unset, meaning: "heads of the second tower; unset: as the first", applies: |m| gat(m) && m.is_multiscale() },
        Entry { name: "qdc_dropout", domain: reals(0.0, 1.0, true, false), default: Default::Unset, meaning: "dropout of the second tower; unset: as the first", applies: Model::is_multiscale },
        Entry { name: "iterations", domain: Integer { low: 0, high: 10_000_000 }, default: Default::Integer(core::ITERATIONS as u64), meaning: "edges SDRF adds at most", applies: sdrf },
        Entry { name: "tau", domain: reals(0.0, INFINITY, false, true), default: Default::Real(core::TAU), meaning: "how sharply SDRF prefers the best edge; inf: always the best", applies: sdrf },
        Entry { name: "removal_bound", domain: reals(-INFINITY, INFINITY, false, true), default: Default::Real(core::REMOVAL_BOUND), meaning: "curvature above which SDRF removes an edge; inf: never", applies: sdrf },
        Entry { name: "variant", domain: Choice(&["formula", "code"]), default: Default::Text("formula"), meaning: "the curvature of SDRF: the published formula, or the published program's", applies: sdrf },
    ]
};
