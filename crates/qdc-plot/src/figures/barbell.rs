//! Heat against a quantum particle on the barbell: two rows of the graph at a few times.

use std::fmt::Write;

use qdc_core::{Dynamics, Error, Graph, Transition, Watch};

use crate::Figure;
use crate::colour::{INK, plasma};
use crate::svg::{Anchor, PAGE, Svg, TEXT};

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

/// Two rows, heat and quantum, a column for each time; plasma colours, one scale for each row.
///
/// The scale of a row ends at its largest value after the start, which is 1 and off the scale.
pub fn barbell(graph: &Graph, numbers: &Barbell) -> Figure {
    let columns = numbers.times.len();
    let (margin, gap, bar) = (22.0, 10.0, 46.0);
    let width = (PAGE - margin - bar - gap * columns as f64) / columns as f64;
    let unit = width / 2.6;
    let row_height = unit + 34.0;
    let mut svg = Svg::new(PAGE, 2.0 * row_height + 16.0);
    let layout = numbers.layout();

    let mut edges = String::new();
    for (a, b, _) in graph.edge_list() {
        let ((x1, y1), (x2, y2)) = (layout[a as usize], layout[b as usize]);
        let _ = write!(edges, "M{:.1} {:.1}L{:.1} {:.1}", unit * x1, unit * y1, unit * x2, unit * y2);
    }
    svg.raw(&format!(
        r##"<defs><path id="edges" d="{edges}" stroke="#999999" stroke-width="0.25" fill="none"/></defs>"##
    ));

    let rows = [("heat", &numbers.heat), ("quantum", &numbers.quantum)];
    for (row, (name, states)) in rows.into_iter().enumerate() {
        let top = 16.0 + row as f64 * row_height;
        let later = numbers.times.iter().zip(states.iter()).filter(|(time, _)| **time > 0.0);
        let largest = later.flat_map(|(_, state)| state.iter().copied()).fold(0.0, f64::max);
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let label = (margin - 10.0, top + unit / 2.0);
        svg.upward_text(label, TEXT + 1.0, if row == 0 { "heat" } else { "quantum particle" });
        for (column, (time, state)) in numbers.times.iter().zip(states).enumerate() {
            let left = margin + column as f64 * (width + gap);
            if row == 0 {
                svg.text((left + width / 2.0, 11.0), Anchor::Middle, TEXT + 1.0, &format!("t = {time}"));
            }
            svg.raw(&format!(r##"<use href="#edges" x="{left:.2}" y="{top:.2}"/>"##));
            for (vertex, &(x, y)) in layout.iter().enumerate() {
                let stroke = if vertex == numbers.start { 1.3 } else { 0.4 };
                let style = format!(
                    r#"fill="{}" stroke="{INK}" stroke-width="{stroke}""#,
                    plasma(state[vertex] / largest)
                );
                svg.circle((left + unit * x, top + unit * y), 0.052 * unit, &style);
            }
            let across = format!("{:.1} % across", 100.0 * numbers.across(state));
            svg.text((left + width / 2.0, top + unit + 12.0), Anchor::Middle, TEXT, &across);
        }
        colour_bar(&mut svg, (PAGE - bar + 6.0, top), unit, largest, name);
    }
    Figure { svg: svg.finish(), csv: csv(numbers) }
}

fn colour_bar(svg: &mut Svg, (left, top): (f64, f64), height: f64, largest: f64, name: &str) {
    const STEPS: usize = 32;
    for step in 0..STEPS {
        let share = 1.0 - (step as f64 + 0.5) / STEPS as f64;
        let y = top + height * step as f64 / STEPS as f64;
        let style = format!(r#"fill="{}""#, plasma(share));
        svg.rect(left, y, 7.0, height / STEPS as f64 + 0.3, &style);
    }
    svg.rect(left, top, 7.0, height, &format!(r#"fill="none" stroke="{INK}" stroke-width="0.5""#));
    svg.text((left + 10.0, top + 6.0), Anchor::Start, TEXT - 1.0, &format!("{largest:.2}"));
    svg.text((left + 10.0, top + height), Anchor::Start, TEXT - 1.0, "0");
    let label = if name == "heat" { "share" } else { "|ψ|²" };
    svg.text((left + 10.0, top + height / 2.0 + 3.0), Anchor::Start, TEXT - 1.0, label);
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
