//! Figures of studies: how accuracy is spread over trials (violins), and how it depends on mu and sigma (scatter).

use std::fmt::Write;

use crate::colour::{INK, PAPER, SERIES};
use crate::panel::Panel;
use crate::svg::{Anchor, COLUMN, PAGE, Svg, TEXT};
use crate::{Error, Figure};

/// One finished trial of a study.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TrialPoint {
    /// The dataset.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// What the search saw and chose by: mean validation accuracy.
    pub validation: f64,
    /// Mean test accuracy over the splits, a fraction.
    pub test: f64,
    /// Centre of the filter, for models that have one.
    pub mu: Option<f64>,
    /// Width of the filter, for models that have one.
    pub sigma: Option<f64>,
    /// Threshold of the kernel, for models that have one.
    pub epsilon: Option<f64>,
}

/// The trial a search would choose: the best on validation, of equals the first.
pub fn chosen<'a>(trials: impl IntoIterator<Item = &'a TrialPoint>) -> Option<&'a TrialPoint> {
    trials.into_iter().fold(None, |best: Option<&TrialPoint>, trial| match best {
        Some(best) if best.validation >= trial.validation => Some(best),
        _ => Some(trial),
    })
}

/// Names in order of first appearance.
fn names(trials: &[TrialPoint], pick: impl Fn(&TrialPoint) -> &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for trial in trials {
        if !found.iter().any(|name| name == pick(trial)) {
            found.push(pick(trial).to_owned());
        }
    }
    found
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let pad = if high > low { 0.06 * (high - low) } else { 0.05 };
    (low - pad, high + pad)
}

/// Datasets side by side, at most this many.
const ABREAST: usize = 3;

/// Violins of the test accuracy of all trials, a panel for each dataset, a violin for each model. A white line is the
/// median trial, a ring the trial that validation chose.
pub fn violin(trials: &[TrialPoint]) -> Result<Figure, Error> {
    if trials.is_empty() {
        return Err(Error::Empty { what: "the studies hold no finished trial with a test accuracy".into() });
    }
    let datasets = names(trials, |trial| &trial.dataset);
    let models = names(trials, |trial| &trial.model);
    let columns = datasets.len().min(ABREAST);
    let rows = datasets.len().div_ceil(columns);
    // Names of models stand level where there is room, else aslant.
    let letters = models.iter().map(|model| model.chars().count()).max().unwrap_or(0) as f64;
    let slot = ((PAGE / columns as f64 - 56.0) / models.len() as f64).min(84.0);
    let aslant = slot < 5.4 * letters;
    let (width, height) = (slot * models.len() as f64 + 56.0, 150.0);
    let below = if aslant { 14.0 + 3.1 * letters } else { 18.0 };
    let mut svg = Svg::new(width * columns as f64, (height + below + 26.0) * rows as f64);
    for (number, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> = trials.iter().filter(|trial| &trial.dataset == dataset).collect();
        let (low, high) = range(here.iter().map(|trial| 100.0 * trial.test));
        let panel = Panel {
            left: 46.0 + (number % columns) as f64 * width,
            top: 20.0 + (number / columns) as f64 * (height + below + 26.0),
            width: width - 56.0,
            height,
            x: (0.0, models.len() as f64),
            y: (low.max(0.0), high.min(100.0)),
        };
        panel.grid(&mut svg);
        panel.y_axis(&mut svg, "test accuracy (%)");
        panel.outline(&mut svg, dataset);
        for (place, model) in models.iter().enumerate() {
            let of_model: Vec<&TrialPoint> =
                here.iter().filter(|trial| &trial.model == model).copied().collect();
            draw_violin(&mut svg, &panel, place as f64 + 0.5, &of_model, SERIES[place % SERIES.len()]);
            let (x, y) = panel.at(place as f64 + 0.5, panel.y.0);
            if aslant {
                let turn = format!(r#"transform="rotate(-35 {:.1} {:.1})""#, x + 4.0, y + 11.0);
                svg.styled_text((x + 4.0, y + 11.0), Anchor::End, TEXT, model, &turn);
            } else {
                svg.text((x, y + 13.0), Anchor::Middle, TEXT, model);
            }
        }
    }
    Ok(Figure { svg: svg.finish(), csv: csv(trials) })
}

fn draw_violin(svg: &mut Svg, panel: &Panel, centre: f64, trials: &[&TrialPoint], colour: &str) {
    let mut values: Vec<f64> = trials.iter().map(|trial| 100.0 * trial.test).collect();
    values.sort_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else { return };
    let density = kernel_density(&values, (least, most));
    let peak = density.iter().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let side = |sign: f64| {
        density.iter().map(move |(value, weight)| panel.at(centre + sign * 0.42 * weight / peak, *value))
    };
    let mut outline: Vec<(f64, f64)> = side(-1.0).collect();
    outline.extend(side(1.0).collect::<Vec<_>>().into_iter().rev());
    let style = format!(r#"fill="{colour}" fill-opacity="0.8" stroke="{INK}" stroke-width="0.7""#);
    svg.path(&outline, true, &style);
    let median = values[values.len() / 2];
    let ((left, y), (right, _)) = (panel.at(centre - 0.16, median), panel.at(centre + 0.16, median));
    svg.line((left, y), (right, y), &format!(r#"stroke="{PAPER}" stroke-width="2""#));
    if let Some(best) = chosen(trials.iter().copied()) {
        let style = format!(r#"fill="{PAPER}" stroke="{INK}" stroke-width="1.1""#);
        svg.circle(panel.at(centre, 100.0 * best.test), 2.6, &style);
    }
}

/// A Gaussian kernel density with Scott's bandwidth on a grid over `range`; a single value has a narrow one.
fn kernel_density(values: &[f64], (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let bandwidth = (deviation * count.powf(-0.2)).max(0.005 * (high - low)).max(1e-3);
    (0..=160)
        .map(|step| low + (high - low) * f64::from(step) / 160.0)
        .map(|at| {
            let sum =
                values.iter().map(|value| (-0.5 * ((at - value) / bandwidth).powi(2)).exp()).sum::<f64>();
            (at, sum)
        })
        .collect()
}

/// Test accuracy against mu (upper row) and ln sigma (lower row), a column for each dataset.
///
/// Models whose name ends in `multiscale` are hollow triangles, others filled circles.
pub fn scatter(trials: &[TrialPoint]) -> Result<Figure, Error> {
    let shown: Vec<TrialPoint> =
        trials.iter().filter(|t| t.mu.is_some() && t.sigma.is_some()).cloned().collect();
    if shown.is_empty() {
        return Err(Error::Empty { what: "no finished trial has both mu and sigma".into() });
    }
    let datasets = names(&shown, |trial| &trial.dataset);
    let columns = datasets.len().min(ABREAST);
    let bands = datasets.len().div_ceil(columns);
    let width = (PAGE / columns as f64).min(COLUMN);
    let (height, gap) = (118.0, 46.0);
    let band = 2.0 * (height + gap);
    let mut svg = Svg::new(width * columns as f64, band * bands as f64 + 24.0);
    for (number, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> = shown.iter().filter(|trial| &trial.dataset == dataset).collect();
        let accuracy = range(here.iter().map(|trial| 100.0 * trial.test));
        for row in 0..2 {
            let value = |trial: &TrialPoint| match row {
                0 => trial.mu.unwrap_or(0.0),
                _ => trial.sigma.unwrap_or(1.0).ln(),
            };
            let panel = Panel {
                left: 46.0 + (number % columns) as f64 * width,
                top: 18.0 + (number / columns) as f64 * band + f64::from(row) * (height + gap),
                width: width - 58.0,
                height,
                x: if row == 0 { (-1.05, 1.05) } else { range(here.iter().map(|trial| value(trial))) },
                y: accuracy,
            };
            let title = if row == 0 { dataset.as_str() } else { "" };
            panel.frame(&mut svg, title, if row == 0 { "μ" } else { "ln σ" }, "test accuracy (%)");
            for trial in &here {
                mark(&mut svg, panel.at(value(trial), 100.0 * trial.test), is_multiscale(&trial.model));
            }
        }
    }
    let y = band * bands as f64 + 16.0;
    let kinds = [(false, "QDC"), (true, "MultiScale")];
    let present = kinds.iter().filter(|(kind, _)| shown.iter().any(|t| is_multiscale(&t.model) == *kind));
    for (number, (kind, name)) in present.enumerate() {
        let x = 50.0 + 60.0 * number as f64;
        mark(&mut svg, (x, y - 3.0), *kind);
        svg.text((x + 7.0, y), Anchor::Start, TEXT, name);
    }
    Ok(Figure { svg: svg.finish(), csv: csv(&shown) })
}

fn is_multiscale(model: &str) -> bool {
    model.ends_with("multiscale")
}

fn mark(svg: &mut Svg, at: (f64, f64), multiscale: bool) {
    if multiscale {
        svg.triangle(at, 3.4, &format!(r#"fill="none" stroke="{}" stroke-width="1.1""#, SERIES[2]));
    } else {
        svg.circle(at, 2.2, &format!(r#"fill="{}" fill-opacity="0.75""#, SERIES[0]));
    }
}

fn csv(trials: &[TrialPoint]) -> String {
    let mut text = String::from("dataset,model,validation_accuracy,test_accuracy,mu,sigma,epsilon\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for trial in trials {
        let TrialPoint { dataset, model, validation, test, .. } = trial;
        let [mu, sigma, epsilon] = [trial.mu, trial.sigma, trial.epsilon].map(number);
        let _ = writeln!(text, "{dataset},{model},{validation},{test},{mu},{sigma},{epsilon}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(model: &str, test: f64, mu: Option<f64>) -> TrialPoint {
        let sigma = mu.map(|_| 0.2);
        let (dataset, model) = ("cornell".into(), model.into());
        TrialPoint { dataset, model, validation: 1.0 - test, test, mu, sigma, epsilon: None }
    }

    #[test]
    fn figures_without_trials_say_what_is_missing() {
        assert!(matches!(violin(&[]), Err(Error::Empty { .. })));
        let message = scatter(&[trial("gcn", 0.5, None)]).unwrap_err().to_string();
        assert!(message.contains("mu and sigma"), "{message}");
    }

    #[test]
    fn every_trial_is_drawn_and_written_down() {
        let trials =
            [trial("gcn+qdc", 0.5, Some(0.1)), trial("gcn+qdc", 0.6, Some(-0.4)), trial("gcn", 0.4, None)];
        let figure = scatter(&trials).unwrap();
        assert_eq!(figure.csv.lines().count(), 1 + 2, "the plain model has no mu");
        let figure = violin(&trials).unwrap();
        assert_eq!(figure.csv.lines().count(), 1 + 3);
        assert!(figure.svg.contains("gcn+qdc") && !figure.svg.contains("NaN"));
    }

    #[test]
    fn the_chosen_trial_is_the_best_on_validation_not_on_test() {
        let trials = [trial("gcn", 0.9, None), trial("gcn", 0.5, None), trial("gcn", 0.7, None)];
        assert_eq!(chosen(&trials).unwrap().test, 0.5);
        assert!(chosen(&[]).is_none());
    }
}
