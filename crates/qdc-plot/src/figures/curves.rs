//! Lines over steps: training curves, a layer for each split.

use std::fmt::Write;

use crate::colour::{INK, SERIES};
use crate::legend::{Mark, legend};
use crate::numbers::field;
use crate::panel::{Panel, round};
use crate::svg::{Svg, is_wide};
use crate::{Error, Figure, Reading};

/// A named line.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
    /// A point of it to be marked.
    pub mark: Option<(f64, f64)>,
}

impl Curve {
    /// A line without a mark.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, mark: None }
    }
}

/// Curves that are shown together, such as those of one split.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Layer {
    /// What they share.
    pub name: String,
    /// The curves; the n-th of every layer has the same colour.
    pub curves: Vec<Curve>,
}

/// How lines differ besides their colour.
pub(super) const DASHES: [&str; 6] = ["", "5 2", "1.5 1.5", "6 2 1.5 2", "9 3", "3 3"];

/// The most values of a layer that a pointer can read.
const READ: usize = 60;

/// A line of more points than this is drawn through the least and the greatest of each stretch.
const DRAWN: usize = 240;

/// Layers of curves in one panel, told apart by colour and by dashes. The first layer is visible; all share one scale,
/// so that a page can change from one to the next.
pub fn curves(x_label: &str, y_label: &str, layers: &[Layer], width: f64) -> Result<Figure, Error> {
    let points = || layers.iter().flat_map(|layer| &layer.curves).flat_map(|curve| &curve.points);
    if points().next().is_none() {
        return Err(Error::Empty { what: format!("no {y_label} against {x_label}") });
    }
    let span = |pick: fn(&(f64, f64)) -> f64| {
        let (low, high) = points().map(pick).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        let pad = if high > low { 0.04 * (high - low) } else { 0.5 };
        (low - pad, high + pad)
    };
    let mut svg = Svg::new(width);
    let panel = Panel {
        left: 46.0,
        top: 8.0,
        width: width - 58.0,
        height: if is_wide(width) { 190.0 } else { 150.0 },
        x: span(|point| point.0),
        y: span(|point| point.1),
    };
    panel.frame(&mut svg, "", x_label, y_label);
    let mut csv = String::from("layer,series,x,y\n");
    let mut readings = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let hidden = if number == 0 { "" } else { r#" visibility="hidden""# };
        svg.raw(&format!(r#"<g data-layer="{number}"{hidden}>"#));
        for (series, curve) in layer.curves.iter().enumerate() {
            let line: Vec<(f64, f64)> = thinned(&curve.points).map(|(x, y)| panel.at(x, y)).collect();
            svg.path(&line, false, &style(series));
            if let Some((x, y)) = curve.mark {
                let style = format!(r#"fill="{}" stroke="{INK}" stroke-width="0.7""#, SERIES[series % 6]);
                svg.circle(panel.at(x, y), 2.8, &style);
            }
            for (x, y) in &curve.points {
                let _ = writeln!(csv, "{},{},{x},{y}", field(&layer.name), field(&curve.name));
            }
        }
        svg.raw("</g>");
        readings.extend(read(&panel, x_label, layer).map(|reading| reading.in_layer(number)));
    }
    let names = layers.iter().max_by_key(|layer| layer.curves.len()).expect("there are points");
    let mut keys: Vec<(Mark, String)> = names
        .curves
        .iter()
        .enumerate()
        .map(|(series, curve)| (Mark::Line(style(series)), curve.name.clone()))
        .collect();
    if layers.iter().flat_map(|layer| &layer.curves).any(|curve| curve.mark.is_some()) {
        let ring = format!(r#"fill="none" stroke="{INK}" stroke-width="0.9""#);
        keys.push((Mark::Dot(ring), "the step that was kept".into()));
    }
    let bottom = legend(&mut svg, (panel.left, panel.right()), panel.bottom() + 34.0, &keys);
    let layers = layers.iter().map(|layer| layer.name.clone()).collect();
    Ok(Figure { layers, ..Figure::new(svg.finish(bottom + 4.0), csv, readings) })
}

fn style(series: usize) -> String {
    let (colour, dashes) = (SERIES[series % 6], DASHES[series % 6]);
    format!(r#"fill="none" stroke="{colour}" stroke-width="1.4" stroke-dasharray="{dashes}""#)
}

/// The points a line needs: both ends of every level stretch, and of a long line the least and the greatest of each of
/// [`DRAWN`] / 2 stretches.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let stretch = if points.len() > DRAWN { points.len().div_ceil(DRAWN / 2) } else { 1 };
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for chunk in points.chunks(stretch) {
        let least = chunk.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).expect("no chunk is empty");
        let most = chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).expect("no chunk is empty");
        let mut ends = [least, most];
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        for point in ends {
            if kept.last() == Some(&point) {
                continue;
            }
            if kept.len() > 1 && kept[kept.len() - 2..].iter().all(|before| before.1 == point.1) {
                kept.pop();
            }
            kept.push(point);
        }
    }
    kept.into_iter()
}

/// What a pointer reads: all curves of the layer at some of its steps.
fn read<'a>(panel: &'a Panel, x_label: &'a str, layer: &'a Layer) -> impl Iterator<Item = Reading> + 'a {
    let longest = layer.curves.iter().max_by_key(|curve| curve.points.len());
    let steps: Vec<f64> =
        longest.map_or(Vec::new(), |curve| curve.points.iter().map(|point| point.0).collect());
    let every = steps.len().div_ceil(READ).max(1);
    steps.into_iter().step_by(every).map(move |x| {
        let mut text = format!("{x_label} {}", round(x));
        for curve in &layer.curves {
            if let Some(point) = curve.points.iter().find(|point| point.0 == x) {
                let _ = write!(text, "\n{}: {:.1}", curve.name, point.1);
            }
        }
        Reading::region([panel.at(x, 0.0).0, panel.top, 0.0, panel.height], text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    fn layer(name: &str, steps: usize) -> Layer {
        let points = |factor: f64| (1..=steps).map(|step| (step as f64, factor * step as f64)).collect();
        let curves = vec![
            Curve::new("mlp", points(1.0)),
            Curve { mark: Some((2.0, 4.0)), ..Curve::new("gcn", points(2.0)) },
        ];
        Layer { name: name.into(), curves }
    }

    #[test]
    fn the_first_layer_is_shown_and_every_layer_is_read_and_written() {
        let layers = [layer("split 0", 4), layer("split 1", 3)];
        for width in [COLUMN, SCREEN] {
            let figure = curves("step", "accuracy (%)", &layers, width).unwrap();
            assert_eq!(figure.layers, ["split 0", "split 1"]);
            assert!(figure.svg.contains(r#"<g data-layer="0">"#));
            assert!(figure.svg.contains(r#"<g data-layer="1" visibility="hidden">"#));
            assert_eq!(figure.readings.len(), 4 + 3);
            assert_eq!(figure.readings[2].text, "step 3\nmlp: 3.0\ngcn: 6.0");
            assert_eq!((figure.readings[3].layer, figure.readings[4].layer), (Some(0), Some(1)));
            assert_eq!(figure.csv.lines().count(), 1 + 2 * 4 + 2 * 3);
            crate::testing::every_text_has_room(&figure.svg);
        }
    }

    #[test]
    fn a_long_curve_keeps_its_peaks_and_a_level_one_its_ends() {
        let mut points: Vec<(f64, f64)> =
            (0..1000).map(|step| (f64::from(step), f64::from(step % 7))).collect();
        points[503].1 = 99.0;
        points[700].1 = -99.0;
        let kept: Vec<(f64, f64)> = thinned(&points).collect();
        assert!(kept.len() <= DRAWN, "{}", kept.len());
        assert!(kept.contains(&(503.0, 99.0)) && kept.contains(&(700.0, -99.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        let level: Vec<(f64, f64)> = thinned(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)]).collect();
        assert_eq!(level, [(0.0, 1.0), (2.0, 1.0), (3.0, 2.0)]);
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(matches!(curves("step", "loss", &[], SCREEN), Err(Error::Empty { .. })));
    }
}
