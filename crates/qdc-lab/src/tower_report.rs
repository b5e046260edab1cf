//! What the matrix of a tower really is: how dense, how much of it is diagonal, which labels it joins, and
//! how it was made.

use qdc_core::{Recipe, Route};
use serde::{Deserialize, Serialize};

use crate::model::{RewiringKind, Tower};
use crate::rewirings::Rewired;

/// What the matrix of a tower is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TowerReport {
    /// The tower, counting from 1.
    pub tower: usize,
    /// What was done to the graph.
    pub rewiring: RewiringKind,
    /// Entries in a row, on average.
    pub entries_per_row: f64,
    /// The share of a kernel's diagonal in its mass.
    pub diagonal_share: Option<f64>,
    /// The homophily of the graph.
    pub homophily_before: f64,
    /// The homophily of the pattern that the tower sees.
    pub homophily_after: f64,
    /// The route really taken to a kernel; outside the experiment's hash.
    pub route: Option<Route>,
    /// Which kernel.
    pub recipe: Option<Recipe>,
}

impl TowerReport {
    /// The reports of all towers of a model; `homophily` is that of the graph.
    pub(crate) fn of(towers: &[Tower], rewired: &[Rewired], homophily: f64) -> Vec<Self> {
        let of = |(number, (tower, made)): (usize, (&Tower, &Rewired))| Self {
            tower: number + 1,
            rewiring: tower.rewiring,
            entries_per_row: made.matrix.matrix().entries() as f64 / made.matrix.nodes().max(1) as f64,
            diagonal_share: made.report.diagonal_share(),
            homophily_before: homophily,
            homophily_after: made.homophily,
            route: made.report.route(),
            recipe: made.recipe.clone(),
        };
        towers.iter().zip(rewired).enumerate().map(of).collect()
    }

    /// The routes to repeat, tower by tower; `auto` where there was no kernel.
    pub fn routes(towers: &[Self]) -> Vec<Route> {
        towers.iter().map(|tower| tower.route.unwrap_or_default()).collect()
    }
}
