//! Homophily against eigenvalue, a panel for each dataset.

use std::fmt::Write;

use qdc_core::homophily::SpectralPoint;

use crate::colour::{INK, SERIES};
use crate::panel::Panel;
use crate::svg::{Anchor, COLUMN, Svg, TEXT};
use crate::{Error, Figure};

/// The curve of one dataset.
#[derive(Clone, Debug)]
pub struct HomophilyPanel {
    /// The dataset.
    pub name: String,
    /// Homophily at every distinct eigenvalue.
    pub points: Vec<SpectralPoint>,
    /// Homophily of the graph itself.
    pub of_graph: f64,
    /// The best mu of a study, to be marked.
    pub best_mu: Option<f64>,
}

/// Panels one above the other; dots are distinct eigenvalues, larger for higher multiplicity; the line is a running
/// mean, the dashes the homophily of the graph itself, the vertical line the best mu of a study.
pub fn homophily(panels: &[HomophilyPanel]) -> Result<Figure, Error> {
    if panels.is_empty() {
        return Err(Error::Empty { what: "no dataset was given".into() });
    }
    let height = 105.0;
    let mut svg = Svg::new(COLUMN, (height + 24.0) * panels.len() as f64 + 32.0);
    let mut csv = String::from("dataset,eigenvalue,multiplicity,homophily\n");
    for (number, data) in panels.iter().enumerate() {
        let largest = data.points.iter().map(SpectralPoint::homophily).fold(data.of_graph, f64::max);
        let panel = Panel {
            left: 46.0,
            top: 18.0 + number as f64 * (height + 24.0),
            width: COLUMN - 56.0,
            height,
            x: (-1.0, 1.02),
            y: (0.0, (1.1 * largest).clamp(0.1, 1.0)),
        };
        let last = number + 1 == panels.len();
        panel.frame(&mut svg, &data.name, if last { "eigenvalue of L" } else { "" }, "homophily");
        for point in &data.points {
            let radius = 0.9 + 0.35 * (point.multiplicity as f64).ln();
            let style = format!(r#"fill="{}" fill-opacity="0.45""#, SERIES[4]);
            svg.circle(panel.at(point.eigenvalue, point.homophily()), radius, &style);
            let (eigenvalue, multiplicity) = (point.eigenvalue, point.multiplicity);
            let _ = writeln!(csv, "{},{eigenvalue},{multiplicity},{}", data.name, point.homophily());
        }
        let smooth: Vec<(f64, f64)> =
            running_mean(&data.points).into_iter().map(|(x, y)| panel.at(x, y)).collect();
        svg.path(&smooth, false, &format!(r#"fill="none" stroke="{}" stroke-width="1.6""#, SERIES[0]));
        let dashes = format!(r#"stroke="{INK}" stroke-width="0.9" stroke-dasharray="4 2.5""#);
        svg.line(panel.at(-1.0, data.of_graph), panel.at(1.02, data.of_graph), &dashes);
        if let Some(mu) = data.best_mu {
            let (x, y) = panel.at(mu, panel.y.1);
            svg.line((x, y), (x, y + height), &format!(r#"stroke="{}" stroke-width="1.4""#, SERIES[1]));
            svg.text((x + 3.0, y + 10.0), Anchor::Start, TEXT, &format!("best μ {mu:.2}"));
        }
    }
    Ok(Figure { svg: svg.finish(), csv })
}

/// The mean over neighbouring eigenvalues, weighted by a Gaussian of width 0.04 and by multiplicity.
fn running_mean(points: &[SpectralPoint]) -> Vec<(f64, f64)> {
    (0..=200)
        .map(|step| -1.0 + f64::from(step) / 100.0)
        .filter_map(|centre| {
            let weigh = |point: &SpectralPoint| {
                let distance = (point.eigenvalue - centre) / 0.04;
                point.multiplicity as f64 * (-0.5 * distance * distance).exp()
            };
            let total: f64 = points.iter().map(weigh).sum();
            let sum: f64 = points.iter().map(|point| weigh(point) * point.homophily()).sum();
            (total > 0.05).then_some((centre, sum / total))
        })
        .collect()
}
