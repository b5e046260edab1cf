//! `qdc homophily`: how often neighbours share a label.

use clap::Args;
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
