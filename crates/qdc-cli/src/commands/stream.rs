//! A kernel in row ranges that go to disk as they are finished: for what does not fit in memory, and for long builds.
//!
//! With `--resume` the ranges are shards in a folder, each a file with its manifest, as `qdc kernel --rows` writes
//! them (`qdc merge FOLDER/*.npz` joins them as well): what is finished is not made again. Without, they go straight
//! into the file that is being written.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use qdc_core::splitmix::scramble;
use qdc_core::{Graph, Job, KernelReport, Recipe};
use qdc_data::KernelFile;
use qdc_data::matrix::Format;

use super::merge;
use crate::failure::Failure;
use crate::session::Session;

/// The ranges that a large kernel comes in, and the fewest rows of one.
const RANGES: usize = 64;
const FEWEST_ROWS: usize = 256;
/// A range, or a part of the join, may take this share of the memory allowed.
pub(super) const SHARE: u64 = 4;

/// The most entries of a row on average, if what the kernel keeps does not fit in memory; `None` if it fits, or if the
/// file can only be written whole.
pub(super) fn beyond_memory(
    job: &Job,
    recipe: &Recipe,
    nodes: usize,
    output: &Path,
    session: &Session,
) -> Result<Option<f64>, Failure> {
    if Format::of(output) != Some(Format::SciPy) || nodes == 0 {
        return Ok(None);
    }
    let most = nodes.saturating_mul(recipe.sparsify.most_in_row(nodes));
    if job.fits(most) {
        return Ok(None);
    }
    let entries = job.expected_entries(&session.watch)?;
    Ok((!job.fits(entries)).then(|| entries as f64 / nodes as f64))
}

/// Makes the kernel range by range into its file.
pub(super) fn build(
    job: &Job,
    nodes: usize,
    entries_per_row: f64,
    output: &Path,
    session: &Session,
) -> Result<KernelReport, Failure> {
    let share = job.memory().unwrap_or(session.memory.0) / SHARE;
    let fitting = (share as f64
        / (job.memory_with(1).saturating_sub(job.memory_with(0)) as f64 * entries_per_row))
        as usize;
    let each = nodes.div_ceil(RANGES).max(FEWEST_ROWS).min(fitting.max(1));
    session.watch.note(&job.plan().to_string());
    session.watch.note(&format!(
        "what it keeps does not fit in memory: {each} rows at a time go to {}",
        output.display()
    ));
    let mut file = KernelFile::create(output, share)?;
    let quiet = session.without_remarks();
    let phase = quiet.watch.phase("rows of all ranges", nodes as u64);
    for range in ranges(nodes, each) {
        file.push(&job.rows(range.clone(), &quiet.watch)?)?;
        phase.advance(range.len() as u64)?;
    }
    drop(phase);
    session.watch.check()?;
    Ok(file.finish()?)
}

/// Makes the ranges that the folder does not hold yet, then joins them all.
pub(super) fn resume(
    job: &Job,
    recipe: &Recipe,
    graph: &Graph,
    folder: &Path,
    output: &Path,
    session: &Session,
) -> Result<KernelReport, Failure> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot make the folder {}: {error}", folder.display())))?;
    let each = graph.nodes().div_ceil(RANGES).max(FEWEST_ROWS);
    let places: Vec<(Range<usize>, PathBuf)> = ranges(graph.nodes(), each)
        .map(|range| (range.clone(), folder.join(format!("rows-{:010}-{:010}.npz", range.start, range.end))))
        .collect();
    let mut missing = Vec::new();
    for (range, path) in &places {
        if !is_finished(range, path, (job, recipe, graph), session)? {
            missing.push((range, path));
        }
    }
    // In no order of theirs: the first vertices of a graph that grew are hubs, whose rows take longest, and what is
    // left is judged by what is done.
    missing.sort_by_key(|(range, _)| scramble(range.start as u64));
    let rows: usize = missing.iter().map(|(range, _)| range.len()).sum();
    if missing.len() < places.len() {
        let (done, all) = (graph.nodes() - rows, graph.nodes());
        session.watch.note(&format!("{}: {done} of {all} rows are there already", folder.display()));
    }
    session.watch.note(&job.plan().to_string());
    // The plan was told; each range would tell it again.
    let quiet = session.without_remarks();
    let phase = quiet.watch.phase("rows of all ranges", rows as u64);
    for (range, path) in missing {
        let shard = job.rows(range.clone(), &quiet.watch)?;
        merge::write_shard(path, &shard)?;
        phase.advance(range.len() as u64)?;
    }
    drop(phase);
    let paths: Vec<PathBuf> = places.into_iter().map(|(_, path)| path).collect();
    merge::join(&paths, output, session)
}

/// Whether a range lies there whole; an error if what lies there is of another kernel.
fn is_finished(
    range: &Range<usize>,
    path: &Path,
    (job, recipe, graph): (&Job, &Recipe, &Graph),
    session: &Session,
) -> Result<bool, Failure> {
    // The manifest is written last, so a range that has one is whole.
    let Some(manifest) = merge::read_manifest(path, session)? else { return Ok(false) };
    if manifest.graph != graph.hash() || &manifest.recipe != recipe {
        let hint = "give --resume an empty folder, or the graph and options of the kernel that it holds";
        return Err(Failure::new(format!("{} is of another kernel", path.display())).hint(hint.to_owned()));
    }
    let (made, planned) = (manifest.report.solver, job.plan().route);
    if made != planned {
        // Ranges of two routes are not joined, which would be found out only when all are made.
        let problem =
            format!("{} was made by {made}, and the rest would be made by {planned}", path.display());
        return Err(Failure::new(problem).hint(format!("give --solver {made}, or --resume an empty folder")));
    }
    Ok((manifest.start..manifest.end) == *range)
}

/// Every row once, in ranges of `each` rows but the last.
fn ranges(nodes: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..nodes).step_by(each).map(move |start| start..nodes.min(start + each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_row_once() {
        for (nodes, each) in [(1, 256), (255, 256), (256, 256), (257, 256), (16_384, 1), (1_000_000, 15_625)]
        {
            let mut next = 0;
            for range in ranges(nodes, each) {
                assert_eq!(range.start, next);
                assert!(range.len() == each || range.end == nodes);
                next = range.end;
            }
            assert_eq!(next, nodes);
        }
    }
}
