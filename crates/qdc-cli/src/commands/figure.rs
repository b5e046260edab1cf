//! `qdc figure`: every picture from one command, with the numbers behind it as csv beside it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use qdc_core::homophily::spectral_homophily;
use qdc_core::spectrum::Spectrum;
use qdc_core::{Filter, Graph, Kernel, Sparsify, Transition, Watch, defaults};
use qdc_data::{EdgeReading, Source, SpectrumCache};
use qdc_plot::figures::{self, Barbell, HomophilyPanel, TrialPoint};
use qdc_plot::{Figure, animation};
use serde::Serialize;

use super::studies;
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::session::Session;

/// Draw a figure: .svg, .png or (the animation) .html, and its numbers as .csv beside it
#[derive(Debug, Args)]
pub(crate) struct FigureCommand {
    /// Which one; all draws those the given studies and graphs allow into the folder -o
    figure: Kind,
    /// Graphs or datasets (homophily, sparsity, filter) or study files (violin, scatter, homophily's marks)
    #[arg(value_name = "GRAPH|STUDY")]
    inputs: Vec<String>,
    /// Centre of the filter (sparsity, filter)
    #[arg(long, default_value_t = defaults::MU, allow_negative_numbers = true)]
    mu: f64,
    /// Width of the filter (sparsity, filter)
    #[arg(long, default_value_t = defaults::SIGMA)]
    sigma: f64,
    /// Threshold of the kernel (sparsity)
    #[arg(long, default_value_t = defaults::EPSILON)]
    epsilon: f64,
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
        let mut drawn = Drawn { files: Vec::new(), skipped: Vec::new() };
        if self.figure != Kind::All {
            self.draw(self.figure, &self.output, session, &mut drawn.files)?;
            return session.show(&drawn);
        }
        std::fs::create_dir_all(&self.output)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", self.output.display())))?;
        for kind in Kind::value_variants().iter().filter(|kind| **kind != Kind::All) {
            let name = kind.to_possible_value().expect("every kind has a name").get_name().to_owned();
            let extension = if *kind == Kind::Animation { "html" } else { "svg" };
            let path = self.output.join(format!("{name}.{extension}"));
            session.watch.check()?;
            if let Err(failure) = self.draw(*kind, &path, session, &mut drawn.files) {
                drawn.skipped.push(format!("{name}: {}", failure.message()));
            }
        }
        session.show(&drawn)
    }

    fn draw(
        &self,
        kind: Kind,
        path: &Path,
        session: &Session,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let watch = &session.watch;
        let figure = match kind {
            Kind::Animation => {
                let graph = barbell(session)?;
                let times: Vec<f64> = (0..=200).map(f64::from).collect();
                let page = animation::animation(&graph, &Barbell::new(&graph, &times, watch)?);
                output::write_file(path, page.as_bytes())?;
                files.push(path.into());
                return Ok(());
            }
            Kind::Barbell => {
                let graph = barbell(session)?;
                figures::barbell(&graph, &Barbell::new(&graph, &[0.0, 10.0, 50.0, 200.0], watch)?)
            }
            Kind::Homophily => self.homophily(session)?,
            Kind::Violin => figures::violin(&self.trials()?)?,
            Kind::Scatter => figures::scatter(&self.trials()?)?,
            Kind::Sparsity => {
                let source = self.graph(session)?;
                sparsity(source.graph(), self.mu, self.sigma, self.epsilon, watch)?
            }
            Kind::Filter => {
                let source = self.graph(session)?;
                let spectrum = spectrum(source.graph(), session)?;
                figures::filter(spectrum.eigenvalues(), &Filter::gaussian(self.mu, self.sigma)?)?
            }
            Kind::All => unreachable!("all is split up before"),
        };
        write(path, &figure, files)
    }

    /// Inputs that are study files.
    fn studies(&self) -> impl Iterator<Item = &String> {
        self.inputs.iter().filter(|input| studies::is_study(input))
    }

    fn trials(&self) -> Result<Vec<TrialPoint>, Failure> {
        if self.studies().next().is_none() {
            return Err(
                Failure::usage("this figure needs a study").hint("name a study file of qdc tune".to_owned())
            );
        }
        studies::trials(self.studies())
    }

    fn graph(&self, session: &Session) -> Result<Source, Failure> {
        let name =
            self.inputs.iter().find(|input| !studies::is_study(input)).map_or("karate", String::as_str);
        Ok(qdc_data::open(name, &session.data_dir(), EdgeReading::default())?)
    }

    fn homophily(&self, session: &Session) -> Result<Figure, Failure> {
        let mut names: Vec<&str> =
            self.inputs.iter().map(String::as_str).filter(|input| !studies::is_study(input)).collect();
        if names.is_empty() {
            names = vec!["cornell", "chameleon", "cora"];
        }
        let trials = if self.studies().next().is_some() { self.trials()? } else { Vec::new() };
        let mut panels = Vec::new();
        for name in names {
            let dataset =
                qdc_data::open(name, &session.data_dir(), EdgeReading::default())?.into_dataset()?;
            let spectrum = spectrum(&dataset.graph, session)?;
            let best = trials.iter().filter(|trial| trial.dataset == dataset.name && trial.mu.is_some());
            panels.push(HomophilyPanel {
                points: spectral_homophily(&spectrum, &dataset.labels, &session.watch)?,
                of_graph: qdc_core::homophily(&dataset.graph, &dataset.labels)?.node,
                best_mu: best.max_by(|a, b| a.validation.total_cmp(&b.validation)).and_then(|trial| trial.mu),
                name: dataset.name,
            });
        }
        Ok(figures::homophily(&panels)?)
    }
}

/// The pattern of L before, and of the kernel after.
pub(super) fn sparsity(
    graph: &Graph,
    mu: f64,
    sigma: f64,
    epsilon: f64,
    watch: &Watch,
) -> Result<Figure, Failure> {
    let kernel = Kernel::new(Filter::gaussian(mu, sigma)?)
        .sparsify(Sparsify::epsilon(epsilon)?)
        .build(graph, watch)?;
    let transition = Transition::new(graph);
    Ok(figures::sparsity(transition.matrix(), &kernel.matrix, ["before: L", "after: the kernel"]))
}

/// All eigenpairs of a graph, from the store where they are.
pub(super) fn spectrum(graph: &Graph, session: &Session) -> Result<Spectrum, Failure> {
    let cache = SpectrumCache::of(&session.data_dir());
    Ok(cache.load_or_compute(&Transition::new(graph), Some(session.memory.0), &session.watch)?)
}

pub(super) fn barbell(session: &Session) -> Result<Graph, Failure> {
    Ok(qdc_data::open("barbell:20,1", &session.data_dir(), EdgeReading::default())?.into_graph())
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
