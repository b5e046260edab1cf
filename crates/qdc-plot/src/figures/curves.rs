//! Lines over steps: training curves.

use std::fmt::Write;

use crate::colour::SERIES;
use crate::panel::Panel;
use crate::svg::{Anchor, COLUMN, Svg, TEXT};
use crate::{Error, Figure};

/// A named line.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
}

const DASHES: [&str; 6] = ["", "5 2", "1.5 1.5", "6 2 1.5 2", "9 3", "3 3"];

/// Curves in one panel, told apart by colour and by dashes.
pub fn curves(title: &str, x_label: &str, y_label: &str, curves: &[Curve]) -> Result<Figure, Error> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    if points().next().is_none() {
        return Err(Error::Empty { what: format!("no points for '{title}'") });
    }
    let span = |pick: fn(&(f64, f64)) -> f64| {
        let (low, high) = points().map(pick).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        let pad = if high > low { 0.04 * (high - low) } else { 0.5 };
        (low - pad, high + pad)
    };
    let legend = 13.0 * curves.len().div_ceil(2) as f64;
    let mut svg = Svg::new(COLUMN, 205.0 + legend);
    let panel = Panel {
        left: 46.0,
        top: 18.0,
        width: COLUMN - 56.0,
        height: 150.0,
        x: span(|point| point.0),
        y: span(|point| point.1),
    };
    panel.frame(&mut svg, title, x_label, y_label);
    let mut csv = String::from("series,x,y\n");
    for (number, curve) in curves.iter().enumerate() {
        let style = format!(
            r#"fill="none" stroke="{}" stroke-width="1.4" stroke-dasharray="{}""#,
            SERIES[number % 6],
            DASHES[number % 6]
        );
        let line: Vec<(f64, f64)> = curve.points.iter().map(|&(x, y)| panel.at(x, y)).collect();
        svg.path(&line, false, &style);
        let at = (46.0 + 140.0 * (number % 2) as f64, 208.0 + 13.0 * (number / 2) as f64);
        svg.line((at.0, at.1 - 3.0), (at.0 + 20.0, at.1 - 3.0), &style);
        svg.text((at.0 + 24.0, at.1), Anchor::Start, TEXT, &curve.name);
        for (x, y) in &curve.points {
            let _ = writeln!(csv, "{},{x},{y}", curve.name);
        }
    }
    Ok(Figure { svg: svg.finish(), csv })
}
