//! Filters over the density of states: which part of the spectrum a kernel, or a learned window, looks at.

use std::fmt::Write;

use qdc_core::Filter;

use super::curves::{Curve, DASHES};
use crate::colour::{FAINT, INK, PAPER, SERIES};
use crate::legend::{Mark, legend};
use crate::numbers::field;
use crate::panel::{Panel, round};
use crate::svg::{Svg, is_wide};
use crate::{Error, Figure, Reading};

const BINS: usize = 50;

/// What [`filter`] draws: plain numbers, wherever they come from.
#[derive(Clone, Debug, Default)]
pub struct FilterPlot {
    /// The dataset and what was done to it.
    pub title: String,
    /// Eigenvalues of L, in [-1, 1].
    pub eigenvalues: Vec<f64>,
    /// Weight against eigenvalue, ascending: one curve for each filter.
    pub responses: Vec<Curve>,
    /// Homophily against eigenvalue, drawn behind the filters on their scale.
    pub homophily: Option<Curve>,
}

/// The weight of a filter over [-1, 1], named after the filter and its parameters; a sum after the number of
/// its terms.
pub fn response(filter: &Filter) -> Curve {
    let points = (0..=200).map(|step| -1.0 + f64::from(step) / 100.0);
    let points = points.map(|energy| (energy, filter.evaluate(energy))).collect();
    let name = match filter.terms().len() {
        0 => {
            let parameters = filter.parameters();
            let named =
                parameters.iter().map(|(name, value)| format!(", {} = {}", symbol(name), round(*value)));
            format!("{}{}", filter.name(), named.collect::<String>())
        }
        1 => "sum of one filter".to_owned(),
        terms => format!("sum of {terms} filters"),
    };
    Curve::new(&name, points)
}

/// A histogram of the eigenvalues (left axis, grey) under the filters (right axis, lines).
pub fn filter(plot: &FilterPlot, width: f64) -> Result<Figure, Error> {
    let FilterPlot { title, eigenvalues, responses, homophily } = plot;
    if eigenvalues.is_empty() {
        return Err(Error::Empty { what: "there are no eigenvalues".into() });
    }
    let mut counts = [0usize; BINS];
    for &value in eigenvalues {
        let bin = ((value + 1.0) / 2.0 * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let tallest = *counts.iter().max().expect("there are bins") as f64;
    let mut svg = Svg::new(width);
    let panel = Panel {
        left: 46.0,
        top: 18.0,
        width: width - 88.0,
        height: if is_wide(width) { 190.0 } else { 150.0 },
        x: (-1.0, 1.0),
        y: (0.0, 1.05 * tallest),
    };
    panel.frame(&mut svg, title, "eigenvalue of L", "number of eigenvalues (bars)");
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let ((x, y), (right, bottom)) = (panel.at(edge(bin), count as f64), panel.at(edge(bin + 1), 0.0));
        let style = format!(r#"fill="{FAINT}" stroke="{PAPER}" stroke-width="0.4""#);
        svg.rect(x, y, right - x, bottom - y, &style);
    }
    let curves = || responses.iter().chain(homophily);
    let values = || curves().flat_map(|curve| &curve.points).map(|point| point.1);
    let (low, top) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let weights = Panel { y: (1.05 * low, 1.05 * if top > low { top } else { 1.0 }), ..panel };
    if low < 0.0 {
        let zero = format!(r#"stroke="{INK}" stroke-width="0.5""#);
        svg.line(weights.at(-1.0, 0.0), weights.at(1.0, 0.0), &zero);
    }
    let mut keys = Vec::new();
    if let Some(curve) = homophily {
        let style = format!(r#"fill="none" stroke="{}" stroke-width="1.1""#, SERIES[3]);
        draw(&mut svg, &weights, curve, &style);
        keys.push((Mark::Line(style), curve.name.clone()));
    }
    for (number, curve) in responses.iter().enumerate() {
        // Three colours, and another dash for each three that follow.
        let (colour, dashes) = (SERIES[number % 3], DASHES[(number % 3 + number / 3) % 3]);
        let floor = [weights.at(1.0, 0.0), weights.at(-1.0, 0.0)];
        let line = curve.points.iter().map(|&(x, y)| weights.at(x, y));
        let below: Vec<(f64, f64)> = line.chain(floor).collect();
        svg.path(&below, true, &format!(r#"fill="{colour}" fill-opacity="0.12""#));
        let style =
            format!(r#"fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dashes}""#);
        draw(&mut svg, &weights, curve, &style);
        keys.push((Mark::Line(style), curve.name.clone()));
    }
    let axis = if homophily.is_some() { "weight, homophily (lines)" } else { "weight of the filter (line)" };
    weights.right_axis(&mut svg, axis);
    let mut bottom = panel.bottom() + 36.0;
    if keys.len() > 1 {
        bottom = legend(&mut svg, (panel.left, panel.right()), bottom, &keys) + 4.0;
    }
    let readings = counts.iter().enumerate().map(|(bin, count)| {
        let (from, to) = (edge(bin), edge(bin + 1));
        let mut text = format!("eigenvalues from {} to {}: {count}", round(from), round(to));
        for curve in curves() {
            let _ = write!(text, "\n{}: {:.3}", curve.name, value_at(curve, 0.5 * (from + to)));
        }
        let left = panel.at(from, 0.0).0;
        Reading::region([left, panel.top, panel.at(to, 0.0).0 - left, panel.height], text)
    });
    Ok(Figure::new(svg.finish(bottom), csv(&counts, &curves().collect::<Vec<_>>()), readings.collect()))
}

/// Where a bin begins.
fn edge(bin: usize) -> f64 {
    -1.0 + 2.0 * bin as f64 / BINS as f64
}

fn draw(svg: &mut Svg, panel: &Panel, curve: &Curve, style: &str) {
    let line: Vec<(f64, f64)> = curve.points.iter().map(|&(x, y)| panel.at(x, y)).collect();
    svg.path(&line, false, style);
}

/// The value of a curve between its points; the nearest end outside them.
fn value_at(curve: &Curve, x: f64) -> f64 {
    let after = curve.points.partition_point(|point| point.0 < x);
    match (after.checked_sub(1).map(|before| curve.points[before]), curve.points.get(after)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => f64::NAN,
    }
}

fn csv(counts: &[usize], curves: &[&Curve]) -> String {
    let names: Vec<String> = curves.iter().map(|curve| format!(",{}", field(&curve.name))).collect();
    let mut text = format!("from,to,eigenvalues{}\n", names.concat());
    for (bin, count) in counts.iter().enumerate() {
        let (from, to) = (edge(bin), edge(bin + 1));
        let values: Vec<String> =
            curves.iter().map(|curve| format!(",{}", value_at(curve, 0.5 * (from + to)))).collect();
        let _ = writeln!(text, "{from:.4},{to:.4},{count}{}", values.concat());
    }
    text
}

/// The letter the method uses for a parameter.
fn symbol(name: &str) -> &str {
    match name {
        "mu" => "μ",
        "sigma" => "σ",
        "gamma" => "γ",
        "alpha" => "α",
        "time" => "t",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    fn plot() -> FilterPlot {
        FilterPlot {
            title: "karate".into(),
            eigenvalues: vec![-0.5, -0.5, 0.31, 1.0],
            responses: vec![response(&Filter::gaussian(0.3, 0.1).unwrap())],
            homophily: None,
        }
    }

    #[test]
    fn each_bin_is_read_with_its_count_and_the_filters_weight() {
        let figure = filter(&plot(), SCREEN).unwrap();
        assert_eq!(figure.readings.len(), BINS);
        let at = |words: &str| figure.readings.iter().filter(|r| r.text.contains(words)).count();
        assert_eq!(at("eigenvalues from 0.28 to 0.32: 1\ngaussian, μ = 0.3, σ = 0.1: 1.000"), 1);
        assert_eq!((at(": 2\n"), at("to 1: 1\n")), (1, 1), "the last bin holds the eigenvalue 1");
        assert_eq!(figure.csv.lines().next(), Some("from,to,eigenvalues,\"gaussian, μ = 0.3, σ = 0.1\""));
    }

    #[test]
    fn a_sum_may_be_negative_and_is_drawn_below_a_line_at_zero() {
        let terms =
            [(1.0, Filter::gaussian(0.9, 0.2).unwrap()), (-0.5, Filter::gaussian(-0.5, 0.2).unwrap())];
        let sum = Filter::sum(terms).unwrap();
        let plot = FilterPlot { responses: vec![response(&sum)], ..plot() };
        assert_eq!(plot.responses[0].name, "sum of 2 filters");
        let figure = filter(&plot, SCREEN).unwrap();
        let text = &figure.readings[12].text;
        assert!(text.ends_with("sum of 2 filters: -0.500"), "{text}");
        assert!(figure.svg.contains(r#"stroke-width="0.5""#));
        assert!(!filter(&self::plot(), SCREEN).unwrap().svg.contains(r#"stroke-width="0.5""#));
        crate::testing::every_text_has_room(&figure.svg);
    }

    #[test]
    fn a_learned_window_stands_over_spectrum_and_homophily() {
        let homophily = Curve::new("homophily", vec![(-1.0, 0.2), (1.0, 0.6)]);
        let mut plot = FilterPlot { homophily: Some(homophily), ..plot() };
        plot.responses[0].name = "learned window".into();
        for width in [COLUMN, SCREEN] {
            let figure = filter(&plot, width).unwrap();
            assert!(figure.svg.contains(">learned window<") && figure.svg.contains(">homophily<"));
            assert!(figure.readings[25].text.contains("homophily: 0.404"), "{:?}", figure.readings[25]);
            crate::testing::every_text_has_room(&figure.svg);
        }
    }
}
