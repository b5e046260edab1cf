//! `qdc spectrum`: eigenpairs of a graph's transition matrix.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use qdc_core::Route;
use qdc_core::spectrum::{Eigensolver, Pairs, Spectrum, SpectrumReport};
use qdc_core::{Transition, defaults};
use qdc_data::Error;
use qdc_data::npz::NpzWriter;
use serde::Serialize;

use crate::device_argument::DeviceArgument;
use crate::failure::Failure;
use crate::graph_arguments::GraphArguments;
use crate::output::Show;
use crate::session::Session;

/// Compute eigenpairs of a graph: all of them, or those nearest to a point of the spectrum
#[derive(Debug, Args)]
pub(crate) struct SpectrumCommand {
    #[command(flatten)]
    graph: GraphArguments,
    /// How many pairs: all, or the K nearest to --around (groups of equal eigenvalues are taken whole)
    #[arg(long, value_name = "all|K", default_value_t = Pairs::All)]
    pairs: Pairs,
    /// The point of the spectrum the pairs shall be nearest to
    #[arg(long, value_name = "MU", default_value_t = defaults::MU, allow_negative_numbers = true)]
    around: f64,
    /// The route: auto, dense, lobpcg or window (a polynomial filter or shift-invert, whichever is cheaper)
    #[arg(long, value_name = "SOLVER", default_value_t = Route::Auto)]
    solver: Route,
    /// Weight of the self-loops
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    self_loop: f64,
    #[command(flatten)]
    device: DeviceArgument,
    /// Where the pairs go: an .npz with eigenvalues (k) and eigenvectors (N x k)
    #[arg(long, short, value_name = "FILE.npz")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Solved<'a> {
    graph: &'a str,
    nodes: usize,
    #[serde(flatten)]
    report: &'a SpectrumReport,
    smallest: Option<f64>,
    largest: Option<f64>,
    /// Lower bounds on the distance to the next eigenvalues outside; null where there is none or nothing is
    /// proved.
    gap_below: Option<f64>,
    gap_above: Option<f64>,
    seconds: f64,
    output: Option<&'a Path>,
}

impl Show for Solved<'_> {
    fn text(&self) -> String {
        let SpectrumReport { pairs, solver, reason, residual_max, orthogonality, .. } = self.report;
        let range = self
            .smallest
            .zip(self.largest)
            .map_or(String::new(), |(low, high)| format!(", eigenvalues from {low:.6} to {high:.6}"));
        let counted = match self.report.counted {
            Some(counted) if self.report.count_exact => format!("{counted} counted, none missing"),
            Some(counted) => format!("about {counted} expected (an estimate)"),
            None => "not counted".into(),
        };
        let mut text = format!(
            "{}: {pairs} pairs of {} vertices{range}\n\
             by {solver}: {reason}\n\
             residuals below {residual_max:.1e}, orthogonal within {orthogonality:.1e}; {counted}\n\
             {} pairs belong to vertices with the same neighbourhood\n",
            self.graph, self.nodes, self.report.twin_pairs
        );
        if let Some(output) = self.output {
            text += &format!("{} in {:.2} s\n", output.display(), self.seconds);
        }
        text
    }
}

impl SpectrumCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        if let Some(output) = &self.output
            && output.extension().is_none_or(|extension| extension != "npz")
        {
            return Err(Failure::usage(format!("{} does not end in .npz", output.display())));
        }
        let source = self.graph.load(session)?;
        let transition = Transition::with_self_loop(source.graph(), self.self_loop)?;
        let started = Instant::now();
        let solver = Eigensolver::new().accelerator(self.device.resources(session)?.accelerator);
        let spectrum = match self.solve(&solver.memory(session.memory.0), &transition, session) {
            Err(Error::Core(qdc_core::Error::Unconverged { partial, found, expected })) => {
                let error = qdc_core::Error::Unconverged { partial: partial.clone(), found, expected };
                return Err(with_partial(error.into(), &partial, self.output.as_deref()));
            }
            outcome => outcome?,
        };
        if let Some(output) = &self.output {
            session.watch.check()?;
            write(output, &spectrum)?;
        }
        let all = 0..spectrum.pairs();
        session.show(&Solved {
            graph: source.name(),
            nodes: spectrum.nodes(),
            report: spectrum.report(),
            smallest: spectrum.eigenvalues().first().copied(),
            largest: spectrum.eigenvalues().last().copied(),
            gap_below: if all.is_empty() { None } else { spectrum.gap_below(&all) },
            gap_above: if all.is_empty() { None } else { spectrum.gap_above(&all) },
            seconds: started.elapsed().as_secs_f64(),
            output: self.output.as_deref(),
        })
    }

    /// All pairs come from the store, or go into it; a window is computed for itself.
    fn solve(
        &self,
        solver: &Eigensolver,
        transition: &Transition,
        session: &Session,
    ) -> Result<Spectrum, Error> {
        let cache = session.spectra();
        if self.pairs == Pairs::All && matches!(self.solver, Route::Auto | Route::Dense) {
            return cache.load_or_compute(transition, solver, &session.watch);
        }
        let solver = solver.clone().pairs(self.pairs).around(self.around).solver(self.solver);
        Ok(solver.solve(transition, &session.watch)?)
    }
}

/// The pairs that did converge go beside the file asked for, which is not written: it would pass for
/// complete.
fn with_partial(failure: Failure, partial: &Spectrum, output: Option<&Path>) -> Failure {
    let Some(path) = output.map(|output| output.with_extension("partial.npz")) else { return failure };
    let SpectrumReport { pairs, residual_max, .. } = partial.report();
    let hint = match write(&path, partial) {
        Ok(()) => {
            format!("the {pairs} pairs found, residuals below {residual_max:.1e}, are in {}", path.display())
        }
        Err(error) => format!("the pairs found could not be kept: {}", error.message()),
    };
    failure.and_hint(&hint)
}

fn write(path: &Path, spectrum: &Spectrum) -> Result<(), Failure> {
    let (nodes, pairs) = (spectrum.nodes(), spectrum.pairs());
    let mut file = NpzWriter::create_stored(path)?;
    file.array("eigenvalues", &[pairs], spectrum.eigenvalues())?;
    let vectors = spectrum.vectors();
    let by_row = (0..nodes).flat_map(|row| (0..pairs).map(move |pair| vectors[pair * nodes + row]));
    file.array_from("eigenvectors", &[nodes, pairs], by_row)?;
    Ok(file.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdc_core::{EdgeRule, Graph, Watch};

    #[test]
    fn pairs_of_a_solver_that_failed_are_kept_under_a_name_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = Graph::from_edges(9, (0..8).map(|i| (i, i + 1)), EdgeRule::Undirected).unwrap();
        let solver = Eigensolver::new().pairs(Pairs::Nearest(3)).around(0.0);
        let partial = solver.solve(&Transition::new(&path), &Watch::silent()).unwrap();
        let error =
            qdc_core::Error::Unconverged { partial: Box::new(partial.clone()), found: 3, expected: 5 };
        let failure = with_partial(error.into(), &partial, Some(&folder.path().join("pairs.npz")));
        assert!(failure.message().contains("found 3 of 5 pairs"), "{}", failure.message());
        let files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["pairs.partial.npz"]);
        let npz = qdc_data::npz::Npz::open(folder.path().join("pairs.partial.npz")).unwrap();
        assert_eq!(npz.vector::<f64>("eigenvalues").unwrap(), partial.eigenvalues());
    }
}
