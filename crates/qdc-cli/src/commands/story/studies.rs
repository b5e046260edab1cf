//! Studies: models compared, the table, all trials, and how scores depend on the window.

use std::collections::BTreeSet;

use qdc_lab::table::Cell;
use qdc_plot::Report;
use qdc_plot::figures::{self, ModelScore, TrialPoint};
use qdc_plot::report::Table;

use super::kernel::IDENTITY;
use crate::commands::studies::{Studies, title};
use crate::failure::Failure;

/// The most trials a scatter shows: a mark takes 300 bytes, and a page is to stay below 2 MB.
const MARKS: usize = 600;

/// The most models that are compared split by split, for the same reason: a split takes 200 bytes.
const ROWS_WITH_SPLITS: usize = 100;

/// The trial that validation chose of every study.
pub(crate) fn model_scores(studies: &Studies) -> Vec<ModelScore> {
    let cells = studies.table.cells.iter().map(|cell| ModelScore {
        dataset: cell.dataset.clone(),
        model: studies.label(&cell.row.model.to_string(), &cell.row.space),
        metric: title(&cell.metric),
        mean: cell.test_mean,
        deviation: cell.test_std,
        splits: cell.test.clone(),
        published: cell.published,
        identity: cell.nearly_identity,
    });
    cells.collect()
}

/// The trial that validation chose in the studies of a cell.
fn of_cell<'a>(studies: &'a Studies, cell: &Cell) -> Option<&'a TrialPoint> {
    let model = studies.label(&cell.row.model.to_string(), &cell.row.space);
    figures::chosen(
        studies.trials.iter().filter(|trial| trial.dataset == cell.dataset && trial.model == model),
    )
}

/// Studies: the models compared, the table, all trials, and how scores depend on the window.
pub(crate) fn tell_studies(mut report: Report, studies: &Studies) -> Result<Report, Failure> {
    let mut scores = model_scores(studies);
    if scores.len() > ROWS_WITH_SPLITS {
        scores.iter_mut().for_each(|score| score.splits.clear());
    }
    if !scores.is_empty() {
        let splits = "small circles: each split, at the same height in every row; ";
        let splits = if scores.iter().all(|score| score.splits.is_empty()) { "" } else { splits };
        let caption = format!(
            "Of each study, the trial that validation chose. Dot and whisker: mean and standard deviation of its test \
             score over the splits; {splits}diamonds: the published means."
        );
        report = report.figure("Models compared", &caption, |width| figures::comparison(&scores, width))?;
        report = warn_of_identity(report, &scores).table(&table(studies));
    }
    let caption = "The spread of the test score over all trials of a search. White line: the median trial; ring: the trial that \
                   validation chose.";
    report = report.figure("All trials", caption, |width| figures::violin(&studies.trials, width))?;
    let (windows, every) = thinned(&studies.trials);
    if !windows.is_empty() {
        let mut caption = "Each mark is a trial: its mean test score against the centre (left) and the width (right) of its window."
            .to_owned();
        if every > 1 {
            caption += &format!(" One trial in {every} is shown.");
        }
        let metrics: BTreeSet<&str> = studies.trials.iter().map(|trial| trial.metric.as_str()).collect();
        let title = match metrics.first() {
            Some(metric) if metrics.len() == 1 => format!("{} against μ and σ", capitalised(metric)),
            _ => "Scores against μ and σ".to_owned(),
        };
        report = report.figure(&title, &caption, |width| figures::scatter(&windows, width))?;
    }
    Ok(report)
}

/// Trials with a window that a page can carry: all, or one in as many as are said.
fn thinned(trials: &[TrialPoint]) -> (Vec<TrialPoint>, usize) {
    let windows = || trials.iter().filter(|trial| trial.mu.is_some() && trial.sigma.is_some());
    let every = windows().count().div_ceil(MARKS).max(1);
    (windows().step_by(every).cloned().collect(), every)
}

/// The word with a capital letter, as a title begins.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Names the models whose best kernel is nearly the identity.
fn warn_of_identity(report: Report, scores: &[ModelScore]) -> Report {
    let named: Vec<String> = scores
        .iter()
        .filter(|score| score.identity)
        .map(|score| format!("{} on {}", score.model, score.dataset))
        .collect();
    if named.is_empty() {
        return report;
    }
    let text = format!(
        "The kernel that validation chose joins hardly any vertices (less than 1 % of its weight) for {}. What such a network \
         gains over the plain one, it gains by ignoring the graph: compare it with the MLP.",
        named.join(", ")
    );
    report.notice(IDENTITY, &text)
}

fn table(studies: &Studies) -> Table {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let both = |(mean, deviation): (f64, f64)| format!("{} ± {}", percent(mean), percent(deviation));
    let rows = studies.table.cells.iter().map(|cell| {
        let best = of_cell(studies, cell);
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
        vec![
            cell.dataset.clone(),
            cell.row.model.to_string(),
            cell.row.space.clone(),
            title(&cell.metric),
            both((cell.test_mean, cell.test_std)),
            percent(cell.validation),
            cell.published.map_or(String::new(), both),
            number(cell.versus_gcn.map(|test| test.adjusted)),
            number(best.and_then(|trial| trial.mu)),
            number(best.and_then(|trial| trial.sigma)),
            cell.trials.to_string(),
        ]
    });
    let columns = [
        "dataset",
        "model",
        "space",
        "metric",
        "test (%)",
        "validation",
        "published",
        "p",
        "μ",
        "σ",
        "trials",
    ];
    Table {
        title: "Studies".into(),
        note: "Each line is the trial that validation chose: the test score and its deviation over the splits, and the \
               validation score, in percent. p: the exact sign-flip test of the paired differences to GCN, with Holm's correction. Press a heading to sort."
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
