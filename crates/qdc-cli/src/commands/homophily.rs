//! `qdc homophily`: how often neighbours share a label.

use clap::Args;
use qdc_core::homophily::{PROBES, WindowEstimate, sliding_windows, window_homophily};
use qdc_data::Error;
use serde::Serialize;

use crate::failure::Failure;
use crate::graph_arguments::GraphArguments;
use crate::output::Show;
use crate::session::Session;

/// Measure how often neighbours share a label
#[derive(Debug, Args)]
pub(crate) struct Homophily {
    #[command(flatten)]
    graph: GraphArguments,
    /// Homophily at each distinct eigenvalue, from the graph its eigenvectors draw, as csv
    #[arg(long)]
    spectral: bool,
    /// With --spectral: windows of this width slid over the spectrum instead, without eigenvectors, so for
    /// any size; entries count their squares
    #[arg(long, value_name = "S", requires = "spectral")]
    sigma: Option<f64>,
    /// Fixes the random vectors of --sigma
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

#[derive(Serialize)]
struct Windows {
    graph: String,
    windows: Vec<WindowEstimate>,
}

impl Show for Windows {
    fn text(&self) -> String {
        let line = |w: &WindowEstimate| {
            format!("{},{},{},{},{}\n", w.mu, w.sigma, w.homophily, w.spread, w.agreement)
        };
        let heading = "mu,sigma,homophily,spread,agreement\n".to_owned();
        std::iter::once(heading).chain(self.windows.iter().map(line)).collect()
    }
}

#[derive(Serialize)]
struct Spectral {
    graph: String,
    points: Vec<qdc_core::homophily::SpectralPoint>,
}

impl Show for Spectral {
    fn text(&self) -> String {
        let lines =
            self.points.iter().map(|p| format!("{},{},{}\n", p.eigenvalue, p.multiplicity, p.homophily()));
        std::iter::once("eigenvalue,multiplicity,homophily\n".to_owned()).chain(lines).collect()
    }
}

#[derive(Serialize)]
struct Report {
    graph: String,
    nodes: usize,
    edges: usize,
    homophily: f64,
    edge_homophily: f64,
    homophily_with_neighbours: f64,
    isolated: usize,
}

impl Show for Report {
    fn text(&self) -> String {
        format!(
            "{}: {} vertices, {} edges\n\
             node homophily {:.4}  mean share of neighbours with the vertex's label\n\
             edge homophily {:.4}  share of edges within a class\n\
             {} vertices without neighbours count 0 (without them: {:.4})\n",
            self.graph,
            self.nodes,
            self.edges,
            self.homophily,
            self.edge_homophily,
            self.isolated,
            self.homophily_with_neighbours
        )
    }
}

impl Homophily {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let source = self.graph.load(session)?;
        let Some(labels) = source.labels() else {
            return Err(Error::Unlabelled { name: source.name().into() }.into());
        };
        if let Some(sigma) = self.sigma {
            let known = qdc_core::known_labels(labels);
            let windows = sliding_windows(sigma);
            let windows =
                window_homophily(source.graph(), &known, &windows, PROBES, self.seed, &session.watch)?;
            return session.show(&Windows { graph: source.name().into(), windows });
        }
        if self.spectral {
            let spectrum = super::figure::spectrum(source.graph(), session)?;
            let points = qdc_core::homophily::spectral_homophily(&spectrum, labels, &session.watch)?;
            return session.show(&Spectral { graph: source.name().into(), points });
        }
        let homophily = qdc_core::homophily(source.graph(), labels)?;
        session.show(&Report {
            graph: source.name().into(),
            nodes: source.graph().nodes(),
            edges: source.graph().edges(),
            homophily: homophily.node,
            edge_homophily: homophily.edge,
            homophily_with_neighbours: homophily.node_with_neighbours,
            isolated: homophily.isolated,
        })
    }
}
