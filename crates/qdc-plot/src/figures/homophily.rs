//! Homophily against eigenvalue, a panel for each dataset.

use std::collections::BTreeSet;
use std::fmt::Write;

use qdc_core::UNLABELLED;
use qdc_core::homophily::{SpectralPoint, WindowEstimate};

use crate::colour::{INK, SERIES};
use crate::legend::{Mark, legend};
use crate::numbers::field;
use crate::panel::{Panel, round};
use crate::svg::{Place, Svg, is_wide};
use crate::{Error, Figure, Reading};

/// The curve of one dataset.
#[derive(Clone, Debug)]
pub struct HomophilyPanel {
    /// The dataset.
    pub name: String,
    /// Homophily at every distinct eigenvalue; none for a graph whose eigenvectors would take too long.
    pub points: Vec<SpectralPoint>,
    /// Homophily of windows of one width, weighed by the square of the entries.
    pub windows: Vec<WindowEstimate>,
    /// Homophily of the graph itself.
    pub of_graph: f64,
    /// Homophily of pairs drawn at random: the share of all pairs that agree.
    pub by_chance: f64,
    /// The best mu of a study, to be marked.
    pub best_mu: Option<f64>,
}

impl HomophilyPanel {
    /// A panel without curves; chance follows from the labels.
    pub fn new(name: &str, of_graph: f64, labels: &[u32]) -> Self {
        let mut sizes = std::collections::BTreeMap::<u32, f64>::new();
        let known = labels.iter().filter(|&&label| label != UNLABELLED);
        known.for_each(|&label| *sizes.entry(label).or_default() += 1.0);
        let nodes: f64 = sizes.values().sum();
        let pairs: f64 = sizes.values().map(|size| size * (size - 1.0)).sum();
        let by_chance = if nodes > 1.0 { pairs / (nodes * (nodes - 1.0)) } else { 0.0 };
        let (name, points, windows) = (name.into(), Vec::new(), Vec::new());
        Self { name, points, windows, of_graph, by_chance, best_mu: None }
    }
}

/// Panels one above the other. Dots are distinct eigenvalues, larger for higher multiplicity, and the plain
/// line their running median; the line with marks is windows slid over the spectrum; dashes are the graph
/// itself, dots in a row what pairs at random would give; a vertical line is the best mu of a study.
pub fn homophily(panels: &[HomophilyPanel], width: f64) -> Result<Figure, Error> {
    if panels.is_empty() {
        return Err(Error::Empty { what: "no dataset was given".into() });
    }
    let height = if is_wide(width) { 150.0 } else { 105.0 };
    let mut svg = Svg::new(width);
    let mut csv =
        String::from("dataset,what,eigenvalue,multiplicity,homophily,spread,weighted,with_neighbours\n");
    let mut readings = Vec::new();
    let mut bottom = 0.0;
    for (number, data) in panels.iter().enumerate() {
        let reference = data.of_graph.max(data.by_chance);
        let points = data.points.iter().map(SpectralPoint::homophily);
        let windows = data.windows.iter().map(|window| window.homophily);
        let largest = points.chain(windows).fold(reference, f64::max);
        let panel = Panel {
            left: 46.0,
            top: 18.0 + number as f64 * (height + 24.0),
            width: width - 58.0,
            height,
            x: (-1.0, 1.02),
            y: (0.0, (1.1 * largest).clamp(0.1, 1.05)),
        };
        let last = number + 1 == panels.len();
        let best = data
            .best_mu
            .map_or(String::new(), |mu| format!(", best μ {}", round((100.0 * mu).round() / 100.0)));
        let title = format!("{}{best}", data.name);
        panel.frame(&mut svg, &title, if last { "eigenvalue of L" } else { "" }, "homophily");
        draw(&mut svg, &panel, data);
        read(&panel, data, &mut readings);
        write_down(data, &mut csv);
        bottom = panel.bottom();
    }
    let bottom = legend(&mut svg, (46.0, width - 6.0), bottom + 36.0, &keys(panels));
    Ok(Figure::new(svg.finish(bottom + 4.0), csv, readings))
}

fn dot_style() -> String {
    format!(r#"fill="{}" fill-opacity="0.6""#, SERIES[4])
}

fn window_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1""#, SERIES[3])
}

fn window_mark() -> String {
    format!(r#"fill="{}""#, SERIES[3])
}

fn median_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1.6""#, SERIES[0])
}

fn best_style() -> String {
    format!(r#"fill="none" stroke="{}" stroke-width="1.4""#, SERIES[1])
}

/// Dashes for the graph itself, dots for chance.
fn reference_style(dashes: &str) -> String {
    format!(r#"fill="none" stroke="{INK}" stroke-width="0.9" stroke-dasharray="{dashes}""#)
}

const OF_GRAPH: &str = "5 2.5";
const BY_CHANCE: &str = "1.2 2";

fn draw(svg: &mut Svg, panel: &Panel, data: &HomophilyPanel) {
    // Thousands of single eigenvalues: dots of one path, not elements of their own, and one where several
    // coincide.
    let mut dots = String::new();
    let mut place = Place::default();
    let cell = |point: &SpectralPoint| {
        let (x, y) = panel.at(point.eigenvalue, point.homophily());
        ((0.8 * x) as i64, (0.8 * y) as i64)
    };
    for point in apart(&data.points, cell) {
        let at = panel.at(point.eigenvalue, point.homophily());
        if point.multiplicity == 1 {
            dots.push(if dots.is_empty() { 'M' } else { 'm' });
            place.go(&mut dots, at);
            dots.push_str("h0");
        } else {
            svg.circle(at, 1.1 + 0.5 * (point.multiplicity as f64).ln(), &dot_style());
        }
    }
    svg.raw(&format!(
        r#"<path d="{dots}" stroke="{}" stroke-opacity="0.6" stroke-width="2.2" stroke-linecap="round"/>"#,
        SERIES[4]
    ));
    for (value, dashes) in [(data.of_graph, OF_GRAPH), (data.by_chance, BY_CHANCE)] {
        svg.line(panel.at(-1.0, value), panel.at(1.02, value), &reference_style(dashes));
    }
    for line in running_median(&data.points) {
        let line: Vec<(f64, f64)> = line.into_iter().map(|(x, y)| panel.at(x, y)).collect();
        svg.path(&line, false, &median_style());
    }
    let windows = data.windows.iter().map(|window| panel.at(window.mu, window.homophily));
    let windows: Vec<(f64, f64)> = windows.collect();
    svg.path(&windows, false, &window_style());
    windows.iter().for_each(|&at| svg.triangle(at, 2.4, &window_mark()));
    if let Some(mu) = data.best_mu {
        let (x, y) = panel.at(mu, panel.y.1);
        svg.line((x, y), (x, panel.bottom()), &best_style());
    }
}

/// All points of repeated eigenvalues, and of the others the first in each cell.
fn apart<'a>(
    points: &'a [SpectralPoint],
    cell: impl Fn(&SpectralPoint) -> (i64, i64) + 'a,
) -> impl Iterator<Item = &'a SpectralPoint> {
    let mut taken = BTreeSet::new();
    points.iter().filter(move |point| point.multiplicity > 1 || taken.insert(cell(point)))
}

/// What a pointer reads: of eigenvalues it cannot tell apart, a fiftieth of the panel across, the first.
fn read(panel: &Panel, data: &HomophilyPanel, readings: &mut Vec<Reading>) {
    let cell = |point: &SpectralPoint| {
        ((25.0 * point.eigenvalue) as i64, (15.0 * point.homophily() / panel.y.1) as i64)
    };
    for point in apart(&data.points, cell) {
        let times = match point.multiplicity {
            1 => String::new(),
            many => format!(" ({many} times)"),
        };
        let text =
            format!("eigenvalue {}{times}\nhomophily {:.3}", round(point.eigenvalue), point.homophily());
        readings.push(Reading::point(panel.at(point.eigenvalue, point.homophily()), text));
    }
    for WindowEstimate { mu, sigma, homophily, spread, .. } in &data.windows {
        let text = format!(
            "window at {}, σ = {}\nhomophily {homophily:.3} ± {spread:.3}",
            round(*mu),
            round(*sigma)
        );
        readings.push(Reading::point(panel.at(*mu, *homophily), text));
    }
}

fn write_down(data: &HomophilyPanel, csv: &mut String) {
    let name = field(&data.name);
    for SpectralPoint { eigenvalue, multiplicity, signed, .. } in &data.points {
        let readings = [signed.weighted, signed.unweighted_with_neighbours];
        let _ = writeln!(
            csv,
            "{name},eigenvalue,{eigenvalue},{multiplicity},{},,{},{}",
            signed.unweighted, readings[0], readings[1]
        );
    }
    for WindowEstimate { mu, sigma, homophily, spread, .. } in &data.windows {
        let _ = writeln!(csv, "{name},window of width {sigma},{mu},,{homophily},{spread},,");
    }
}

/// Names what is drawn, and nothing else.
fn keys(panels: &[HomophilyPanel]) -> Vec<(Mark, String)> {
    let mut keys = Vec::new();
    if panels.iter().any(|panel| !panel.points.is_empty()) {
        keys.push((Mark::Dot(dot_style()), "eigenvalues (large: repeated)".to_owned()));
        keys.push((Mark::Line(median_style()), "their running median".into()));
    }
    if let Some(window) = panels.iter().find_map(|panel| panel.windows.first()) {
        let text = format!("windows (σ = {}), by weight", round(window.sigma));
        keys.push((Mark::MarkedLine(window_style(), window_mark()), text));
    }
    keys.push((Mark::Line(reference_style(OF_GRAPH)), "the graph itself".into()));
    keys.push((Mark::Line(reference_style(BY_CHANCE)), "pairs at random".into()));
    if panels.iter().any(|panel| panel.best_mu.is_some()) {
        keys.push((Mark::Line(best_style()), "best μ of the study".into()));
    }
    keys
}

/// The median over distinct eigenvalues within 0.05, in pieces where there are three or more. A median, for a
/// repeated eigenvalue lives on few vertices: the others have no link there and count 0, and a mean would
/// show a dip that says nothing about labels.
fn running_median(points: &[SpectralPoint]) -> Vec<Vec<(f64, f64)>> {
    let mut lines = vec![Vec::new()];
    for step in 0..=200 {
        let centre = -1.0 + f64::from(step) / 100.0;
        let near = points.iter().filter(|point| (point.eigenvalue - centre).abs() <= 0.05);
        let mut values: Vec<f64> = near.map(SpectralPoint::homophily).collect();
        values.sort_by(f64::total_cmp);
        match (values.len() >= 3, lines.last_mut()) {
            (true, Some(line)) => line.push((centre, values[values.len() / 2])),
            (false, Some(line)) if !line.is_empty() => lines.push(Vec::new()),
            _ => {}
        }
    }
    lines.retain(|line| line.len() > 1);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, SCREEN};

    #[test]
    fn the_legend_names_the_best_mu_where_it_is_drawn_and_only_there() {
        let plain = HomophilyPanel::new("cornell", 0.1, &[0, 0, 1, 1]);
        let marked = HomophilyPanel { best_mu: Some(0.4), ..plain.clone() };
        for width in [COLUMN, SCREEN] {
            let svg = homophily(&[plain.clone(), marked.clone()], width).unwrap().svg;
            assert!(svg.contains(">best μ of the study<"));
            crate::testing::every_text_has_room(&svg);
            assert!(!homophily(std::slice::from_ref(&plain), width).unwrap().svg.contains("best μ"));
        }
    }

    #[test]
    fn chance_is_the_share_of_pairs_that_agree() {
        assert_eq!(HomophilyPanel::new("four", 0.0, &[0, 0, 1, 1]).by_chance, 1.0 / 3.0);
        assert_eq!(HomophilyPanel::new("one", 0.0, &[0]).by_chance, 0.0);
    }

    #[test]
    fn of_eigenvalues_in_one_place_one_is_drawn_and_read_and_all_are_written_down() {
        let point = |eigenvalue: f64, multiplicity: usize| {
            let reading = qdc_core::homophily::Reading { unweighted: 0.5, ..Default::default() };
            SpectralPoint { eigenvalue, multiplicity, signed: reading, absolute: reading }
        };
        let mut panel = HomophilyPanel::new("many", 0.5, &[0, 1]);
        panel.points = (0..2000).map(|place| point(-0.99 + 0.0009 * f64::from(place), 1)).collect();
        panel.points.push(point(0.9, 7));
        let figure = homophily(&[panel], SCREEN).unwrap();
        assert!((40..100).contains(&figure.readings.len()), "{}", figure.readings.len());
        assert!(figure.readings.iter().any(|reading| reading.text.contains("(7 times)")));
        assert!(
            (300..600).contains(&figure.svg.matches("h0").count()),
            "{}",
            figure.svg.matches("h0").count()
        );
        assert_eq!(figure.csv.lines().count(), 1 + 2001);
    }
}
