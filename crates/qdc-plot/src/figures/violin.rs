//! How the test score is spread over the trials of a search.

use super::trials::{TrialPoint, chosen, csv, names, range, test_axis};
use crate::colour::{INK, PAPER, SERIES};
use crate::panel::Panel;
use crate::svg::{Anchor, PAGE, Svg, TEXT, is_wide, text_width};
use crate::{Error, Figure, Reading};

/// The width of a violin below which names of models, aslant, would cover one another.
const NARROWEST: f64 = 12.0;

/// Violins of the test score of all trials, a panel for each dataset, a violin for each model. A white line
/// is the median trial, a ring the trial that validation chose.
pub fn violin(trials: &[TrialPoint], width: f64) -> Result<Figure, Error> {
    if trials.is_empty() {
        return Err(Error::Empty { what: "the studies hold no finished trial with a test score".into() });
    }
    let datasets = names(trials.iter().map(|trial| trial.dataset.as_str()));
    let models = names(trials.iter().map(|trial| trial.model.as_str()));
    let models_on = |dataset: &str| {
        names(trials.iter().filter(|trial| trial.dataset == dataset).map(|trial| trial.model.as_str()))
    };
    let most = datasets.iter().map(|dataset| models_on(dataset).len()).max().unwrap_or(1);
    let slot_of = |columns: usize, models: usize| (width / columns as f64 - 58.0) / models as f64;
    // Three datasets abreast on a page of print, two on a screen, one in a column; fewer where the names of
    // many models would cover one another.
    let abreast = if width >= PAGE { 3 } else { 1 + usize::from(is_wide(width)) };
    let abreast = (1..=abreast).rev().find(|&columns| slot_of(columns, most) >= NARROWEST).unwrap_or(1);
    let columns = datasets.len().min(abreast);
    let rows = datasets.len().div_ceil(columns);
    // Names of models stand level where there is room, else aslant.
    let longest = models.iter().map(|model| text_width(model, TEXT)).fold(0.0, f64::max);
    let cell = width / columns as f64;
    let aslant = slot_of(columns, most) < longest + 6.0;
    let height = 150.0;
    let below = if aslant { 14.0 + 0.57 * longest } else { 18.0 };
    let mut svg = Svg::new(width);
    let mut readings = Vec::new();
    for (number, dataset) in datasets.iter().enumerate() {
        let here: Vec<&TrialPoint> = trials.iter().filter(|trial| &trial.dataset == dataset).collect();
        let drawn = models_on(dataset);
        let slot = slot_of(columns, drawn.len());
        let (low, high) = range(here.iter().map(|trial| 100.0 * trial.test));
        let panel = Panel {
            left: 46.0 + (number % columns) as f64 * cell,
            top: 20.0 + (number / columns) as f64 * (height + below + 26.0),
            width: cell - 58.0,
            height,
            x: (0.0, drawn.len() as f64),
            y: (low.max(0.0), high.min(100.0)),
        };
        panel.grid(&mut svg);
        panel.y_axis(&mut svg, &test_axis(&here));
        panel.outline(&mut svg, dataset);
        for (place, model) in drawn.iter().enumerate() {
            let number = models.iter().position(|other| other == model).unwrap_or(0);
            let of_model: Vec<&TrialPoint> =
                here.iter().filter(|trial| &trial.model == model).copied().collect();
            let violin = Violin::new(of_model);
            let centre = place as f64 + 0.5;
            if let Some(violin) = violin {
                violin.draw(&mut svg, &panel, centre, SERIES[number % SERIES.len()], slot);
                let left = panel.at(place as f64, 0.0).0;
                let text = format!("{model} on {dataset}\n{}", violin.words());
                readings.push(Reading::region([left, panel.top, slot, panel.height], text));
            }
            let (x, y) = panel.at(centre, panel.y.0);
            if aslant {
                let turn = format!(r#"transform="rotate(-35 {:.1} {:.1})""#, x + 4.0, y + 11.0);
                svg.styled_text((x + 4.0, y + 11.0), Anchor::End, TEXT, model, &turn);
            } else {
                svg.text((x, y + 13.0), Anchor::Middle, TEXT, model);
            }
        }
    }
    Ok(Figure::new(svg.finish((height + below + 26.0) * rows as f64), csv(trials), readings))
}

/// The trials of a model on a dataset; there is at least one.
struct Violin<'a> {
    trials: Vec<&'a TrialPoint>,
    /// Test scores in percent, ascending.
    values: Vec<f64>,
}

impl<'a> Violin<'a> {
    fn new(trials: Vec<&'a TrialPoint>) -> Option<Self> {
        let mut values: Vec<f64> = trials.iter().map(|trial| 100.0 * trial.test).collect();
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self { trials, values })
    }

    fn median(&self) -> f64 {
        self.values[self.values.len() / 2]
    }

    fn chosen(&self) -> &TrialPoint {
        chosen(self.trials.iter().copied()).expect("there is a trial")
    }

    fn words(&self) -> String {
        format!(
            "{} trials, test {:.1} to {:.1} %\nmedian {:.1} %, chosen by validation {:.1} %",
            self.values.len(),
            self.values[0],
            self.values[self.values.len() - 1],
            self.median(),
            100.0 * self.chosen().test
        )
    }

    fn draw(&self, svg: &mut Svg, panel: &Panel, centre: f64, colour: &str, slot: f64) {
        let ends = (self.values[0], self.values[self.values.len() - 1]);
        let density = kernel_density(&self.values, ends);
        let peak = density.iter().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
        let half = (0.42 * slot).min(36.0) / slot; // few models would have violins as broad as the page
        let side = |sign: f64| {
            density.iter().map(move |(value, weight)| panel.at(centre + sign * half * weight / peak, *value))
        };
        let mut outline: Vec<(f64, f64)> = side(-1.0).collect();
        outline.extend(side(1.0).collect::<Vec<_>>().into_iter().rev());
        let style = format!(r#"fill="{colour}" fill-opacity="0.8" stroke="{INK}" stroke-width="0.7""#);
        svg.path(&outline, true, &style);
        let (median, bar) = (self.median(), 0.4 * half);
        let ((left, y), (right, _)) = (panel.at(centre - bar, median), panel.at(centre + bar, median));
        svg.line((left, y), (right, y), &format!(r#"stroke="{PAPER}" stroke-width="2""#));
        let style = format!(r#"fill="{PAPER}" stroke="{INK}" stroke-width="1.1""#);
        svg.circle(panel.at(centre, 100.0 * self.chosen().test), 2.6, &style);
    }
}

/// A Gaussian kernel density with Scott's bandwidth on a grid over `range`; a single value has a narrow one.
fn kernel_density(values: &[f64], (low, high): (f64, f64)) -> Vec<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let bandwidth = (deviation * count.powf(-0.2)).max(0.005 * (high - low)).max(1e-3);
    (0..=100)
        .map(|step| low + (high - low) * f64::from(step) / 100.0)
        .map(|at| {
            let sum =
                values.iter().map(|value| (-0.5 * ((at - value) / bandwidth).powi(2)).exp()).sum::<f64>();
            (at, sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::trials::tests::trial;
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    #[test]
    fn without_trials_the_figure_says_what_is_missing() {
        assert!(matches!(violin(&[], PAGE), Err(Error::Empty { .. })));
    }

    #[test]
    fn many_models_stand_one_dataset_below_the_other_and_absent_ones_take_no_room() {
        let of = |model: usize, dataset: &str| TrialPoint {
            dataset: dataset.into(),
            ..trial(&format!("model-{model}"), 0.5, None)
        };
        let page = |count: usize| {
            let many = (0..count).map(|model| of(model, "one"));
            let trials: Vec<TrialPoint> = many.chain([of(0, "two"), of(1, "two")]).collect();
            violin(&trials, PAGE).unwrap()
        };
        let corner = |figure: &Figure, of: &str| {
            figure.readings.iter().find(|reading| reading.text.starts_with(of)).unwrap().place
        };
        let (few, many) = (page(4), page(26));
        assert_eq!(few.readings.len(), 4 + 2);
        assert_eq!(corner(&few, "model-0 on one")[1], corner(&few, "model-0 on two")[1], "side by side");
        assert!(
            corner(&many, "model-0 on one")[1] < corner(&many, "model-0 on two")[1],
            "one below the other"
        );
        assert!(corner(&many, "model-0 on one")[2] >= NARROWEST);
        assert!(
            corner(&many, "model-0 on two")[2] > 10.0 * corner(&many, "model-0 on one")[2],
            "two share a row"
        );
    }

    #[test]
    fn every_trial_is_drawn_written_down_and_counted() {
        let trials = [trial("gcn+qdc", 0.5, Some(0.1)), trial("gcn+qdc", 0.6, None), trial("gcn", 0.4, None)];
        for width in [COLUMN, SCREEN, PAGE] {
            let figure = violin(&trials, width).unwrap();
            assert_eq!(figure.csv.lines().count(), 1 + 3);
            assert!(figure.svg.contains("gcn+qdc") && !figure.svg.contains("NaN"));
            assert_eq!(figure.readings.len(), 2);
            let words = "2 trials, test 50.0 to 60.0 %\nmedian 60.0 %, chosen by validation 50.0 %";
            assert!(figure.readings[0].text.ends_with(words), "{}", figure.readings[0].text);
            crate::testing::every_text_has_room(&figure.svg);
        }
    }
}
