//! Heat against a quantum particle on the barbell: the graph at a few times.

use std::fmt::Write;

use qdc_core::{Dynamics, Error, Graph, Transition, Watch};

use crate::colour::{INK, plasma};
use crate::svg::{Anchor, Svg, TEXT, is_wide, text_width};
use crate::{Figure, Reading};

/// Both evolutions on a barbell of two cliques joined through one vertex.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Barbell {
    /// Vertices of each clique.
    pub clique: usize,
    /// Where everything starts.
    pub start: usize,
    /// The times.
    pub times: Vec<f64>,
    /// Heat at each time and vertex, as a share of the total at that time.
    pub heat: Vec<Vec<f64>>,
    /// Probability at each time and vertex.
    pub quantum: Vec<Vec<f64>>,
}

impl Barbell {
    /// Runs both equations from the vertex of the first clique that touches the bridge.
    ///
    /// `graph` is a barbell with one vertex between its cliques: N = 2 `clique` + 1.
    pub fn new(graph: &Graph, times: &[f64], watch: &Watch) -> Result<Self, Error> {
        let clique = (graph.nodes() - 1) / 2;
        let start = clique - 1;
        let dynamics = Dynamics::new(&Transition::new(graph));
        let initial = dynamics.at_vertex(start)?;
        let heat = dynamics.heat(&initial, times, watch)?.states;
        let heat = heat.into_iter().map(|state| {
            let total: f64 = state.iter().sum();
            state.into_iter().map(|value| value / total).collect()
        });
        let quantum = dynamics.schrodinger(&initial, times, watch)?.states;
        let quantum = quantum.iter().map(qdc_core::dynamics::Wave::probability);
        Ok(Self { clique, start, times: times.to_vec(), heat: heat.collect(), quantum: quantum.collect() })
    }

    /// The share that lies in the second clique.
    pub fn across(&self, state: &[f64]) -> f64 {
        state[self.clique + 1..].iter().sum()
    }

    /// Where each vertex is drawn, in a box of 2.6 by 1.
    pub fn layout(&self) -> Vec<(f64, f64)> {
        let clique = self.clique;
        let round = |centre: f64, towards: f64, number: usize, last: usize| {
            // The vertex that touches the bridge stands next to it.
            let angle = towards + std::f64::consts::TAU * (number as f64 - last as f64) / clique as f64;
            (centre + 0.46 * angle.cos(), 0.5 + 0.46 * angle.sin())
        };
        (0..2 * clique + 1)
            .map(|vertex| match vertex {
                _ if vertex < clique => round(0.5, 0.0, vertex, clique - 1),
                _ if vertex == clique => (1.3, 0.5),
                _ => round(2.1, std::f64::consts::PI, vertex - clique - 1, 0),
            })
            .collect()
    }
}

/// Plasma colours over the graph, one scale for each equation: its largest value after the start. The start
/// itself, where one vertex holds everything, lies above the scale, and the scale says so.
///
/// A wide figure has a row for each equation and a column for each time; a narrow one the other way round.
pub fn barbell(graph: &Graph, numbers: &Barbell, width: f64) -> Figure {
    let (wide, times) = (is_wide(width), numbers.times.len());
    let (columns, rows) = if wide { (times, 2) } else { (2, times) };
    let (margin, gap, head) = (24.0, 12.0, 18.0);
    let cell = (width - margin - gap * columns as f64) / columns as f64;
    let unit = cell / 2.6;
    let row_height = unit + 28.0;
    let mut svg = Svg::new(width);
    let layout = numbers.layout();

    let mut edges = String::new();
    for (a, b, _) in graph.edge_list() {
        let ((x1, y1), (x2, y2)) = (layout[a as usize], layout[b as usize]);
        let _ = write!(edges, "M{:.1} {:.1}L{:.1} {:.1}", unit * x1, unit * y1, unit * x2, unit * y2);
    }
    svg.raw(&format!(
        r##"<defs><path id="edges" d="{edges}" stroke="#999999" stroke-width="0.25" fill="none"/></defs>"##
    ));

    let mut readings = Vec::new();
    let bottom = head + rows as f64 * row_height;
    let equations = [("heat", "share of the heat", &numbers.heat), ("quantum", "|ψ|²", &numbers.quantum)];
    for (equation, (name, measure, states)) in equations.into_iter().enumerate() {
        let later = numbers.times.iter().zip(states.iter()).filter(|(time, _)| **time > 0.0);
        let largest = later.flat_map(|(_, state)| state.iter().copied()).fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let exceeded = states.iter().flatten().any(|value| *value > largest);
        for (at, (time, state)) in numbers.times.iter().zip(states).enumerate() {
            let (column, row) = if wide { (at, equation) } else { (equation, at) };
            let left = margin + column as f64 * (cell + gap);
            let top = head + row as f64 * row_height;
            let moment = format!("t = {time}");
            let (above, beside) = if wide { (moment.as_str(), name) } else { (name, moment.as_str()) };
            if row == 0 {
                svg.text((left + cell / 2.0, 11.0), Anchor::Middle, TEXT + 1.0, above);
            }
            if column == 0 {
                svg.upward_text((margin - 12.0, top + unit / 2.0), TEXT + 1.0, beside);
            }
            svg.raw(&format!(r##"<use href="#edges" x="{left:.2}" y="{top:.2}"/>"##));
            for (vertex, &(x, y)) in layout.iter().enumerate() {
                let stroke = if vertex == numbers.start { 1.3 } else { 0.4 };
                let style = format!(
                    r#"fill="{}" stroke="{INK}" stroke-width="{stroke}""#,
                    plasma(state[vertex] / largest)
                );
                let place = (left + unit * x, top + unit * y);
                svg.circle(place, 0.052 * unit, &style);
                let text = format!("{name}, {moment}, vertex {vertex}\n{measure}: {:.4}", state[vertex]);
                readings.push(Reading::point(place, text));
            }
            let across = format!("{:.1} % across", 100.0 * numbers.across(state));
            svg.text((left + cell / 2.0, top + unit + 12.0), Anchor::Middle, TEXT, &across);
        }
        let scale = Scale { label: format!("{name}: {measure}"), largest, exceeded };
        scale.draw(&mut svg, margin + equation as f64 * (width - margin) / 2.0, bottom + 4.0, wide);
    }
    Figure::new(svg.finish(bottom + if wide { 22.0 } else { 36.0 }), csv(numbers), readings)
}

/// The colours of an equation, from 0 to its largest value after the start.
struct Scale {
    label: String,
    largest: f64,
    /// Whether a value lies above: then the scale ends in an arrow.
    exceeded: bool,
}

impl Scale {
    fn draw(&self, svg: &mut Svg, left: f64, top: f64, wide: bool) {
        const STEPS: usize = 32;
        let (length, size) = (80.0, TEXT - 1.0);
        svg.text((left, top + 7.5), Anchor::Start, size, &self.label);
        let (x, y) = match wide {
            true => (left + text_width(&self.label, size) + 6.0, top),
            false => (left, top + 14.0),
        };
        svg.text((x, y + 7.5), Anchor::Start, size, "0");
        let x = x + 8.0;
        for step in 0..STEPS {
            let style = format!(r#"fill="{}""#, plasma((step as f64 + 0.5) / STEPS as f64));
            let place = x + length * step as f64 / STEPS as f64;
            svg.rect(place, y, length / STEPS as f64 + 0.3, 8.0, &style);
        }
        let outline = format!(r#"stroke="{INK}" stroke-width="0.5""#);
        svg.rect(x, y, length, 8.0, &format!(r#"fill="none" {outline}"#));
        let end = x + length;
        let (sign, room) = if self.exceeded { ("≥ ", 9.0) } else { ("", 3.0) };
        if self.exceeded {
            let arrow = [(end, y), (end + 6.0, y + 4.0), (end, y + 8.0)];
            svg.path(&arrow, true, &format!(r#"fill="{}" {outline}"#, plasma(1.0)));
        }
        svg.text((end + room, y + 7.5), Anchor::Start, size, &format!("{sign}{:.2}", self.largest));
    }
}

fn csv(numbers: &Barbell) -> String {
    let mut text = String::from("time,vertex,heat,probability\n");
    for (at, time) in numbers.times.iter().enumerate() {
        for vertex in 0..numbers.heat[at].len() {
            let _ = writeln!(
                text,
                "{time},{vertex},{},{}",
                numbers.heat[at][vertex], numbers.quantum[at][vertex]
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{COLUMN, PAGE};
    use qdc_core::EdgeRule;

    /// Two triangles joined through a vertex, at some times.
    fn small(times: &[f64]) -> (Graph, Barbell) {
        let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6)];
        let graph = Graph::from_edges(7, edges, EdgeRule::Undirected).unwrap();
        let numbers = Barbell::new(&graph, times, &Watch::silent()).unwrap();
        (graph, numbers)
    }

    #[test]
    fn a_scale_that_clips_ends_in_a_sign_and_one_that_does_not_has_none() {
        let (graph, numbers) = small(&[0.0, 10.0]);
        for width in [COLUMN, PAGE] {
            let svg = barbell(&graph, &numbers, width).svg;
            assert_eq!(svg.matches("≥ 0.").count(), 2, "everything lies at one vertex at the start");
            crate::testing::every_text_has_room(&svg);
        }
        let (graph, numbers) = small(&[10.0, 50.0]);
        assert!(!barbell(&graph, &numbers, PAGE).svg.contains('≥'));
    }

    #[test]
    fn every_vertex_of_every_time_is_read_at_either_width() {
        let (graph, numbers) = small(&[0.0, 10.0, 50.0]);
        let readings = |width: f64| -> Vec<String> {
            barbell(&graph, &numbers, width).readings.into_iter().map(|reading| reading.text).collect()
        };
        assert_eq!(readings(PAGE).len(), 2 * 3 * 7);
        assert_eq!(readings(PAGE), readings(COLUMN));
        assert_eq!(readings(PAGE)[2], "heat, t = 0, vertex 2\nshare of the heat: 1.0000");
    }
}
