//! `qdc figure`: every picture from one command, with the numbers behind it as csv beside it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use qdc_core::bank::{Channel, View};
use qdc_core::homophily::{PROBES, sliding_windows, spectral_homophily, window_homophily};
use qdc_core::kernel::BuiltKernel;
use qdc_core::spectrum::Spectrum;
use qdc_core::{Eigensolver, Filter, Graph, Recipe, Sparsify, Transition};
use qdc_data::{Dataset, EdgeReading, Shares, Source};
use qdc_lab::{ChannelSet, Hyperparameters, Keep, Learned, Patience, Rewirings, Training};
use qdc_nn::Cpu;
use qdc_plot::figures::{self, Barbell, ChannelShares, FilterPlot, HomophilyPanel};
use qdc_plot::report::Window;
use qdc_plot::svg::{COLUMN, PAGE};
use qdc_plot::{Figure, animation};
use serde::Serialize;

use super::story;
use super::studies::{self, Studies};
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::session::Session;
use crate::window_arguments::WindowArguments;

/// `qdc figure all` computes every eigenvector of graphs up to this size: Squirrel is one, Pubmed is not.
const ALL_LIMIT: usize = 6000;

/// Splits over which the shares of channels are averaged.
const SHARED_SPLITS: usize = 3;

/// Spectra of graphs up to this size are not stored: half a second.
const UNSTORED: usize = 1000;

#[cfg_attr(
    feature = "png",
    doc = "Draw a figure: .svg, .png or (the animation) .html, and its numbers as .csv beside it"
)]
#[cfg_attr(
    not(feature = "png"),
    doc = "Draw a figure: .svg or (the animation) .html, and its numbers as .csv beside it"
)]
#[derive(Debug, Args)]
pub(crate) struct FigureCommand {
    /// Which one; all draws those the given studies and graphs allow into the folder -o
    figure: Kind,
    /// Graphs or datasets (homophily, sparsity, filter, bank, shares) and study files (comparison, violin,
    /// scatter; the best mu elsewhere). Without a graph those of the studies are drawn
    #[arg(value_name = "GRAPH|STUDY")]
    inputs: Vec<String>,
    #[command(flatten)]
    window: WindowArguments,
    /// For the figure filter: draw the filters of these files, such as qdc train --save-filter writes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mu", "sigma"])]
    filter: Vec<PathBuf>,
    /// How wide: a column of 8.5 cm or a page of 17.5 cm [default: as wide as the figure needs]
    #[arg(long)]
    width: Option<Width>,
    /// Where it goes; for all, a folder
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Barbell,
    Animation,
    Homophily,
    Comparison,
    Violin,
    Scatter,
    Sparsity,
    /// A filter over the eigenvalues
    Filter,
    /// The windows of the bank `ends` over the eigenvalues
    Bank,
    /// How much each window of the bank `ends` counts, trained on the first three splits; not part of all
    Shares,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Width {
    Column,
    Page,
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
        check_extension(self.figure, &self.output)?;
        if !self.filter.is_empty() && !matches!(self.figure, Kind::Filter | Kind::All) {
            return Err(Failure::usage("--filter does not belong to this figure")
                .hint("it belongs to the figure filter".to_owned()));
        }
        let (graphs, files) = studies::sort(&self.inputs);
        let studies = if files.is_empty() { None } else { Some(Studies::read(&files, session)?) };
        let filters = self.filter.iter().map(|file| qdc_lab::read_filter(file)).collect::<Result<_, _>>()?;
        let drawing = Drawing { graphs, studies, window: self.window, filters, width: self.width, session };
        let mut drawn = Drawn { files: Vec::new(), skipped: Vec::new() };
        if self.figure != Kind::All {
            drawing.draw(self.figure, &self.output, &mut drawn)?;
            return session.show(&drawn);
        }
        std::fs::create_dir_all(&self.output)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", self.output.display())))?;
        let part_of_all = |kind: &&Kind| !matches!(kind, Kind::All | Kind::Shares);
        for kind in Kind::value_variants().iter().filter(part_of_all) {
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
    /// Filters of files, in place of a Gaussian.
    filters: Vec<Filter>,
    width: Option<Width>,
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
                let numbers = Barbell::new(&graph, &[0.0, 10.0, 50.0, 200.0], watch)?;
                figures::barbell(&graph, &numbers, self.units(PAGE))
            }
            Kind::Homophily => self.homophily(&mut drawn.skipped)?,
            Kind::Comparison => {
                let scores = story::model_scores(self.studies()?);
                figures::comparison(&scores, self.units(PAGE))?
            }
            Kind::Violin => figures::violin(&self.studies()?.trials, self.units(PAGE))?,
            Kind::Scatter => figures::scatter(&self.studies()?.trials, self.units(PAGE))?,
            Kind::Sparsity => {
                let source = self.graph()?;
                let kernel = kernel(&source, self.window(source.name()), self.session)?;
                sparsity(&source, &kernel, self.units(COLUMN))
            }
            Kind::Filter => {
                let source = self.graph()?;
                let Window { mu, sigma, .. } = self.window(source.name());
                let eigenvalues = spectrum(source.graph(), self.session)?.eigenvalues().to_vec();
                let mut filters = self.filters.clone();
                if filters.is_empty() {
                    filters.push(Filter::gaussian(mu, sigma)?);
                }
                let plot = filter_plot(&source, eigenvalues, &filters);
                figures::filter(&plot, self.units(COLUMN))?
            }
            Kind::Bank => {
                let source = self.graph()?;
                let eigenvalues = spectrum(source.graph(), self.session)?.eigenvalues().to_vec();
                let channels = ChannelSet::Ends.channels(source.graph(), watch)?;
                let responses = channels.iter().filter_map(|channel| match &channel.view {
                    View::Filter(filter) => Some(figures::response(filter)),
                    _ => None,
                });
                let title = format!("{}: the windows of the bank", source.name());
                let plot = FilterPlot { title, eigenvalues, responses: responses.collect(), homophily: None };
                figures::filter(&plot, self.units(PAGE))?
            }
            Kind::Shares => {
                let names = self.names(&["cornell", "chameleon", "cora"])?;
                let networks = names.iter().map(|name| channel_shares(name, self.session));
                figures::shares(&networks.collect::<Result<Vec<_>, _>>()?, self.units(PAGE))?
            }
            Kind::All => unreachable!("all is split up before"),
        };
        write(path, &figure, &mut drawn.files)
    }

    /// The width asked for, or the figure's own.
    fn units(&self, own: f64) -> f64 {
        self.width.map_or(own, |width| if width == Width::Column { COLUMN } else { PAGE })
    }

    fn studies(&self) -> Result<&Studies, Failure> {
        self.studies.as_ref().ok_or_else(|| {
            Failure::usage("this figure needs a study").hint("name a study file of qdc tune".to_owned())
        })
    }

    fn window(&self, dataset: &str) -> Window {
        self.window.resolve(self.studies.as_ref().and_then(|studies| studies.best_window(dataset)))
    }

    /// The graphs named, else those of the studies, else `unsaid`. A folder of results names none.
    fn names<'b>(&'b self, unsaid: &[&'b str]) -> Result<Vec<&'b str>, Failure> {
        match &self.studies {
            _ if !self.graphs.is_empty() => Ok(self.graphs.clone()),
            Some(studies) if studies.datasets().is_empty() => {
                let example = studies.table.columns.first().map_or("cora", |column| &column.dataset);
                let hint = format!("name one beside the folder of results, such as {example}");
                Err(Failure::usage("this figure needs a graph").hint(hint))
            }
            Some(studies) => Ok(studies.datasets().iter().map(String::as_str).collect()),
            None => Ok(unsaid.to_vec()),
        }
    }

    fn graph(&self) -> Result<Source, Failure> {
        open(self.names(&["karate"])?[0], self.session)
    }

    fn homophily(&self, skipped: &mut Vec<String>) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for name in self.names(&["cornell", "chameleon", "cora"])? {
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
        Ok(figures::homophily(&panels, self.units(COLUMN))?)
    }
}

/// Homophily of the graph and of windows slid over its spectrum.
pub(super) fn homophily_panel(dataset: &Dataset, session: &Session) -> Result<HomophilyPanel, Failure> {
    let Dataset { name, graph, labels, .. } = dataset;
    let mut panel = HomophilyPanel::new(name, qdc_core::homophily(graph, labels)?.node, labels);
    let labels = qdc_core::known_labels(labels);
    panel.windows = window_homophily(graph, &labels, &sliding_windows(0.1), PROBES, 0, &session.watch)?;
    Ok(panel)
}

pub(super) fn open(name: &str, session: &Session) -> Result<Source, Failure> {
    Ok(qdc_data::open(name, &session.data_dir(), EdgeReading::default())?)
}

/// The kernel of a window, over all eigenpairs.
pub(super) fn kernel(source: &Source, window: Window, session: &Session) -> Result<BuiltKernel, Failure> {
    let Window { mu, sigma, epsilon } = window;
    let recipe = Recipe::new(Filter::gaussian(mu, sigma)?).sparsify(Sparsify::epsilon(epsilon)?);
    let resources = session.resources().beside(source.graph());
    Ok(recipe.prepare(source.graph(), &resources, &session.watch)?.build(&session.watch)?)
}

/// The pattern of L before, and of the kernel after.
pub(super) fn sparsity(source: &Source, kernel: &BuiltKernel, width: f64) -> Figure {
    let transition = Transition::new(source.graph());
    let titles = ["before: L", "after: the kernel"];
    figures::sparsity(transition.matrix(), &kernel.matrix, titles, source.labels(), width)
}

/// Filters over the eigenvalues of a graph; the title names a single one.
pub(super) fn filter_plot(source: &Source, eigenvalues: Vec<f64>, filters: &[Filter]) -> FilterPlot {
    let responses: Vec<_> = filters.iter().map(figures::response).collect();
    let title = match &responses[..] {
        [one] => format!("{}: {}", source.name(), one.name),
        _ => source.name().to_owned(),
    };
    FilterPlot { title, eigenvalues, responses, homophily: None }
}

/// The shares of the channels of the bank `ends` on a dataset, their mean over its first splits.
fn channel_shares(name: &str, session: &Session) -> Result<ChannelShares, Failure> {
    let mut dataset = open(name, session)?.into_dataset()?;
    if dataset.splits.is_empty() {
        dataset = dataset.with_random_splits(Shares::default(), 0);
    }
    let hyperparameters = Hyperparameters::new("bank".parse()?);
    let splits: Vec<usize> = (0..dataset.splits.len().min(SHARED_SPLITS)).collect();
    let training = Training {
        dataset: &dataset,
        hyperparameters: &hyperparameters,
        seeds: &[0],
        splits: &splits,
        patience: Patience::of(hyperparameters.model()),
        metric: dataset.usual_metric(),
        keep: Keep::default(),
    };
    let rewirings = Rewirings::new(&dataset).with_resources(session.resources());
    let go_on = |_: &_| ControlFlow::Continue(());
    let learned = qdc_lab::train(&training, &rewirings, &Cpu, &session.watch, &go_on)?.record.learned;
    let shares = mean_shares(&learned).into_iter().map(|(_, share)| share);
    let channels = ChannelSet::Ends.channels(&dataset.graph, &session.watch)?;
    let labelled = channels.iter().map(label).zip(shares);
    Ok(ChannelShares { dataset: dataset.name, shares: labelled.collect() })
}

/// A channel as a figure names it.
fn label(channel: &Channel) -> String {
    match &channel.view {
        View::Filter(filter) => figures::response(filter).name,
        _ => channel.to_string(),
    }
}

/// Channels by name with the mean of their shares.
pub(super) fn mean_shares(learned: &[Learned]) -> Vec<(String, f64)> {
    let Some(first) = learned.first() else { return Vec::new() };
    let mean = |at: usize| learned.iter().map(|one| one.shares[at].share).sum::<f64>() / learned.len() as f64;
    first.shares.iter().enumerate().map(|(at, share)| (share.channel.clone(), mean(at))).collect()
}

/// All eigenpairs of a graph, from the store where they are; a small graph is done sooner than a file is
/// written.
pub(super) fn spectrum(graph: &Graph, session: &Session) -> Result<Spectrum, Failure> {
    let solver = Eigensolver::new().memory(session.memory.0);
    if graph.nodes() <= UNSTORED {
        return Ok(solver.solve(&Transition::new(graph), &session.watch)?);
    }
    let cache = session.spectra();
    Ok(cache.load_or_compute(&Transition::new(graph), &solver, &session.watch)?)
}

pub(super) fn barbell(session: &Session) -> Result<Graph, Failure> {
    Ok(open("barbell:20,1", session)?.into_graph())
}

/// Refuses early what could not be written after the work.
fn check_extension(kind: Kind, path: &Path) -> Result<(), Failure> {
    let allowed: &[&str] = match kind {
        Kind::All => return Ok(()),
        Kind::Animation => &["html"],
        _ if cfg!(feature = "png") => &["svg", "png"],
        _ => &["svg"],
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    if allowed.contains(&extension) {
        return Ok(());
    }
    let what = if kind == Kind::Animation { "the animation" } else { "a figure" };
    let failure = Failure::usage(format!("{}: {what} ends in .{}", path.display(), allowed.join(" or .")));
    Err(if extension == "png" {
        failure.hint(
            "a build with --features png writes PNG; every browser and LaTeX's svg package read .svg"
                .to_owned(),
        )
    } else {
        failure
    })
}

fn write(path: &Path, figure: &Figure, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let is_png = path.extension().is_some_and(|extension| extension == "png");
    let bytes = if is_png { figure.png()? } else { figure.svg.clone().into_bytes() };
    output::write_file(path, &bytes)?;
    let numbers = path.with_extension("csv");
    output::write_file(&numbers, figure.csv.as_bytes())?;
    files.extend([path.to_path_buf(), numbers]);
    Ok(())
}
