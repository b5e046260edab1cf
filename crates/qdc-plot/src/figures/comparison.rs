//! Models compared: mean, deviation and every split, so that a difference can be held against the spread.

use std::fmt::Write;

use super::trials::{names, range};
use crate::colour::{FAINT, PAPER, SERIES};
use crate::legend::{Mark, legend};
use crate::numbers::field;
use crate::panel::Panel;
use crate::svg::{Anchor, Svg, TEXT, is_wide, text_width};
use crate::{Error, Figure, Reading};

/// How a model did on a dataset; fractions.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ModelScore {
    /// The dataset.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// What was measured, as an axis names it: `accuracy`, `ROC-AUC`.
    pub metric: String,
    /// The mean over the splits.
    pub mean: f64,
    /// The standard deviation over the splits.
    pub deviation: f64,
    /// Every split; none where they are too many to show.
    pub splits: Vec<f64>,
    /// The published mean and deviation.
    pub published: Option<(f64, f64)>,
    /// Whether the kernel the model saw is nearly the identity: such a network is an MLP.
    pub identity: bool,
}

const ROW: f64 = 24.0;

/// A panel for each dataset, a row for each model: the mean as a dot, a whisker of one standard deviation to
/// either side, every split as a small circle behind, the published mean as a diamond.
pub fn comparison(scores: &[ModelScore], width: f64) -> Result<Figure, Error> {
    if scores.is_empty() {
        return Err(Error::Empty { what: "no model was given".into() });
    }
    let datasets = names(scores.iter().map(|score| score.dataset.as_str()));
    let abreast = datasets.len().min(1 + usize::from(is_wide(width)));
    let cell = width / abreast as f64;
    let longest = scores.iter().map(|score| text_width(&label(score), TEXT)).fold(0.0, f64::max);
    let (left, right) = (longest + 10.0, text_width("00.0 ± 00.0", TEXT) + 10.0);
    let mut svg = Svg::new(width);
    let mut readings = Vec::new();
    let (mut top, mut bottom) = (20.0, 0.0f64);
    for (number, dataset) in datasets.iter().enumerate() {
        if number % abreast == 0 && number > 0 {
            top = bottom + 52.0;
        }
        let here: Vec<&ModelScore> = scores.iter().filter(|score| &score.dataset == dataset).collect();
        let values = here.iter().flat_map(|score| {
            let ends = [score.mean - score.deviation, score.mean + score.deviation];
            score.splits.iter().copied().chain(ends).chain(score.published.map(|(mean, _)| mean))
        });
        let panel = Panel {
            left: left + (number % abreast) as f64 * cell,
            top,
            width: cell - left - right,
            height: ROW * here.len() as f64,
            x: range(values.map(|value| 100.0 * value)),
            y: (here.len() as f64, 0.0),
        };
        for (row, score) in here.iter().enumerate() {
            let (_, y) = panel.at(0.0, row as f64 + 0.5);
            svg.line((panel.left, y), (panel.right(), y), &format!(r#"stroke="{FAINT}" stroke-width="0.4""#));
            svg.text((panel.left - 5.0, y + 3.0), Anchor::End, TEXT, &label(score));
            let number = format!("{:.1} ± {:.1}", 100.0 * score.mean, 100.0 * score.deviation);
            svg.text((panel.right() + 5.0, y + 3.0), Anchor::Start, TEXT, &number);
            draw(&mut svg, &panel, y, score);
            read(&panel, y, score, &mut readings);
        }
        panel.x_axis(&mut svg, &format!("test {} (%)", here[0].metric));
        panel.outline(&mut svg, dataset);
        bottom = bottom.max(panel.bottom());
    }
    let end = legend(&mut svg, (8.0, width - 6.0), bottom + 34.0, &keys(scores));
    Ok(Figure::new(svg.finish(end + 4.0), csv(scores), readings))
}

/// The model, with a star where its kernel is nearly the identity.
fn label(score: &ModelScore) -> String {
    format!("{}{}", score.model, if score.identity { " *" } else { "" })
}

fn split_style() -> String {
    format!(r#"fill="{}" fill-opacity="0.55""#, SERIES[4])
}

fn mean_style() -> String {
    format!(r#"fill="{}" stroke="{PAPER}" stroke-width="0.8""#, SERIES[0])
}

fn whisker_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1.6""#, SERIES[0])
}

fn published_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1.2""#, SERIES[1])
}

/// How far a split stands from the middle of its row: the same in every row, so that one split can be
/// followed.
fn offset(split: usize, splits: usize) -> f64 {
    if splits < 2 { 0.0 } else { 11.0 * (split as f64 / (splits - 1) as f64 - 0.5) }
}

fn draw(svg: &mut Svg, panel: &Panel, y: f64, score: &ModelScore) {
    let x = |value: f64| panel.at(100.0 * value, 0.0).0;
    for (split, value) in score.splits.iter().enumerate() {
        svg.circle((x(*value), y + offset(split, score.splits.len())), 1.7, &split_style());
    }
    if score.deviation > 0.0 {
        let (low, high) = (x(score.mean - score.deviation), x(score.mean + score.deviation));
        svg.line((low, y), (high, y), &whisker_style());
        for end in [low, high] {
            svg.line((end, y - 3.0), (end, y + 3.0), &whisker_style());
        }
    }
    if let Some((mean, _)) = score.published {
        svg.diamond((x(mean), y), 4.2, &published_style());
    }
    svg.circle((x(score.mean), y), 3.4, &mean_style());
}

fn read(panel: &Panel, y: f64, score: &ModelScore, readings: &mut Vec<Reading>) {
    let ModelScore { dataset, model, mean, deviation, splits, published, identity, .. } = score;
    let x = |value: f64| panel.at(100.0 * value, 0.0).0;
    let mut text = format!("{model} on {dataset}\n{:.2} ± {:.2} %", 100.0 * mean, 100.0 * deviation);
    if !splits.is_empty() {
        let _ = write!(text, " over {} splits", splits.len());
    }
    if let Some((mean, deviation)) = published {
        let _ = write!(text, "\npublished {:.2} ± {:.2} %", 100.0 * mean, 100.0 * deviation);
    }
    if *identity {
        text += "\nnearly the identity: this network is an MLP";
    }
    readings.push(Reading::point((x(*mean), y), text));
    for (split, value) in splits.iter().enumerate() {
        let text = format!("{model} on {dataset}\nsplit {split}: {:.2} %", 100.0 * value);
        readings.push(Reading::point((x(*value), y + offset(split, splits.len())), text));
    }
}

fn keys(scores: &[ModelScore]) -> Vec<(Mark, String)> {
    let mut keys = vec![(Mark::Dot(mean_style()), "mean".to_owned())];
    if scores.iter().any(|score| score.deviation > 0.0) {
        keys.push((Mark::Line(whisker_style()), "± standard deviation".into()));
    }
    if scores.iter().any(|score| score.splits.len() > 1) {
        keys.push((Mark::Dot(split_style()), "one split".into()));
    }
    if scores.iter().any(|score| score.published.is_some()) {
        keys.push((Mark::Diamond(published_style()), "published mean".into()));
    }
    if scores.iter().any(|score| score.identity) {
        keys.push((Mark::Box(r#"fill="none""#.into()), "* nearly the identity: an MLP".into()));
    }
    keys
}

fn csv(scores: &[ModelScore]) -> String {
    let mut text = String::from("dataset,model,what,value\n");
    for score in scores {
        let name = format!("{},{}", field(&score.dataset), field(&score.model));
        let _ = writeln!(text, "{name},mean,{}", score.mean);
        let _ = writeln!(text, "{name},deviation,{}", score.deviation);
        if let Some((mean, deviation)) = score.published {
            let _ = writeln!(text, "{name},published mean,{mean}\n{name},published deviation,{deviation}");
        }
        for (split, value) in score.splits.iter().enumerate() {
            let _ = writeln!(text, "{name},split {split},{value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    fn score(dataset: &str, model: &str, splits: &[f64]) -> ModelScore {
        let mean = splits.iter().sum::<f64>() / splits.len() as f64;
        let (dataset, model, splits) = (dataset.into(), model.into(), splits.to_vec());
        ModelScore {
            dataset,
            model,
            metric: "ROC-AUC".into(),
            mean,
            deviation: 0.1,
            splits,
            ..ModelScore::default()
        }
    }

    #[test]
    fn mean_deviation_and_every_split_are_read_and_written() {
        let published = ModelScore { published: Some((0.5, 0.2)), ..score("cornell", "gcn", &[0.4, 0.6]) };
        let scores = [published, score("cornell", "mlp", &[0.7, 0.9]), score("texas", "gcn", &[0.3, 0.5])];
        for width in [COLUMN, SCREEN] {
            let figure = comparison(&scores, width).unwrap();
            assert_eq!(figure.readings.len(), 3 * (1 + 2));
            let words = "gcn on cornell\n50.00 ± 10.00 % over 2 splits\npublished 50.00 ± 20.00 %";
            assert_eq!(figure.readings[0].text, words);
            assert_eq!(figure.readings[5].text, "mlp on cornell\nsplit 1: 90.00 %");
            assert_eq!(figure.svg.matches(">test ROC-AUC (%)<").count(), 2);
            assert!(figure.svg.contains(">80.0 ± 10.0<") && figure.svg.contains(">published mean<"));
            assert_eq!(figure.csv.lines().count(), 1 + 3 * 4 + 2);
            crate::testing::every_text_has_room(&figure.svg);
        }
    }

    #[test]
    fn a_model_on_the_identity_has_a_star_and_the_legend_says_why() {
        let mut scores = [score("cornell", "gcn+qdc", &[0.7, 0.8])];
        assert!(!comparison(&scores, COLUMN).unwrap().svg.contains('*'));
        scores[0].identity = true;
        let figure = comparison(&scores, COLUMN).unwrap();
        assert!(figure.svg.contains(">gcn+qdc *<") && figure.svg.contains("* nearly the identity"));
        assert!(figure.readings[0].text.ends_with("nearly the identity: this network is an MLP"));
        crate::testing::every_text_has_room(&figure.svg);
    }

    #[test]
    fn a_mean_without_its_splits_keeps_its_whisker() {
        let known = ModelScore { splits: Vec::new(), mean: 0.5, ..score("cornell", "gcn", &[0.4, 0.6]) };
        let figure = comparison(&[known], SCREEN).unwrap();
        assert!(figure.svg.contains("standard deviation") && !figure.svg.contains(">one split<"));
        assert_eq!(figure.readings.len(), 1);
        assert_eq!(figure.readings[0].text, "gcn on cornell\n50.00 ± 10.00 %");
    }

    #[test]
    fn one_split_has_no_whisker() {
        let alone = ModelScore { deviation: 0.0, ..score("cornell", "gcn", &[0.5]) };
        assert!(!comparison(&[alone], SCREEN).unwrap().svg.contains("standard deviation"));
        assert!(matches!(comparison(&[], SCREEN), Err(Error::Empty { .. })));
    }
}
