//! The table: experiments by rows, datasets by columns, made from study files.
//!
//! A cell is the test score of the trial that is best on validation: its mean over splits and seeds, and the
//! standard deviation over splits. Unlike experiments have rows of their own: other models, other spaces,
//! other studies.

use std::collections::BTreeMap;

use qdc_tune::storage::{Storage, StudyRecord};
use qdc_tune::{State, Trial};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rewiring::NEARLY_NOTHING;
use crate::tune::identity::{HASH, RECORD};
use crate::tune::rescore;
use crate::{Error, Model, Summary};

mod format;
mod published;
mod results;
mod searched;
mod significance;

pub use format::Format;
pub use published::published;
pub use results::Results;
pub use searched::Searched;
pub use significance::{Comparison, holm, sign_flip_test};

/// One column: a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// What a row is about: experiments that differ in the dataset only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The model.
    pub model: Model,
    /// The search space.
    pub space: String,
    /// The study's name, where it is not the usual one, or where a file holds another study of that cell.
    pub study: String,
}

/// One entry: an experiment on a dataset. Scores are fractions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it is, but for the dataset.
    #[serde(flatten)]
    pub row: Row,
    /// The dataset.
    pub dataset: String,
    /// The study's full name.
    pub name: String,
    /// The hash of the experiment; none in studies of earlier versions.
    pub experiment: Option<String>,
    /// What the scores are measured by.
    pub metric: String,
    /// Mean test score over splits and seeds.
    pub test_mean: f64,
    /// Its standard deviation over the splits.
    pub test_std: f64,
    /// Mean validation score over the same splits and seeds; files of results call it what `qdc train` does. With
    /// several seeds it is not the best of a search any more, so cells of long and short searches compare.
    #[serde(alias = "validation_mean")]
    pub validation: f64,
    /// The number of the trial that is best on validation.
    pub trial: u64,
    /// Finished trials of the study.
    pub trials: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many of them were given up early, being below the median of the others.
    #[serde(default)]
    pub pruned: usize,
    /// How many of the best trials were scored with these seeds, before their validation decided.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub finalists: usize,
    /// How many points the search was told to begin at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started: usize,
    /// What all trials took together.
    pub seconds: f64,
    /// Trials the study is to have.
    pub wanted: u64,
    /// Seeds the best trial was scored with.
    pub seeds: usize,
    /// Whether no other cell of the dataset is better.
    pub best: bool,
    /// The paired comparison with the GCN of the same space and study.
    pub versus_gcn: Option<Comparison>,
    /// The paired comparison with the MLP of the same space and study.
    pub versus_mlp: Option<Comparison>,
    /// The share of the diagonal in the mass of the best trial's kernel.
    pub diagonal_share: Option<f64>,
    /// Whether the kernel has less than 1 % of its mass off the diagonal: the network is an MLP.
    pub nearly_identity: bool,
    /// The published mean and deviation, in fractions.
    pub published: Option<(f64, f64)>,
    /// Test score of each split: its mean over the seeds.
    pub test: Vec<f64>,
    /// The hash of the splits; none in studies of earlier versions.
    #[serde(rename = "splits_hash")]
    pub splits: Option<String>,
}

/// Counts that most cells have not are left out of their files.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Which studies enter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this space.
    pub space: Option<String>,
    /// Only that of this name.
    pub study: Option<String>,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Datasets, in the published order, then others by name.
    pub columns: Vec<Column>,
    /// What the rows are about, models in the published order.
    pub rows: Vec<Row>,
    /// The cells there are.
    pub cells: Vec<Cell>,
}

impl Table {
    /// Reads the studies of some storages that pass a filter.
    ///
    /// # Errors
    /// If a storage cannot be read.
    pub fn read(storages: &mut [Box<dyn Storage>], filter: &Filter) -> Result<Self, Error> {
        let mut columns: BTreeMap<String, Column> = BTreeMap::new();
        let mut cells: Vec<Cell> = Vec::new();
        for storage in storages {
            for study in storage.studies()? {
                let trials = storage.trials(study.id, 0, &[])?;
                let Some(cell) = cell(&study, &trials).filter(|cell| filter.admits(cell)) else { continue };
                let number = |key: &str| study.attributes.get(key).and_then(Value::as_u64);
                columns.entry(cell.dataset.clone()).or_insert_with(|| Column {
                    dataset: cell.dataset.clone(),
                    nodes: number("nodes"),
                    edges: number("edges"),
                    homophily: study.attributes.get("homophily").and_then(Value::as_f64),
                });
                add(&mut cells, cell);
            }
        }
        Ok(Self::of(columns, cells))
    }

    /// The table of some cells: columns and rows in order, the best marked, the comparisons made.
    fn of(columns: BTreeMap<String, Column>, mut cells: Vec<Cell>) -> Self {
        let place = |dataset: &str| {
            published::DATASETS.iter().position(|name| *name == dataset).unwrap_or(usize::MAX)
        };
        let mut columns: Vec<Column> = columns.into_values().collect();
        columns.sort_by_key(|column| place(&column.dataset));
        let mut rows: Vec<Row> = Vec::new();
        for cell in &cells {
            if !rows.contains(&cell.row) {
                rows.push(cell.row.clone());
            }
        }
        let models = Model::known();
        let order = |row: &Row| models.iter().position(|model| *model == row.model).unwrap_or(models.len());
        rows.sort_by_key(|row| (row.study.clone(), order(row), row.model.to_string(), row.space.clone()));
        let column = |cell: &Cell| columns.iter().position(|column| column.dataset == cell.dataset);
        let row = |cell: &Cell| rows.iter().position(|row| *row == cell.row);
        cells.sort_by_key(|cell| (column(cell), row(cell)));
        let mut table = Self { columns, rows, cells };
        table.compare();
        table
    }

    /// Both tables as one.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let columns = self.columns.into_iter().chain(other.columns);
        let columns = columns.map(|column| (column.dataset.clone(), column)).collect();
        let mut cells = self.cells;
        for cell in other.cells {
            add(&mut cells, cell);
        }
        Self::of(columns, cells)
    }

    /// The cells that pass a filter.
    #[must_use]
    pub fn only(mut self, filter: &Filter) -> Self {
        self.cells.retain(|cell| filter.admits(cell));
        let columns = self.columns.into_iter().map(|column| (column.dataset.clone(), column));
        let columns = columns.filter(|(dataset, _)| self.cells.iter().any(|cell| cell.dataset == *dataset));
        Self::of(columns.collect(), self.cells)
    }

    /// The cell of a row and a dataset.
    pub fn cell(&self, row: &Row, dataset: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == *row && cell.dataset == dataset)
    }

    /// Marks the best of each dataset, tests against GCN and MLP, and looks up the published numbers.
    fn compare(&mut self) {
        let cells = self.cells.clone();
        for cell in &mut self.cells {
            let others = cells.iter().filter(|other| other.dataset == cell.dataset);
            let top = others.map(|other| other.test_mean).fold(f64::MIN, f64::max);
            cell.best = cell.test_mean >= top;
            cell.published = published(&cell.row.model, &cell.dataset);
        }
        for (name, choose) in [
            ("gcn", (|cell| &mut cell.versus_gcn) as fn(&mut Cell) -> &mut Option<Comparison>),
            ("mlp", |cell| &mut cell.versus_mlp),
        ] {
            significance::against(name, &cells, &mut self.cells, choose);
        }
    }
}

impl Filter {
    fn admits(&self, cell: &Cell) -> bool {
        self.space.as_ref().is_none_or(|space| *space == cell.row.space)
            && self.study.as_ref().is_none_or(|study| *study == cell.name)
    }
}

/// Adds a cell. Of two copies of one study the longer one stays; of two unlike studies each has its row.
fn add(cells: &mut Vec<Cell>, mut cell: Cell) {
    let copy = |other: &&mut Cell| {
        other.name == cell.name && other.experiment.is_some() && other.experiment == cell.experiment
    };
    if let Some(known) = cells.iter_mut().find(copy) {
        if known.trials < cell.trials {
            let row = known.row.clone();
            *known = Cell { row, ..cell };
        }
        return;
    }
    let taken =
        |cell: &Cell| cells.iter().any(|other| other.row == cell.row && other.dataset == cell.dataset);
    let name = cell.name.clone();
    let mut copies = 1;
    while taken(&cell) {
        cell.row.study = if copies == 1 { name.clone() } else { format!("{name} ({copies})") };
        copies += 1;
    }
    cells.push(cell);
}

fn cell(study: &StudyRecord, trials: &[Trial]) -> Option<Cell> {
    let text = |key: &str| study.attributes.get(key).and_then(Value::as_str);
    let dataset = text("dataset")?.to_owned();
    let model: Model = text("model")?.parse().ok()?;
    let space = text("space").unwrap_or("unknown").to_owned();
    let best = rescore::best(&study.attributes, trials.iter())?;
    let rescored = rescore::scores(&study.attributes, best.number).map(|scores| Summary::of(&scores));
    let number = |key: &str| best.user_attributes.get(key).and_then(Value::as_f64);
    let summary = match rescored {
        Some(summary) => summary,
        None => Summary {
            test_mean: number("test_mean")?,
            test_std: number("test_std")?,
            validation_mean: best.value?,
            test: best.user_attributes.get("test")?.as_array()?.iter().filter_map(Value::as_f64).collect(),
            seeds: 1,
        },
    };
    let finished = trials.iter().filter(|trial| trial.state.is_finished()).count();
    let count = |state: State| trials.iter().filter(|trial| trial.state == state).count();
    let usual = format!("{dataset} {model} {space}");
    let record = study.attributes.get(RECORD);
    // Beside a second tower, which sees the graph, an identity does not make the network an MLP.
    let alone = model.towers().len() == 1;
    Some(Cell {
        row: Row {
            model,
            space,
            study: if study.name == usual { String::new() } else { study.name.clone() },
        },
        name: study.name.clone(),
        experiment: text(HASH).map(str::to_owned),
        metric: text("metric").unwrap_or("accuracy").to_owned(),
        test_mean: summary.test_mean,
        test_std: summary.test_std,
        validation: summary.validation_mean,
        trial: best.number,
        trials: finished,
        failed: count(State::Failed),
        pruned: count(State::Pruned),
        finalists: rescore::count(&study.attributes),
        started: record.and_then(|record| record["search"]["start"].as_array()).map_or(0, Vec::len),
        seconds: trials.iter().filter_map(|trial| trial.user_attributes.get("seconds")?.as_f64()).sum(),
        wanted: study.attributes.get("trials").and_then(Value::as_u64).unwrap_or(finished as u64),
        seeds: summary.seeds,
        best: false,
        versus_gcn: None,
        versus_mlp: None,
        diagonal_share: best
            .user_attributes
            .get("kernel")
            .and_then(|kernel| kernel["diagonal_share"].as_f64()),
        nearly_identity: alone && best.user_attributes.get("kernel").is_some_and(nearly_identity),
        published: None,
        test: summary.test,
        splits: record.and_then(|record| record["dataset"]["splits"].as_str()).map(str::to_owned),
        dataset,
    })
}

/// Whether the report of a kernel is that of the identity: by its diagonal, or where an earlier version did
/// not measure that, by an entry for each vertex and no more.
fn nearly_identity(kernel: &Value) -> bool {
    match (kernel["diagonal_share"].as_f64(), kernel["entries"].as_u64(), kernel["nodes"].as_u64()) {
        (Some(share), ..) => 1.0 - share < NEARLY_NOTHING,
        (None, Some(entries), Some(nodes)) => kernel["filter"].is_string() && entries <= nodes,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::SearchSpace;
    use qdc_tune::storage::{Memory, Sqlite};
    use qdc_tune::{Direction, Outcome, Study};
    use serde_json::json;

    fn write(file: &std::path::Path, name: &str, model: &str, space: &str, test: &[f64], kernel: Value) {
        let searched = SearchSpace::named("paper", model.parse().unwrap()).unwrap();
        let storage = Sqlite::open(file).unwrap();
        let mut study = Study::open(storage, name, Direction::Maximize, searched.space).unwrap();
        for (key, value) in [
            ("dataset", json!("cornell")),
            ("model", json!(model)),
            ("space", json!(space)),
            ("nodes", json!(183)),
            ("edges", json!(280)),
            ("homophily", json!(0.106)),
            ("trials", json!(1)),
        ] {
            study.set_attribute(key, value).unwrap();
        }
        let asked = study.ask().unwrap();
        let mean = test.iter().sum::<f64>() / test.len() as f64;
        let outcome = Outcome::complete(mean).with("test", json!(test)).with("test_mean", mean);
        study.tell(&asked, outcome.with("test_std", 0.04).with("kernel", kernel)).unwrap();
    }

    fn read(file: &std::path::Path, filter: &Filter) -> Table {
        let storage = qdc_tune::storage::open(file.to_str().unwrap(), u64::MAX).unwrap();
        Table::read(&mut [storage, Box::new(Memory::new())], filter).unwrap()
    }

    fn find<'a>(table: &'a Table, model: &str, space: &str) -> &'a Cell {
        let cells = &mut table.cells.iter();
        cells.find(|cell| cell.row.model.to_string() == model && cell.row.space == space).unwrap()
    }

    #[test]
    fn the_best_of_each_dataset_is_marked_with_the_mlp_among_the_candidates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        for (model, test) in
            [("gcn", [0.4, 0.5, 0.45]), ("gcn+qdc", [0.6, 0.7, 0.65]), ("mlp", [0.7, 0.7, 0.7])]
        {
            write(&file, &format!("cornell {model} paper"), model, "paper", &test, Value::Null);
        }
        let table = read(&file, &Filter::default());
        let cell = |model: &str| find(&table, model, "paper");
        assert!(!cell("gcn+qdc").best && !cell("gcn").best && cell("mlp").best);
        assert_eq!(cell("gcn+qdc").published, Some((0.6378, 0.0968)));
        assert_eq!(cell("gcn+qdc").versus_gcn.unwrap().p_value, 0.25);
        assert_eq!(cell("gcn+qdc").versus_gcn.unwrap().adjusted, 0.5);
        assert!(cell("gcn").versus_gcn.is_none() && cell("gcn").versus_mlp.is_some());
        let text = table.write(Format::Text, true);
        assert!(text.contains("183") && text.contains("65.00") && text.contains("63.78"), "{text}");
        assert!(table.write(Format::Markdown, false).contains("**70.00 ± 4.00**"));
        assert!(table.write(Format::Latex, false).contains("\\textbf{70.00 $\\pm$ 4.00}"));
        assert_eq!(table.write(Format::Csv, true).lines().count(), 4);
    }

    #[test]
    fn unlike_experiments_have_rows_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        write(&file, "cornell gcn paper", "gcn", "paper", &[0.4, 0.5], Value::Null);
        write(&file, "cornell gcn wide", "gcn", "wide", &[0.6, 0.7], Value::Null);
        write(&file, "another seed", "gcn", "paper", &[0.8, 0.9], Value::Null);
        let table = read(&file, &Filter::default());
        assert_eq!((table.rows.len(), table.cells.len()), (3, 3));
        let text = table.write(Format::Text, true);
        assert!(text.contains("wide") && text.contains("another seed"), "{text}");
        let wide = read(&file, &Filter { space: Some("wide".into()), study: None });
        assert_eq!((wide.cells.len(), wide.cells[0].row.space.as_str()), (1, "wide"));
        assert!((wide.cells[0].test_mean - 0.65).abs() < 1e-12);
        let named = read(&file, &Filter { space: None, study: Some("another seed".into()) });
        assert_eq!((named.cells.len(), named.cells[0].name.as_str()), (1, "another seed"));
    }

    #[test]
    fn a_kernel_that_is_the_identity_is_marked_and_explained() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        let kernel = |entries: u64| json!({ "filter": "gaussian", "nodes": 183, "entries": entries });
        write(&file, "cornell gcn+qdc paper", "gcn+qdc", "paper", &[0.4, 0.5], kernel(183));
        write(&file, "cornell gcn+bpdc paper", "gcn+bpdc", "paper", &[0.4, 0.4], kernel(900));
        let table = read(&file, &Filter::default());
        assert!(find(&table, "gcn+qdc", "paper").nearly_identity);
        assert!(!find(&table, "gcn+bpdc", "paper").nearly_identity);
        let text = table.write(Format::Text, false);
        assert!(text.contains("°") && text.contains("nearly the identity: this network is an MLP"), "{text}");
        assert!(nearly_identity(&json!({ "diagonal_share": 0.995, "entries": 900, "nodes": 183 })));
        assert!(!nearly_identity(&json!({ "diagonal_share": 0.5, "entries": 10, "nodes": 183 })));
    }

    #[test]
    fn the_table_says_what_is_measured_what_is_missing_and_what_failed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        write(&file, "cornell gcn paper", "gcn", "paper", &[0.4, 0.5, 0.45], Value::Null);
        let mut table = read(&file, &Filter::default());
        let plain = table.write(Format::Markdown, false);
        assert!(plain.contains("| cornell |") && plain.contains("| **45.00 ± 4.00** |"), "{plain}");
        let cell = &mut table.cells[0];
        (cell.metric, cell.wanted, cell.failed) = ("auc".into(), 7, 2);
        let marked = table.write(Format::Markdown, false);
        assert!(marked.contains("| cornell (auc) |") && marked.contains(" [1/7, 2 failed] |"), "{marked}");
    }

    #[test]
    fn names_are_quoted_as_each_format_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        write(&file, "a \"quoted\", name_1", "gcn", "my_space & co", &[0.4, 0.5], Value::Null);
        let table = read(&file, &Filter::default());
        let csv = table.write(Format::Csv, false);
        assert!(csv.contains("\"a \"\"quoted\"\", name_1\""), "{csv}");
        assert_eq!(format::quoted("csbm:n=200,homophily=0.2"), "\"csbm:n=200,homophily=0.2\"");
        let latex = table.write(Format::Latex, false);
        assert!(latex.contains("my\\_space \\& co") && latex.contains("name\\_1"), "{latex}");
    }
}
