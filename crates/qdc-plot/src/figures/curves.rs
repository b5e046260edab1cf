//! Lines over steps: training curves, a layer for each split.

use std::fmt::Write;

use super::trials::names;
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
    /// Which of several lines of this name it is, such as `test` beside `validation`; empty where there is
    /// but one.
    pub part: String,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
    /// A point of it to be marked.
    pub mark: Option<(f64, f64)>,
}

impl Curve {
    /// A line without a mark.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }
}

/// Curves that are shown together, such as those of one split.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Layer {
    /// What they share.
    pub name: String,
    /// The curves; those of one name have the same colour in every layer, those of one part the same dashes.
    pub curves: Vec<Curve>,
}

/// How lines differ besides their colour.
pub(super) const DASHES: [&str; 6] = ["", "5 2", "1.5 1.5", "6 2 1.5 2", "9 3", "3 3"];

/// The most values of a layer that a pointer can read.
const READ: usize = 40;

/// A line of more points than this is drawn through the least and the greatest of each stretch.
const DRAWN: usize = 160;

/// Layers of curves in one panel, told apart by colour and by dashes: without parts each name has both of its
/// own, with parts a colour is a name and dashes are a part. The first layer is visible; all share one scale,
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
    let all = || layers.iter().flat_map(|layer| &layer.curves);
    let look = Look {
        names: names(all().map(|curve| curve.name.as_str())),
        parts: names(all().map(|curve| curve.part.as_str())),
    };
    let mut csv = String::from("layer,series,part,x,y\n");
    let mut readings = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let hidden = if number == 0 { "" } else { r#" visibility="hidden""# };
        svg.raw(&format!(r#"<g data-layer="{number}"{hidden}>"#));
        for curve in &layer.curves {
            let line: Vec<(f64, f64)> = thinned(&curve.points).map(|(x, y)| panel.at(x, y)).collect();
            svg.path(&line, false, &look.style(curve));
            let (layer, name, part) = (field(&layer.name), field(&curve.name), field(&curve.part));
            for (x, y) in &curve.points {
                let _ = writeln!(csv, "{layer},{name},{part},{x},{y}");
            }
        }
        for curve in &layer.curves {
            if let Some((x, y)) = curve.mark {
                let style = format!(r#"fill="{}" stroke="{INK}" stroke-width="0.7""#, look.colour(curve));
                svg.circle(panel.at(x, y), 2.8, &style);
            }
        }
        svg.raw("</g>");
        readings.extend(read(&panel, x_label, layer).map(|reading| reading.in_layer(number)));
    }
    let mut keys = look.keys();
    if all().any(|curve| curve.mark.is_some()) {
        let ring = format!(r#"fill="none" stroke="{INK}" stroke-width="0.9""#);
        keys.push((Mark::Dot(ring), "the step that was kept".into()));
    }
    let bottom = legend(&mut svg, (panel.left, panel.right()), panel.bottom() + 34.0, &keys);
    let layers = layers.iter().map(|layer| layer.name.clone()).collect();
    Ok(Figure { layers, ..Figure::new(svg.finish(bottom + 4.0), csv, readings) })
}

/// How curves look: the names and the parts there are, in order of appearance.
struct Look {
    names: Vec<String>,
    parts: Vec<String>,
}

impl Look {
    fn colour(&self, curve: &Curve) -> &'static str {
        SERIES[self.names.iter().position(|name| *name == curve.name).unwrap_or(0) % 6]
    }

    /// The first part is the one to look at; the others are thinner.
    fn style(&self, curve: &Curve) -> String {
        let own = if self.parts.len() > 1 { (&self.parts, &curve.part) } else { (&self.names, &curve.name) };
        let dashes = own.0.iter().position(|name| name == own.1).unwrap_or(0);
        let width = if self.parts.len() > 1 && dashes > 0 { 0.9 } else { 1.5 };
        let (colour, dashes) = (self.colour(curve), DASHES[dashes % 6]);
        format!(r#"fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}""#)
    }

    /// Names by their colours, then parts by their dashes.
    fn keys(&self) -> Vec<(Mark, String)> {
        let first = self.parts.first().cloned().unwrap_or_default();
        let of_name = |name: &String| {
            let style = self.style(&Curve { part: first.clone(), ..Curve::new(name, Vec::new()) });
            (Mark::Line(style), name.clone())
        };
        let of_part = |part: &String| {
            let curve = Curve { part: part.clone(), ..Curve::new(&self.names[0], Vec::new()) };
            (Mark::Line(self.style(&curve).replace(SERIES[0], INK)), part.clone())
        };
        let parts = if self.parts.len() > 1 { self.parts.as_slice() } else { &[] };
        self.names.iter().map(of_name).chain(parts.iter().map(of_part)).collect()
    }
}

/// The points a line needs: both ends of every level stretch, and of a long line the least and the greatest
/// of each of [`DRAWN`] / 2 stretches.
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
        let mut told = "";
        for curve in &layer.curves {
            if let Some(point) = curve.points.iter().find(|point| point.0 == x) {
                // The parts of a name stand in one line.
                let lead = if told == curve.name { ", ".to_owned() } else { format!("\n{}: ", curve.name) };
                let part = if curve.part.is_empty() { String::new() } else { format!("{} ", curve.part) };
                let _ = write!(text, "{lead}{part}{:.1}", point.1);
                told = &curve.name;
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
    fn parts_of_a_name_share_its_colour_and_have_dashes_of_their_own() {
        let part = |name: &str, part: &str, height: f64| Curve {
            part: part.into(),
            ..Curve::new(name, vec![(1.0, height), (2.0, height + 1.0)])
        };
        let curves = vec![
            part("mlp", "validation", 1.0),
            part("mlp", "test", 2.0),
            part("gcn", "validation", 3.0),
            part("gcn", "test", 4.0),
        ];
        let layers = [Layer { name: "split 0".into(), curves }];
        for width in [COLUMN, SCREEN] {
            let figure = super::curves("step", "accuracy (%)", &layers, width).unwrap();
            assert_eq!(
                figure.readings[1].text,
                "step 2\nmlp: validation 2.0, test 3.0\ngcn: validation 4.0, test 5.0"
            );
            let dashed = |colour: &str, dashes: &str, width: &str| {
                let style =
                    format!(r#"stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}""#);
                figure.svg.matches(&style).count()
            };
            // In the panel and in the legend, which names parts in ink.
            assert_eq!((dashed(SERIES[0], "", "1.5"), dashed(SERIES[1], "", "1.5")), (2, 2));
            assert_eq!((dashed(SERIES[0], DASHES[1], "0.9"), dashed(SERIES[1], DASHES[1], "0.9")), (1, 1));
            assert_eq!((dashed(INK, "", "1.5"), dashed(INK, DASHES[1], "0.9")), (1, 1));
            assert!(figure.csv.contains("split 0,gcn,test,2,5\n"));
            crate::testing::every_text_has_room(&figure.svg);
        }
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(matches!(curves("step", "loss", &[], SCREEN), Err(Error::Empty { .. })));
    }
}
