//! The folder `results/` and the page about it say the same: every number stands where it came from.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use qdc_lab::Config;
use qdc_lab::table::{Format, Results};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_cell_of_the_table_has_a_file_with_its_numbers() {
    let csv = read("results/table.csv");
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut cells = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields[columns.iter().position(|column| *column == name).unwrap()];
        let text = read(field("config"));
        let config = Config::from_toml(&text).unwrap_or_else(|problem| panic!("{line}: {problem}"));
        config.hyperparameters().unwrap();
        assert_eq!(config.dataset.unwrap().replace('_', "-"), field("dataset"));
        assert_eq!(config.model.as_ref().unwrap().to_string(), field("model"));
        let result = config.result.unwrap();
        for name in ["test_mean", "test_std", "validation_mean"] {
            let percent = format!("{:.2}", 100.0 * result[name].as_f64().unwrap());
            assert_eq!(percent, field(name), "{name} of {line}");
        }
        assert_eq!(result["trials"].to_string(), field("trials"), "{line}");
        let splits = result["splits"].as_array().unwrap();
        let seeds: usize = field("seeds").parse().unwrap();
        assert_eq!(splits.len(), 10 * seeds, "{line}");
        for (name, mean) in [("test", "test_mean"), ("validation", "validation_mean")] {
            let sum: f64 = splits.iter().map(|split| split[name].as_f64().unwrap()).sum();
            let recorded = result[mean].as_f64().unwrap();
            assert!((sum / splits.len() as f64 - recorded).abs() < 1e-12, "{mean} of {line}");
        }
        cells += 1;
    }
    let files = std::fs::read_dir(root().join("results/cells")).unwrap().count();
    assert_eq!(files, cells);
}

#[test]
fn the_page_shows_the_table_that_was_written() {
    let (page, table) = (read("docs/results.md"), read("results/table.md"));
    for line in table.lines().filter(|line| line.starts_with('|')) {
        assert!(page.contains(line), "docs/results.md lacks {line}");
    }
}

#[test]
fn the_cells_make_the_table_again_with_every_trial() {
    let Results { table, searched, .. } = Results::read(&root().join("results")).unwrap();
    assert_eq!(table.write(Format::Markdown, true), read("results/table.md"));
    for cell in &table.cells {
        let model = cell.row.model.to_string();
        let trials: Vec<_> = searched
            .iter()
            .filter(|trial| {
                (&trial.dataset, &trial.model, &trial.space) == (&cell.dataset, &model, &cell.row.space)
            })
            .collect();
        assert_eq!(trials.len(), cell.trials - cell.failed - cell.pruned, "{}", cell.name);
        let best = trials.iter().map(|trial| trial.validation).fold(f64::MIN, f64::max);
        if cell.seeds == 1 {
            assert_eq!(best, cell.validation, "{}", cell.name);
        }
        assert_eq!(
            trials.iter().all(|trial| trial.mu.is_some()),
            model.contains("qdc") || model.contains("multiscale") || model.contains("bpdc"),
            "{}",
            cell.name
        );
    }
}

/// The best published numbers on undirected graphs, as the page quotes them.
const BEST: [(&str, &str); 9] = [
    ("cornell", "77.6"),
    ("texas", "88.4"),
    ("wisconsin", "89.4"),
    ("chameleon", "74.8"),
    ("squirrel", "67.4"),
    ("actor", "37.9"),
    ("cora", "88.5"),
    ("citeseer", "78.0"),
    ("pubmed", "90.15"),
];

/// Numbers with two decimals, as scores are written.
fn scores(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let parts = text.split(|letter: char| !is_part(letter)).map(|part| part.trim_end_matches('.'));
    let score =
        |part: &&str| part.split_once('.').is_some_and(|(whole, rest)| whole.len() == 2 && rest.len() == 2);
    parts.filter(score).collect()
}

#[test]
fn every_score_in_the_prose_is_one_of_the_table() {
    let csv = read("results/table.csv");
    let mut known: HashSet<&str> = csv.lines().flat_map(|line| line.split(',')).collect();
    known.extend(BEST.map(|(_, best)| best));
    let readme = read("README.md");
    let (_, section) = readme.split_once("## Does it help?").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    for (page, text) in [("README.md", section), ("docs/results.md", &read("docs/results.md"))] {
        let prose = text.lines().filter(|line| page == "README.md" || !line.starts_with('|'));
        let found: Vec<&str> = prose.flat_map(scores).collect();
        assert!(found.len() > 10, "{page} shows results");
        for score in found {
            assert!(known.contains(score), "{page}: {score} is not in results/table.csv");
        }
    }
}

/// The lines of `table.csv`, by the names of its columns.
struct Line(HashMap<String, String>);

impl Line {
    fn all() -> Vec<Self> {
        let csv = read("results/table.csv");
        let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
        let names: Vec<String> = lines.next().unwrap().collect();
        lines.map(|line| Self(names.iter().cloned().zip(line).collect())).collect()
    }

    fn number(&self, column: &str) -> f64 {
        self.0[column].parse().unwrap()
    }

    fn is(&self, column: &str, value: &str) -> bool {
        self.0[column] == value
    }
}

/// How many of the published cells of QDC and MultiScale a space has, and how many of them are not more than this share
/// of the published deviation below the published mean.
fn reproduced(space: &str, share: f64) -> (usize, usize) {
    let models = ["gcn+qdc", "gcn+multiscale", "gat+qdc", "gat+multiscale"];
    let wanted = |line: &Line| {
        line.is("space", space)
            && !line.is("published_mean", "")
            && models.contains(&line.0["model"].as_str())
    };
    let lines: Vec<Line> = Line::all().into_iter().filter(wanted).collect();
    let least = |line: &Line| line.number("published_mean") - share * line.number("published_std");
    (lines.iter().filter(|line| line.number("test_mean") >= least(line)).count(), lines.len())
}

#[test]
fn as_many_cells_are_reproduced_as_the_pages_say() {
    let (readme, page) = (read("README.md"), read("docs/results.md"));
    let (within, run) = reproduced("paper", 1.0);
    assert!(page.contains(&format!("{within} of {run} cells")), "{within} of {run}");
    assert!(readme.contains(&format!("{within} of {run} are reproduced")), "{within} of {run}");
    let (within, run) = reproduced("wide", 0.5);
    assert!(page.contains(&format!("In the wide space {within} of {run}")), "{within} of {run}");
}

#[test]
fn the_best_by_validation_is_as_near_to_the_best_published_as_the_page_says() {
    let family = |line: &Line| {
        line.is("model", "bank") || line.is("model", "window") || line.0["model"].ends_with("+multiscale")
    };
    let lines: Vec<Line> = Line::all().into_iter().filter(family).collect();
    let (mut error, mut one, mut more) = (0, 0, 0);
    for (dataset, best) in BEST {
        let of_dataset = lines.iter().filter(|line| line.is("dataset", dataset));
        let chosen = of_dataset
            .max_by(|one, other| one.number("validation_mean").total_cmp(&other.number("validation_mean")));
        let chosen = chosen.unwrap();
        let below = best.parse::<f64>().unwrap() - chosen.number("test_mean");
        error += usize::from(below <= chosen.number("test_std") / 10f64.sqrt());
        one += usize::from(below <= 1.0);
        more += usize::from(below <= 2.5);
    }
    let said = format!("{error} of nine datasets, within one point on {one} and within 2.5 points on {more}");
    let page = read("docs/results.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&said), "{said}");
}

/// The short table of the README: a line of a model and a column of a dataset meet in a cell of `table.csv`.
#[test]
fn the_short_table_has_the_cells_it_names() {
    let (readme, csv) = (read("README.md"), read("results/table.csv"));
    let mean = |dataset: &str, model: &str, space: &str| {
        let line = csv.lines().find(|line| line.starts_with(&format!("{dataset},{model},{space},")));
        line.and_then(|line| line.split(',').nth(5)).map(str::to_owned)
    };
    let rows = [
        ("| bank, five presets |", "bank", "presets"),
        ("| learned window, no search |", "window", "presets"),
        ("| GCN+MultiScale |", "gcn+multiscale", "wide"),
        ("| GCN+QDC |", "gcn+qdc", "wide"),
        ("| GCN |", "gcn", "wide"),
        ("| MLP |", "mlp", "wide"),
    ];
    let (mut columns, mut compared) = (Vec::new(), 0);
    for line in readme.lines() {
        if line.starts_with("| | ") {
            columns = line.split('|').skip(2).map(str::trim).filter(|name| !name.is_empty()).collect();
        }
        let Some((label, model, space)) = rows.iter().find(|row| line.starts_with(row.0)) else { continue };
        for (column, field) in columns.iter().zip(line[label.len()..].split('|')) {
            assert_eq!(Some(field.trim().trim_matches('*').to_owned()), mean(column, model, space), "{line}");
            compared += 1;
        }
    }
    assert_eq!(compared, 6 * 9 + 4 * 4);
    let best = BEST.map(|(_, best)| best).join(" | ");
    assert!(readme.contains(&format!("| best published | {best} |")), "{best}");
}
