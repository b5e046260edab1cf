//! The folder `results/` and the page about it say the same: every number stands where it came from.

use std::path::{Path, PathBuf};

use qdc_lab::Config;
use qdc_lab::table::{Format, Table};

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
        assert_eq!(config.dataset.as_deref(), Some(field("dataset")));
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
        let mean =
            splits.iter().map(|split| split["test"].as_f64().unwrap()).sum::<f64>() / splits.len() as f64;
        assert!((mean - result["test_mean"].as_f64().unwrap()).abs() < 1e-12, "{line}");
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
    let (table, searched) = Table::read_results(&root().join("results")).unwrap();
    assert_eq!(table.write(Format::Markdown, true), read("results/table.md"));
    for cell in &table.cells {
        let model = cell.row.model.to_string();
        let trials: Vec<_> = searched
            .iter()
            .filter(|trial| {
                (&trial.dataset, &trial.model, &trial.space) == (&cell.dataset, &model, &cell.row.space)
            })
            .collect();
        assert_eq!(trials.len(), cell.trials - cell.failed, "{}", cell.name);
        let best = trials.iter().map(|trial| trial.validation).fold(f64::MIN, f64::max);
        assert_eq!(best, cell.validation, "{}", cell.name);
        assert_eq!(
            trials.iter().all(|trial| trial.mu.is_some()),
            model.contains("qdc") || model.contains("multiscale") || model.contains("bpdc"),
            "{}",
            cell.name
        );
    }
}
