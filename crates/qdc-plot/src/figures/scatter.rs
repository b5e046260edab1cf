//! How the test score depends on the centre and the width of the window.

use super::trials::{TrialPoint, csv, names, range, test_axis};
use crate::colour::SERIES;
use crate::legend::{Mark, legend};
use crate::panel::{Panel, round};
use crate::svg::{Svg, is_wide};
use crate::{Error, Figure, Reading};

/// The test score against mu (left) and ln sigma (right), a pair of panels for each dataset.
///
/// Models whose name ends in `multiscale` are hollow triangles, others filled circles.
pub fn scatter(trials: &[TrialPoint], width: f64) -> Result<Figure, Error> {
    let shown: Vec<&TrialPoint> = trials.iter().filter(|t| t.mu.is_some() && t.sigma.is_some()).collect();
    if shown.is_empty() {
        return Err(Error::Empty { what: "no finished trial has both mu and sigma".into() });
    }
    let datasets = names(shown.iter().map(|trial| trial.dataset.as_str()));
    let abreast = datasets.len().min(1 + usize::from(is_wide(width)));
    let (pair, height, gap) = (width / abreast as f64, 118.0, 48.0);
    let panel_width = (pair - 46.0 - 12.0 - 12.0) / 2.0;
    let mut svg = Svg::new(width);
    let mut readings = Vec::new();
    for (number, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> =
            shown.iter().copied().filter(|trial| &trial.dataset == dataset).collect();
        let accuracy = range(here.iter().map(|trial| 100.0 * trial.test));
        for side in 0..2 {
            let value = |trial: &TrialPoint| match side {
                0 => trial.mu.unwrap_or(0.0),
                _ => trial.sigma.unwrap_or(1.0).ln(),
            };
            let panel = Panel {
                left: 46.0 + (number % abreast) as f64 * pair + f64::from(side) * (panel_width + 12.0),
                top: 18.0 + (number / abreast) as f64 * (height + gap),
                width: panel_width,
                height,
                x: if side == 0 { (-1.05, 1.05) } else { range(here.iter().map(|trial| value(trial))) },
                y: accuracy,
            };
            let (x_label, y_label) =
                if side == 0 { ("μ", test_axis(&here)) } else { ("ln σ", String::new()) };
            let title = if side == 0 { dataset.as_str() } else { "" };
            panel.frame(&mut svg, title, x_label, &y_label);
            for trial in &here {
                let at = panel.at(value(trial), 100.0 * trial.test);
                match is_multiscale(&trial.model) {
                    true => svg.triangle(at, 3.4, &triangle_style()),
                    false => svg.circle(at, 2.2, &circle_style()),
                }
                readings.push(Reading::point(at, words(trial)));
            }
        }
    }
    let kinds = [
        (false, Mark::Dot(circle_style()), "the kernel alone (QDC)"),
        (true, Mark::Triangle(triangle_style()), "beside the graph (MultiScale)"),
    ];
    let present = |kind: bool| shown.iter().any(|trial| is_multiscale(&trial.model) == kind);
    let keys = kinds.into_iter().filter(|(kind, ..)| present(*kind));
    let keys: Vec<(Mark, String)> = keys.map(|(_, mark, name)| (mark, name.to_owned())).collect();
    let bottom = 18.0 + datasets.len().div_ceil(abreast) as f64 * (height + gap) - 14.0;
    let bottom = legend(&mut svg, (46.0, width - 6.0), bottom, &keys);
    Ok(Figure::new(svg.finish(bottom + 4.0), csv(shown), readings))
}

fn words(trial: &TrialPoint) -> String {
    let [mu, sigma] = [trial.mu, trial.sigma].map(|value| round(value.unwrap_or(f64::NAN)));
    let (test, validation) = (100.0 * trial.test, 100.0 * trial.validation);
    format!(
        "{} on {}\nμ = {mu}, σ = {sigma}\ntest {test:.1} %, validation {validation:.1} %",
        trial.model, trial.dataset
    )
}

fn is_multiscale(model: &str) -> bool {
    model.ends_with("multiscale")
}

fn triangle_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1.1""#, SERIES[2])
}

fn circle_style() -> String {
    format!(r#"fill="{}" fill-opacity="0.75""#, SERIES[0])
}

#[cfg(test)]
mod tests {
    use super::super::trials::tests::trial;
    use super::*;
    use crate::svg::{COLUMN, PAGE, SCREEN};

    #[test]
    fn without_windows_the_figure_says_what_is_missing() {
        let message = scatter(&[trial("gcn", 0.5, None)], PAGE).unwrap_err().to_string();
        assert!(message.contains("mu and sigma"), "{message}");
    }

    #[test]
    fn every_trial_with_a_window_is_drawn_read_and_written_down() {
        let trials = [
            trial("gcn+qdc", 0.5, Some(0.1)),
            trial("gcn+multiscale", 0.6, Some(-0.4)),
            trial("gcn", 0.4, None),
        ];
        for width in [COLUMN, SCREEN, PAGE] {
            let figure = scatter(&trials, width).unwrap();
            assert_eq!(figure.csv.lines().count(), 1 + 2, "the plain model has no mu");
            assert_eq!(figure.readings.len(), 2 * 2, "a trial stands in both panels");
            let words = "gcn+multiscale on cornell\nμ = −0.4, σ = 0.2\ntest 60.0 %, validation 40.0 %";
            assert_eq!(figure.readings[1].text, words);
            crate::testing::every_text_has_room(&figure.svg);
        }
    }
}
