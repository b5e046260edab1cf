//! `qdc merge`: joins row ranges of a kernel into the whole.
//!
//! A shard is a SciPy file of its rows, and beside it `FILE.json`, its manifest: graph, parameters, range.

use std::path::{Path, PathBuf};

use clap::Args;
use qdc_core::kernel::ShardManifest;
use qdc_core::{BuiltKernel, KernelReport, Shard};
use qdc_data::KernelFile;
use qdc_data::matrix::{self, Format};
use qdc_data::output::write_file;

use super::kernel::{Built, Started, check_output, warn, write};
use super::stream::SHARE;
use crate::failure::Failure;
use crate::session::Session;

/// Join row ranges made by qdc kernel --rows, then normalise
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The shards, in any order; every row must be in exactly one
    #[arg(value_name = "SHARD", required = true)]
    shards: Vec<PathBuf>,
    /// Where the kernel goes: .npz (SciPy), .mtx (Matrix Market), .csv or .tsv
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

impl Merge {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        check_output(&self.output)?;
        let started = Started::now();
        let report = join(&self.shards, &self.output, session)?;
        let built = Built::new(&report, &started, &self.output);
        warn(&report, session);
        session.show(&built)
    }
}

/// Joins shards, given in any order, into a file. A `.npz` is written shard by shard; other formats need the whole
/// kernel in memory.
pub(super) fn join(paths: &[PathBuf], output: &Path, session: &Session) -> Result<KernelReport, Failure> {
    if Format::of(output) != Some(Format::SciPy) {
        let shards = paths.iter().map(|path| read_shard(path, session)).collect::<Result<_, _>>()?;
        let BuiltKernel { matrix, report } = Shard::merge(shards)?;
        write(output, &matrix, session)?;
        return Ok(report);
    }
    let mut places = Vec::with_capacity(paths.len());
    for path in paths {
        let manifest = read_manifest(path, session)?.ok_or_else(|| no_manifest(path))?;
        places.push((manifest.start, manifest.end, path));
    }
    places.sort_unstable();
    let mut file = KernelFile::create(output, session.memory.0 / SHARE)?;
    let phase = session.watch.phase("joining ranges", places.len() as u64);
    for (_, _, path) in places {
        let shard = read_shard(path, session)?;
        shard.check()?;
        file.push(&shard)?;
        phase.advance(1)?;
    }
    drop(phase);
    Ok(file.finish()?)
}

fn no_manifest(path: &Path) -> Failure {
    Failure::new(format!("there is no manifest {}", manifest_path(path).display())).hint(hint())
}

/// Finds out that a shard cannot be written before it is made.
pub(super) fn check_shard_output(path: &Path) -> Result<(), Failure> {
    if path.extension().is_none_or(|extension| extension != "npz") {
        let path = path.display();
        return Err(Failure::usage(format!("a row range is written to a .npz file, not to {path}")));
    }
    Ok(())
}

/// Writes a shard and its manifest; the manifest last, so that a shard that has one is whole.
pub(super) fn write_shard(path: &Path, shard: &Shard) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(&shard.manifest).map_err(|error| Failure::new(error.to_string()))?;
    matrix::write(path, &shard.matrix)?;
    Ok(write_file(&manifest_path(path), |file| file.write_all(text.as_bytes()))?)
}

/// Reads a shard and its manifest.
pub(super) fn read_shard(path: &Path, session: &Session) -> Result<Shard, Failure> {
    let manifest = read_manifest(path, session)?.ok_or_else(|| no_manifest(path))?;
    Ok(Shard { matrix: matrix::read(path, session.budget())?, manifest })
}

/// The manifest of a shard, if there is one.
pub(super) fn read_manifest(path: &Path, session: &Session) -> Result<Option<ShardManifest>, Failure> {
    let beside = manifest_path(path);
    if !beside.exists() {
        return Ok(None);
    }
    let text =
        qdc_data::read_text(&beside, session.budget()).map_err(|error| Failure::from(error).hint(hint()))?;
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Failure::new(format!("{} is not a manifest: {error}", beside.display())).hint(hint())
    })
}

fn hint() -> String {
    "qdc kernel --rows A:B writes the manifest beside the shard; keep the two together".to_owned()
}

fn manifest_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}
