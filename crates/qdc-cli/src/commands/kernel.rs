//! `qdc kernel`: builds a kernel and writes it to a file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use qdc_core::{BuiltKernel, Csr, KernelReport, Resources};
use qdc_data::matrix;
use serde::Serialize;

use super::{merge, stream};
use crate::device_argument::DeviceArgument;
use crate::failure::Failure;
use crate::graph_arguments::GraphArguments;
use crate::kernel_arguments::KernelArguments;
use crate::output::Show;
use crate::session::Session;
use crate::units::{self, Bytes};

/// Build a kernel: a filter of the graph's spectrum, sparsified and normalised
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    kernel: KernelArguments,
    #[command(flatten)]
    device: DeviceArgument,
    /// Only the rows A up to but not including B, unnormalised, for qdc merge; FILE must end in .npz
    #[arg(long, value_name = "A:B", value_parser = row_range)]
    rows: Option<Range<usize>>,
    /// Make the kernel in row ranges kept in FOLDER; the same command continues from those that are finished
    #[arg(long, value_name = "FOLDER", conflicts_with = "rows")]
    resume: Option<PathBuf>,
    /// Where the kernel goes: .npz (SciPy), .mtx (Matrix Market), .csv or .tsv
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// What was built, and what it took.
#[derive(Serialize)]
pub(super) struct Built<'a> {
    #[serde(flatten)]
    report: &'a KernelReport,
    rows: Option<[usize; 2]>,
    seconds: f64,
    cpu_seconds: Option<f64>,
    peak_memory_bytes: Option<u64>,
    loaded_memory_bytes: Option<u64>,
    output: &'a Path,
}

/// What the clock, the CPU and the memory stood at when the work began.
pub(super) struct Started {
    at: Instant,
    cpu: Option<f64>,
    memory: Option<u64>,
}

impl Started {
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), cpu: units::cpu_seconds(), memory: units::current_memory() }
    }
}

impl<'a> Built<'a> {
    pub(super) fn new(report: &'a KernelReport, started: &Started, output: &'a Path) -> Self {
        Self {
            report,
            rows: None,
            seconds: started.at.elapsed().as_secs_f64(),
            cpu_seconds: units::cpu_seconds().zip(started.cpu).map(|(end, start)| end - start),
            peak_memory_bytes: units::peak_memory(),
            loaded_memory_bytes: started.memory,
            output,
        }
    }
}

impl Show for Built<'_> {
    fn text(&self) -> String {
        let KernelReport { nodes, entries, density, solver, reason, .. } = self.report;
        let parameters: Vec<String> =
            self.report.parameters.iter().map(|(name, value)| format!(" {name} {value}")).collect();
        let mut text = format!(
            "{}{} on {nodes} vertices: {entries} entries ({:.3} %)\n{}\nby {solver}: {reason}\n",
            self.report.filter,
            parameters.concat(),
            100.0 * density,
            accuracy(self.report)
        );
        if let Some(mass) = self.report.captured_mass.filter(|_| self.report.residual_max.is_some()) {
            let about = if self.report.captured_mass_estimated { "about " } else { "" };
            text +=
                &format!("{} pairs carry {about}{:.1} % of the filter\n", self.report.pairs, 100.0 * mass);
        }
        if self.report.empty_rows > 0 {
            text += &format!("{} rows keep nothing\n", self.report.empty_rows);
        }
        let memory = self.peak_memory_bytes.map_or(String::new(), |bytes| format!(", peak {}", Bytes(bytes)));
        text + &format!("{} in {:.2} s{memory}\n", self.output.display(), self.seconds)
    }
}

/// How far entries may be from the exact ones, in words. Entries of the built-in filters are no larger than
/// 1.
pub(super) fn accuracy(report: &KernelReport) -> String {
    if report.error_bound.is_none() && report.error_estimate.is_some_and(|error| error >= 1.0) {
        return "error of an entry: unknown, it may be as large as the entries themselves".into();
    }
    let estimate = report.error_estimate.map(|error| {
        let how = report.error_estimate_how.as_deref().unwrap_or("no account of it");
        format!("about {error:.1e} by estimate ({how})")
    });
    match (report.error_bound, estimate) {
        (Some(bound), None) => format!("error of an entry: proved below {bound:.1e}"),
        (Some(bound), Some(estimate)) => format!("error of an entry: proved below {bound:.1e}, {estimate}"),
        (None, Some(estimate)) => format!("error of an entry: no proved bound, {estimate}"),
        (None, None) => "error of an entry: unknown".into(),
    }
}

impl Kernel {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let recipe = self.kernel.recipe()?;
        check_output(&self.output)?;
        if self.rows.is_some() {
            merge::check_shard_output(&self.output)?;
        }
        let graph = self.graph.load(session)?.into_graph();
        let started = Started::now();
        let resources =
            Resources { route: self.kernel.route(), ..self.device.resources(session)? }.beside(&graph);
        let job = recipe.prepare(&graph, &resources, &session.watch)?;
        if let Some(rows) = self.rows {
            let shard = job.rows(rows.clone(), &session.watch)?;
            let mut built = Built::new(&shard.manifest.report, &started, &self.output);
            built.rows = Some([rows.start, rows.end]);
            session.watch.check()?;
            merge::write_shard(&self.output, &shard)?;
            warn(&shard.manifest.report, session);
            return session.show(&built);
        }
        let report = match &self.resume {
            Some(folder) => stream::resume(&job, &recipe, &graph, folder, &self.output, session)?,
            None => match stream::beyond_memory(&job, &recipe, graph.nodes(), &self.output, session)? {
                Some(entries) => stream::build(&job, graph.nodes(), entries, &self.output, session)?,
                None => {
                    let BuiltKernel { matrix, report } = job.build(&session.watch)?;
                    // Its times are the kernel's, without those of the file.
                    let built = Built::new(&report, &started, &self.output);
                    write(&self.output, &matrix, session)?;
                    warn(&report, session);
                    return session.show(&built);
                }
            },
        };
        let built = Built::new(&report, &started, &self.output);
        warn(&report, session);
        session.show(&built)
    }
}

/// Finds out that the result cannot be written before the work is done, not after.
pub(super) fn check_output(path: &Path) -> Result<(), Failure> {
    if matrix::Format::of(path).is_none() {
        return Err(qdc_data::Error::UnknownFormat { path: path.into() }.into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::new(format!("there is no folder {}", folder.display()))
                .hint("make it first".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Writes the matrix whole or not at all; a stop asked for in between leaves nothing.
pub(super) fn write(path: &Path, matrix: &Csr<f64>, session: &Session) -> Result<(), Failure> {
    session.watch.check()?;
    Ok(matrix::write(path, matrix)?)
}

/// Says what is allowed but probably not meant.
pub(super) fn warn(report: &KernelReport, session: &Session) {
    report.warnings.iter().for_each(|warning| session.warn(warning));
}

fn row_range(text: &str) -> Result<Range<usize>, String> {
    let range = text.split_once(':').and_then(|(a, b)| Some(a.trim().parse().ok()?..b.trim().parse().ok()?));
    range.ok_or_else(|| format!("'{text}' is not a range of rows; write A:B, such as 0:1000"))
}
