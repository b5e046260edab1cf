//! `qdc dynamics`: heat or a quantum particle on a graph.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use qdc_core::Transition;
use qdc_core::dynamics::{Dynamics, DynamicsReport};
use serde::Serialize;

use crate::failure::Failure;
use crate::graph_arguments::GraphArguments;
use crate::output::{self, Show};
use crate::session::Session;

/// Let heat or a quantum particle spread over a graph
#[derive(Debug, Args)]
pub(crate) struct DynamicsCommand {
    #[command(flatten)]
    graph: GraphArguments,
    /// exp(-t (I - L)) f, or exp(-i t (I - L + V)) psi
    #[arg(long, value_name = "EQUATION")]
    equation: Equation,
    /// The vertex where it starts, counted from 0
    #[arg(long, value_name = "V")]
    from: usize,
    /// The times, such as 0,10,50,200
    #[arg(long, value_name = "T", value_delimiter = ',', required = true)]
    times: Vec<f64>,
    /// A file with one number for each vertex: the potential V (Schroedinger's equation only)
    #[arg(long, value_name = "FILE")]
    potential: Option<PathBuf>,
    /// Where the states go, as csv: time, vertex, value (or re, im, probability)
    #[arg(long, short, value_name = "FILE.csv")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Equation {
    Heat,
    Schrodinger,
}

#[derive(Serialize)]
struct Moved {
    equation: Equation,
    from: usize,
    times: Vec<f64>,
    /// Heat, or probability, at each time and vertex.
    states: Vec<Vec<f64>>,
    #[serde(flatten)]
    report: DynamicsReport,
    #[serde(skip)]
    csv: String,
    #[serde(skip)]
    written: Option<PathBuf>,
}

impl Show for Moved {
    fn text(&self) -> String {
        let Some(path) = &self.written else { return self.csv.clone() };
        let norm =
            self.report.norm_drift.map_or(String::new(), |drift| format!(", norm kept to {drift:.0e}"));
        format!("{} times by {} terms{norm}; {}\n", self.times.len(), self.report.degree + 1, path.display())
    }
}

impl DynamicsCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        if self.potential.is_some() && self.equation == Equation::Heat {
            return Err(Failure::usage("--potential is for --equation schrodinger; heat has none"));
        }
        let source = self.graph.load(session)?;
        let mut dynamics = Dynamics::new(&Transition::new(source.graph()));
        if let Some(path) = &self.potential {
            dynamics = dynamics.with_potential(read_numbers(path, session)?)?;
        }
        let start = dynamics.at_vertex(self.from)?;
        let mut csv;
        let (states, report) = match self.equation {
            Equation::Heat => {
                let heat = dynamics.heat(&start, &self.times, &session.watch)?;
                csv = String::from("time,vertex,heat\n");
                for (time, state) in self.times.iter().zip(&heat.states) {
                    for (v, value) in state.iter().enumerate() {
                        let _ = writeln!(csv, "{time},{v},{value}");
                    }
                }
                (heat.states, heat.report)
            }
            Equation::Schrodinger => {
                let quantum = dynamics.schrodinger(&start, &self.times, &session.watch)?;
                csv = String::from("time,vertex,re,im,probability\n");
                for (time, wave) in self.times.iter().zip(&quantum.states) {
                    for (v, probability) in wave.probability().iter().enumerate() {
                        let _ =
                            writeln!(csv, "{time},{v},{},{},{probability}", wave.real[v], wave.imaginary[v]);
                    }
                }
                (quantum.states.iter().map(qdc_core::dynamics::Wave::probability).collect(), quantum.report)
            }
        };
        if let Some(path) = &self.output {
            output::write_file(path, csv.as_bytes())?;
        }
        let Self { equation, from, times, output, .. } = self;
        session.show(&Moved { equation, from, times, states, report, csv, written: output })
    }
}

/// Numbers apart by white space or commas.
fn read_numbers(path: &std::path::Path, session: &Session) -> Result<Vec<f64>, Failure> {
    let text = qdc_data::read_text(path, session.budget())?;
    text.split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse().map_err(|_| {
                Failure::new(format!("{}: '{word}' is not a number", path.display()))
                    .hint("write one number for each vertex, nothing else".to_owned())
            })
        })
        .collect()
}
