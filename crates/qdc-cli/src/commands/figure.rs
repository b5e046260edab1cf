//! `qdc figure`: every picture from one command, with the numbers behind it as csv beside it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use qdc_core::homophily::{PROBES, sliding_windows, spectral_homophily, window_homophily};
use qdc_core::kernel::BuiltKernel;
use qdc_core::spectrum::Spectrum;
use qdc_core::{Eigensolver, Filter, Graph, Kernel, Sparsify, Transition};
use qdc_data::{Dataset, EdgeReading, Source, SpectrumCache};
use qdc_plot::figures::{self, Barbell, HomophilyPanel};
use qdc_plot::report::Window;
use qdc_plot::{Figure, animation};
use serde::Serialize;

use super::studies::{self, Studies};
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::session::Session;
use crate::window_arguments::WindowArguments;

/// `qdc figure all` computes every eigenvector of graphs up to this size: Squirrel is one, Pubmed is not.
const ALL_LIMIT: usize = 6000;

/// Spectra of graphs up to this size are not stored: half a second.
const UNSTORED: usize = 1000;

/// Draw a figure: .svg, .png or (the animation) .html, and its numbers as .csv beside it
#[derive(Debug, Args)]
pub(crate) struct FigureCommand {
    /// Which one; all draws those the given studies and graphs allow into the folder -o
    figure: Kind,
    /// Graphs or datasets (homophily, sparsity, filter) and study files (violin, scatter; the best mu elsewhere). Without a
    /// graph those of the studies are drawn
    #[arg(value_name = "GRAPH|STUDY")]
    inputs: Vec<String>,
    #[command(flatten)]
    window: WindowArguments,
    /// Where it goes; for all, a folder
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Barbell,
    Animation,
    Homophily,
    Violin,
    Scatter,
    Sparsity,
    Filter,
    All,
}

#[derive(Serialize)]
struct Drawn {
    files: Vec<PathBuf>,
    skipped: Vec<String>,
}

impl Show for Drawn {
    fn text(&self) -> String {
        let files = self.files.iter().map(|file| format!("{}\n", file.display()));
        files.chain(self.skipped.iter().map(|reason| format!("not drawn: {reason}\n"))).collect()
    }
}

impl FigureCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let (graphs, files) = studies::sort(&self.inputs);
        let studies = if files.is_empty() { None } else { Some(Studies::read(&files)?) };
        let drawing = Drawing { graphs, studies, window: self.window, session };
        let mut drawn = Drawn { files: Vec::new(), skipped: Vec::new() };
        if self.figure != Kind::All {
            drawing.draw(self.figure, &self.output, &mut drawn)?;
            return session.show(&drawn);
        }
        std::fs::create_dir_all(&self.output)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", self.output.display())))?;
        for kind in Kind::value_variants().iter().filter(|kind| **kind != Kind::All) {
            let name = kind.to_possible_value().expect("every kind has a name").get_name().to_owned();
            let extension = if *kind == Kind::Animation { "html" } else { "svg" };
            let path = self.output.join(format!("{name}.{extension}"));
            session.watch.check()?;
            if let Err(failure) = drawing.draw(*kind, &path, &mut drawn) {
                session.watch.check()?; // what Ctrl-C ended was not skipped
                drawn.skipped.push(format!("{name}: {}", failure.message()));
            }
        }
        session.show(&drawn)
    }
}

/// What figures are drawn from.
struct Drawing<'a> {
    graphs: Vec<&'a str>,
    studies: Option<Studies>,
    window: WindowArguments,
    session: &'a Session,
}

impl Drawing<'_> {
    fn draw(&self, kind: Kind, path: &Path, drawn: &mut Drawn) -> Result<(), Failure> {
        let watch = &self.session.watch;
        let figure = match kind {
            Kind::Animation => {
                let graph = barbell(self.session)?;
                let times: Vec<f64> = (0..=200).map(f64::from).collect();
                let page = animation::animation(&graph, &Barbell::new(&graph, &times, watch)?);
                output::write_file(path, page.as_bytes())?;
                drawn.files.push(path.into());
                return Ok(());
            }
            Kind::Barbell => {
                let graph = barbell(self.session)?;
                figures::barbell(&graph, &Barbell::new(&graph, &[0.0, 10.0, 50.0, 200.0], watch)?)
            }
            Kind::Homophily => self.homophily(&mut drawn.skipped)?,
            Kind::Violin => figures::violin(&self.studies()?.trials)?,
            Kind::Scatter => figures::scatter(&self.studies()?.trials)?,
            Kind::Sparsity => {
                let source = self.graph()?;
                sparsity(&source, &kernel(&source, self.window(source.name()), self.session)?)
            }
            Kind::Filter => {
                let source = self.graph()?;
                let Window { mu, sigma, .. } = self.window(source.name());
                let spectrum = spectrum(source.graph(), self.session)?;
                figures::filter(spectrum.eigenvalues(), &Filter::gaussian(mu, sigma)?)?
            }
            Kind::All => unreachable!("all is split up before"),
        };
        write(path, &figure, &mut drawn.files)
    }

    fn studies(&self) -> Result<&Studies, Failure> {
        self.studies.as_ref().ok_or_else(|| {
            Failure::usage("this figure needs a study").hint("name a study file of qdc tune".to_owned())
        })
    }

    fn window(&self, dataset: &str) -> Window {
        self.window.resolve(self.studies.as_ref().and_then(|studies| studies.best_window(dataset)))
    }

    /// The graphs named, else those of the studies, else `unsaid`.
    fn names<'b>(&'b self, unsaid: &[&'b str]) -> Vec<&'b str> {
        match &self.studies {
            _ if !self.graphs.is_empty() => self.graphs.clone(),
            Some(studies) => studies.datasets(),
            None => unsaid.to_vec(),
        }
    }

    fn graph(&self) -> Result<Source, Failure> {
        open(self.names(&["karate"])[0], self.session)
    }

    fn homophily(&self, skipped: &mut Vec<String>) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for name in self.names(&["cornell", "chameleon", "cora"]) {
            let dataset = open(name, self.session)?.into_dataset()?;
            let (graph, labels) = (&dataset.graph, &dataset.labels);
            let mut panel = homophily_panel(&dataset, self.session)?;
            if self.graphs.is_empty() && graph.nodes() > ALL_LIMIT {
                skipped.push(format!("single eigenvalues of {name}: name it to wait for its eigenvectors"));
            } else {
                panel.points =
                    spectral_homophily(&spectrum(graph, self.session)?, labels, &self.session.watch)?;
            }
            panel.best_mu = self.studies.as_ref().and_then(|studies| studies.best_mu(&dataset.name));
            panels.push(panel);
        }
        Ok(figures::homophily(&panels)?)
    }
}

/// Homophily of the graph and of windows slid over its spectrum.
pub(super) fn homophily_panel(dataset: &Dataset, session: &Session) -> Result<HomophilyPanel, Failure> {
    let Dataset { name, graph, labels, .. } = dataset;
    let mut panel = HomophilyPanel::new(name, qdc_core::homophily(graph, labels)?.node, labels);
    let labels: Vec<Option<u32>> = labels.iter().copied().map(Some).collect();
    panel.windows = window_homophily(graph, &labels, &sliding_windows(0.1), PROBES, 0, &session.watch)?;
    Ok(panel)
}

pub(super) fn open(name: &str, session: &Session) -> Result<Source, Failure> {
    Ok(qdc_data::open(name, &session.data_dir(), EdgeReading::default())?)
}

/// The kernel of a window, over all eigenpairs.
pub(super) fn kernel(source: &Source, window: Window, session: &Session) -> Result<BuiltKernel, Failure> {
    let Window { mu, sigma, epsilon } = window;
    let kernel = Kernel::new(Filter::gaussian(mu, sigma)?)
        .sparsify(Sparsify::epsilon(epsilon)?)
        .memory(session.memory.0);
    Ok(kernel.build(source.graph(), &session.watch)?)
}

/// The pattern of L before, and of the kernel after.
pub(super) fn sparsity(source: &Source, kernel: &BuiltKernel) -> Figure {
    let transition = Transition::new(source.graph());
    let titles = ["before: L", "after: the kernel"];
    figures::sparsity(transition.matrix(), &kernel.matrix, titles, source.labels())
}

/// All eigenpairs of a graph, from the store where they are; a small graph is done sooner than a file is written.
pub(super) fn spectrum(graph: &Graph, session: &Session) -> Result<Spectrum, Failure> {
    if graph.nodes() <= UNSTORED {
        let solver = Eigensolver::new().memory(Some(session.memory.0));
        return Ok(solver.solve(&Transition::new(graph), &session.watch)?);
    }
    let cache = SpectrumCache::of(&session.data_dir());
    Ok(cache.load_or_compute(&Transition::new(graph), Some(session.memory.0), &session.watch)?)
}

pub(super) fn barbell(session: &Session) -> Result<Graph, Failure> {
    Ok(open("barbell:20,1", session)?.into_graph())
}

fn write(path: &Path, figure: &Figure, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let bytes = match extension {
        "svg" => figure.svg.clone().into_bytes(),
        "png" => figure.png()?,
        _ => {
            return Err(Failure::usage(format!("{}: a figure ends in .svg or .png", path.display())));
        }
    };
    output::write_file(path, &bytes)?;
    let numbers = path.with_extension("csv");
    output::write_file(&numbers, figure.csv.as_bytes())?;
    files.extend([path.to_path_buf(), numbers]);
    Ok(())
}
