//! Figures of studies: how accuracy is spread over trials (violins), and how it depends on mu and sigma (scatter).

use std::fmt::Write;

use crate::colour::{INK, SERIES};
use crate::panel::Panel;
use crate::svg::{Anchor, PAGE, Svg, TEXT};
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

/// Violins of the test accuracy of all trials, a panel for each dataset, a violin for each model.
pub fn violin(trials: &[TrialPoint]) -> Result<Figure, Error> {
    if trials.is_empty() {
        return Err(Error::Empty { what: "the studies hold no finished trial with a test accuracy".into() });
    }
    let datasets = names(trials, |trial| &trial.dataset);
    let models = names(trials, |trial| &trial.model);
    let columns = datasets.len().min(3);
    let rows = datasets.len().div_ceil(columns);
    let (width, height) = ((PAGE - 20.0) / columns as f64, 150.0);
    let mut svg = Svg::new(PAGE.min(40.0 + width * columns as f64), (height + 52.0) * rows as f64 + 24.0);
    for (number, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> = trials.iter().filter(|trial| &trial.dataset == dataset).collect();
        let (low, high) = range(here.iter().map(|trial| 100.0 * trial.test));
        let panel = Panel {
            left: 46.0 + (number % columns) as f64 * width,
            top: 20.0 + (number / columns) as f64 * (height + 52.0),
            width: width - 52.0,
            height,
            x: (0.0, models.len() as f64),
            y: (low.max(0.0), high.min(100.0)),
        };
        let bare = Panel { x: (2.0, 2.0), ..panel }; // no numbers below: the models stand there
        bare.frame(&mut svg, dataset, "", "test accuracy (%)");
        for (place, model) in models.iter().enumerate() {
            let mut values: Vec<f64> =
                here.iter().filter(|trial| &trial.model == model).map(|trial| 100.0 * trial.test).collect();
            values.sort_by(f64::total_cmp);
            let centre = place as f64 + 0.5;
            draw_violin(&mut svg, &panel, centre, &values, SERIES[place % 6]);
            let (x, y) = panel.at(centre, panel.y.0);
            let turn = format!(r#"transform="rotate(-20 {x:.1} {:.1})""#, y + 11.0);
            svg.styled_text((x + 8.0, y + 13.0), Anchor::End, TEXT - 1.0, model, &turn);
        }
    }
    Ok(Figure { svg: svg.finish(), csv: csv(trials) })
}

fn draw_violin(svg: &mut Svg, panel: &Panel, centre: f64, values: &[f64], colour: &str) {
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else { return };
    let density = kernel_density(values, panel.y);
    let peak = density.iter().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let side = |sign: f64| {
        density
            .iter()
            .filter(|(value, _)| (least - 1e-9..=most + 1e-9).contains(value))
            .map(move |(value, weight)| panel.at(centre + sign * 0.42 * weight / peak, *value))
    };
    let mut outline: Vec<(f64, f64)> = side(-1.0).collect();
    outline.extend(side(1.0).collect::<Vec<_>>().into_iter().rev());
    if outline.len() > 3 {
        let style = format!(r#"fill="{colour}" fill-opacity="0.75" stroke="{INK}" stroke-width="0.6""#);
        svg.path(&outline, true, &style);
    }
    let median = values[values.len() / 2];
    let ((left, y), (right, _)) = (panel.at(centre - 0.15, median), panel.at(centre + 0.15, median));
    svg.line((left, y), (right, y), r#"stroke="white" stroke-width="1.8""#);
    svg.circle(panel.at(centre, most), 2.0, &format!(r#"fill="white" stroke="{INK}" stroke-width="0.9""#));
}

/// A Gaussian kernel density with Scott's bandwidth on a grid over `range`.
fn kernel_density(values: &[f64], (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let bandwidth = (deviation * count.powf(-0.2)).max(0.005 * (high - low));
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
    let width = ((PAGE - 20.0) / datasets.len() as f64).min(260.0);
    let height = 120.0;
    let mut svg = Svg::new(20.0 + width * datasets.len() as f64, 2.0 * (height + 46.0) + 30.0);
    for (column, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> = shown.iter().filter(|trial| &trial.dataset == dataset).collect();
        let accuracy = range(here.iter().map(|trial| 100.0 * trial.test));
        for row in 0..2 {
            let value = |trial: &TrialPoint| match row {
                0 => trial.mu.unwrap_or(0.0),
                _ => trial.sigma.unwrap_or(1.0).ln(),
            };
            let panel = Panel {
                left: 46.0 + column as f64 * width,
                top: 18.0 + f64::from(row) * (height + 46.0),
                width: width - 56.0,
                height,
                x: if row == 0 { (-1.05, 1.05) } else { range(here.iter().map(|trial| value(trial))) },
                y: accuracy,
            };
            let title = if row == 0 { dataset.as_str() } else { "" };
            panel.frame(&mut svg, title, if row == 0 { "μ" } else { "ln σ" }, "test accuracy (%)");
            for trial in &here {
                let at = panel.at(value(trial), 100.0 * trial.test);
                if trial.model.ends_with("multiscale") {
                    svg.triangle(at, 3.0, &format!(r#"fill="none" stroke="{}" stroke-width="1""#, SERIES[2]));
                } else {
                    svg.circle(at, 1.9, &format!(r#"fill="{}" fill-opacity="0.7""#, SERIES[0]));
                }
            }
        }
    }
    let y = 2.0 * (height + 46.0) + 24.0;
    svg.circle((50.0, y - 3.0), 2.2, &format!(r#"fill="{}""#, SERIES[0]));
    svg.text((57.0, y), Anchor::Start, TEXT, "QDC");
    svg.triangle((100.0, y - 3.0), 3.4, &format!(r#"fill="none" stroke="{}""#, SERIES[2]));
    svg.text((108.0, y), Anchor::Start, TEXT, "MultiScale");
    Ok(Figure { svg: svg.finish(), csv: csv(&shown) })
}

fn csv(trials: &[TrialPoint]) -> String {
    let mut text = String::from("dataset,model,validation_accuracy,test_accuracy,mu,sigma\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for trial in trials {
        let TrialPoint { dataset, model, validation, test, mu, sigma } = trial;
        let _ = writeln!(text, "{dataset},{model},{validation},{test},{},{}", number(*mu), number(*sigma));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(model: &str, test: f64, mu: Option<f64>) -> TrialPoint {
        let sigma = mu.map(|_| 0.2);
        TrialPoint { dataset: "cornell".into(), model: model.into(), validation: test, test, mu, sigma }
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
}
