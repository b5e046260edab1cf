//! The table: models by rows, datasets by columns, made from study files.
//!
//! A cell is the test accuracy of the trial that is best on validation: mean and standard deviation over the splits.
//! Significance is the exact sign-flip test of the paired differences to the plain network (GCN or GAT) over the
//! splits: of all 2^n ways to flip signs, the share whose mean is as far from 0.

use std::collections::BTreeMap;

use qdc_tune::storage::Storage;
use qdc_tune::{State, Trial};
use serde::Serialize;
use serde_json::Value;

use crate::model::NetworkKind;
use crate::{Error, Model};

mod format;
mod published;

pub use format::Format;
pub use published::published;

/// One column: a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// The dataset.
    pub dataset: String,
    /// Vertices.
    pub nodes: Option<u64>,
    /// Undirected edges, self-loops counted.
    pub edges: Option<u64>,
    /// Node homophily.
    pub homophily: Option<f64>,
}

/// One entry: a model on a dataset. Accuracies are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The model.
    pub model: Model,
    /// The dataset.
    pub dataset: String,
    /// Mean test accuracy.
    pub test_mean: f64,
    /// Its standard deviation over the splits.
    pub test_std: f64,
    /// Mean validation accuracy.
    pub validation: f64,
    /// Finished trials of the study, and how many it is to have.
    pub trials: (usize, u64),
    /// Whether it is the best of its family (GCN or GAT; an MLP is its own).
    pub best: bool,
    /// Of the paired difference to the plain network.
    pub p_value: Option<f64>,
    /// The published mean and deviation, in fractions.
    pub published: Option<(f64, f64)>,
    /// Test accuracy of each split.
    pub test: Vec<f64>,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Datasets, in the published order, then others by name.
    pub columns: Vec<Column>,
    /// Models, in the published order.
    pub rows: Vec<Model>,
    /// The cells there are.
    pub cells: Vec<Cell>,
}

impl Table {
    /// Reads every study of some storages. Of several studies of one cell the one with the better validation counts.
    pub fn read(storages: &mut [Box<dyn Storage>]) -> Result<Self, Error> {
        let mut columns: BTreeMap<String, Column> = BTreeMap::new();
        let mut cells: Vec<Cell> = Vec::new();
        for storage in storages {
            for study in storage.studies()? {
                let text = |key: &str| study.attributes.get(key).and_then(Value::as_str);
                let (Some(dataset), Some(Ok(model))) =
                    (text("dataset"), text("model").map(str::parse::<Model>))
                else {
                    continue; // not a study of ours
                };
                let number = |key: &str| study.attributes.get(key).and_then(Value::as_u64);
                columns.entry(dataset.to_owned()).or_insert_with(|| Column {
                    dataset: dataset.to_owned(),
                    nodes: number("nodes"),
                    edges: number("edges"),
                    homophily: study.attributes.get("homophily").and_then(Value::as_f64),
                });
                let trials = storage.trials(study.id, 0, &[])?;
                let finished = trials.iter().filter(|trial| trial.state.is_finished()).count();
                let wanted = number("trials").unwrap_or(finished as u64);
                if let Some(cell) = cell(model.clone(), dataset, &trials, (finished, wanted)) {
                    match cells.iter_mut().find(|known| known.model == model && known.dataset == dataset) {
                        Some(known) if known.validation >= cell.validation => {}
                        Some(known) => *known = cell,
                        None => cells.push(cell),
                    }
                }
            }
        }
        let place = |dataset: &str| {
            published::DATASETS.iter().position(|name| *name == dataset).unwrap_or(usize::MAX)
        };
        let mut columns: Vec<Column> = columns.into_values().collect();
        columns.sort_by_key(|column| place(&column.dataset));
        let rows: Vec<Model> = Model::known()
            .into_iter()
            .filter(|model| cells.iter().any(|cell| cell.model == *model))
            .collect();
        let mut table = Self { columns, rows, cells };
        table.compare();
        Ok(table)
    }

    /// The cell of a model and a dataset.
    pub fn cell(&self, model: &Model, dataset: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.model == *model && cell.dataset == dataset)
    }

    /// Marks the best of each family, tests against the plain networks, and looks up the published numbers.
    fn compare(&mut self) {
        let cells = self.cells.clone();
        for cell in &mut self.cells {
            let network = |cell: &Cell| cell.model.towers()[0].network;
            let own = network(cell);
            let family = |other: &&Cell| network(other) == own && other.dataset == cell.dataset;
            let top = cells.iter().filter(family).map(|other| other.test_mean).fold(f64::MIN, f64::max);
            cell.best = cell.test_mean >= top;
            let plain = match own {
                NetworkKind::Mlp | NetworkKind::Bank | NetworkKind::Window => None,
                NetworkKind::Gcn => "gcn".parse().ok(),
                NetworkKind::Gat => "gat".parse().ok(),
            };
            let baseline = plain.filter(|plain: &Model| *plain != cell.model).and_then(|plain| {
                cells.iter().find(|other| other.model == plain && other.dataset == cell.dataset)
            });
            cell.p_value = baseline.and_then(|baseline| sign_flip_test(&cell.test, &baseline.test));
            cell.published = published(&cell.model, &cell.dataset);
        }
    }
}

fn cell(model: Model, dataset: &str, trials: &[Trial], count: (usize, u64)) -> Option<Cell> {
    let value = |trial: &&Trial| trial.value.unwrap_or(f64::NEG_INFINITY);
    let complete = trials.iter().filter(|trial| trial.state == State::Complete);
    let best = complete.fold(None, |best: Option<&Trial>, trial| match best {
        Some(best) if value(&best) >= value(&trial) => Some(best),
        _ => Some(trial),
    })?;
    let test: Vec<f64> =
        best.user_attributes.get("test")?.as_array()?.iter().filter_map(Value::as_f64).collect();
    let number = |key: &str| best.user_attributes.get(key).and_then(Value::as_f64);
    Some(Cell {
        model,
        dataset: dataset.to_owned(),
        test_mean: number("test_mean")?,
        test_std: number("test_std")?,
        validation: best.value?,
        trials: count,
        best: false,
        p_value: None,
        published: None,
        test,
    })
}

/// The two-sided p-value of "the paired differences are as likely positive as negative"; `None` above 20 pairs, where
/// not all signs can be tried, or where the lengths differ.
pub fn sign_flip_test(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() != other.len() || one.is_empty() || one.len() > 20 {
        return None;
    }
    let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
    let observed = differences.iter().sum::<f64>().abs() - 1e-12;
    let ways = 1u32 << differences.len();
    let as_far = (0..ways)
        .filter(|signs| {
            let sum: f64 =
                differences.iter().enumerate().map(|(i, d)| if signs >> i & 1 == 1 { *d } else { -d }).sum();
            sum.abs() >= observed
        })
        .count();
    Some(as_far as f64 / f64::from(ways))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::SearchSpace;
    use qdc_tune::storage::Memory;
    use qdc_tune::{Direction, Outcome, Study};
    use serde_json::json;

    #[test]
    fn the_sign_flip_test_gives_the_exact_share() {
        assert_eq!(sign_flip_test(&[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0]), Some(0.25)); // all signs equal: 2 of 8
        assert_eq!(sign_flip_test(&[1.0, 0.0], &[0.0, 1.0]), Some(1.0));
        assert_eq!(sign_flip_test(&[1.0], &[]), None);
    }

    fn table() -> Table {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        for (model, test) in
            [("gcn", [0.4, 0.5, 0.45]), ("gcn+qdc", [0.6, 0.7, 0.65]), ("mlp", [0.7, 0.7, 0.7])]
        {
            let space = SearchSpace::named("paper", model.parse().unwrap()).unwrap();
            let storage = qdc_tune::storage::Sqlite::open(&file).unwrap();
            let mut study = Study::open(storage, model, Direction::Maximize, space.space).unwrap();
            for (key, value) in [
                ("dataset", json!("cornell")),
                ("model", json!(model)),
                ("nodes", json!(183)),
                ("edges", json!(280)),
                ("homophily", json!(0.106)),
                ("trials", json!(1)),
            ] {
                study.set_attribute(key, value).unwrap();
            }
            let asked = study.ask().unwrap();
            let mean = test.iter().sum::<f64>() / 3.0;
            let outcome = Outcome::complete(mean)
                .with("test", json!(test))
                .with("test_mean", mean)
                .with("test_std", 0.04);
            study.tell(&asked, outcome).unwrap();
        }
        Table::read(&mut [qdc_tune::storage::open(file.to_str().unwrap()).unwrap(), Box::new(Memory::new())])
            .unwrap()
    }

    #[test]
    fn the_best_of_each_family_is_marked_and_published_numbers_stand_beside() {
        let table = table();
        let cell = |model: &str| table.cell(&model.parse().unwrap(), "cornell").unwrap();
        assert!(cell("gcn+qdc").best && !cell("gcn").best && cell("mlp").best);
        assert_eq!(cell("gcn+qdc").published, Some((0.6378, 0.0968)));
        assert_eq!(cell("gcn+qdc").p_value, Some(0.25));
        assert_eq!(cell("gcn").p_value, None);
        let text = table.write(Format::Text, true);
        assert!(text.contains("183") && text.contains("65.00") && text.contains("63.78"), "{text}");
        assert!(table.write(Format::Markdown, false).contains("**65.00 ± 4.00**"));
        assert!(table.write(Format::Latex, false).contains("\\textbf{65.00 $\\pm$ 4.00}"));
        assert_eq!(table.write(Format::Csv, true).lines().count(), 4);
    }
}
