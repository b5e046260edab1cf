//! The filter over the density of states: which part of the spectrum a kernel looks at.

use std::fmt::Write;

use qdc_core::Filter;

use crate::colour::{FAINT, INK, PAPER, SERIES};
use crate::panel::{Panel, round, ticks};
use crate::svg::{Anchor, COLUMN, Svg, TEXT};
use crate::{Error, Figure};

const BINS: usize = 50;

/// A histogram of the eigenvalues (left axis, grey) under the filter (right axis, line).
pub fn filter(eigenvalues: &[f64], filter: &Filter) -> Result<Figure, Error> {
    if eigenvalues.is_empty() {
        return Err(Error::Empty { what: "there are no eigenvalues".into() });
    }
    let mut counts = [0usize; BINS];
    for &value in eigenvalues {
        let bin = ((value + 1.0) / 2.0 * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let tallest = *counts.iter().max().expect("there are bins") as f64;
    let mut svg = Svg::new(COLUMN, 208.0);
    let panel = Panel {
        left: 46.0,
        top: 18.0,
        width: COLUMN - 88.0,
        height: 150.0,
        x: (-1.0, 1.0),
        y: (0.0, 1.05 * tallest),
    };
    let parameters: Vec<String> = filter
        .parameters()
        .iter()
        .map(|(name, value)| format!(", {} = {}", symbol(name), round(*value)))
        .collect();
    let title = format!("{}{}", filter.name(), parameters.concat());
    panel.frame(&mut svg, &title, "eigenvalue of L", "number of eigenvalues (bars)");
    let mut csv = String::from("from,to,eigenvalues,filter_at_centre\n");
    for (bin, &count) in counts.iter().enumerate() {
        let edge = |bin: usize| -1.0 + 2.0 * bin as f64 / BINS as f64;
        let (from, to) = (edge(bin), edge(bin + 1));
        let _ = writeln!(csv, "{from:.4},{to:.4},{count},{}", filter.evaluate(0.5 * (from + to)));
        let ((x, y), (right, bottom)) = (panel.at(from, count as f64), panel.at(to, 0.0));
        if count > 0 {
            svg.rect(
                x,
                y,
                right - x,
                bottom - y,
                &format!(r#"fill="{FAINT}" stroke="{PAPER}" stroke-width="0.4""#),
            );
        }
    }
    let top = (0..=400).map(|step| filter.evaluate(-1.0 + f64::from(step) / 200.0)).fold(0.0, f64::max);
    let weights = Panel { y: (0.0, 1.05 * if top > 0.0 { top } else { 1.0 }), ..panel };
    let line: Vec<(f64, f64)> = (0..=200)
        .map(|step| -1.0 + f64::from(step) / 100.0)
        .map(|energy| weights.at(energy, filter.evaluate(energy).max(0.0)))
        .collect();
    let floor = [weights.at(1.0, 0.0), weights.at(-1.0, 0.0)];
    let below: Vec<(f64, f64)> = line.iter().copied().chain(floor).collect();
    svg.path(&below, true, &format!(r#"fill="{}" fill-opacity="0.12""#, SERIES[0]));
    svg.path(&line, false, &format!(r#"fill="none" stroke="{}" stroke-width="1.8""#, SERIES[0]));
    let right = panel.left + panel.width;
    for tick in ticks(weights.y, 5) {
        let (_, y) = weights.at(1.0, tick);
        svg.line((right, y), (right + 3.0, y), &format!(r#"stroke="{INK}" stroke-width="0.8""#));
        svg.text((right + 5.0, y + 3.0), Anchor::Start, TEXT, &round(tick));
    }
    svg.upward_text((right + 34.0, panel.top + panel.height / 2.0), TEXT, "weight of the filter (line)");
    Ok(Figure { svg: svg.finish(), csv })
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
