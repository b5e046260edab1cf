//! A long kernel in row ranges that are kept in a folder: what is finished is not made again.
//!
//! The ranges are shards, each a file with its manifest, as `qdc kernel --rows` writes them; `qdc merge FOLDER/*.npz`
//! joins them as well.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use qdc_core::{BuiltKernel, Graph, Job, Recipe, Shard};

use super::merge::{read_manifest, read_shard, write_shard};
use crate::failure::Failure;
use crate::session::Session;

/// The ranges that a large kernel comes in, and the fewest rows of one.
const RANGES: usize = 64;
const FEWEST_ROWS: usize = 256;

/// Makes the ranges that the folder does not hold yet, then joins them all.
pub(super) fn build(
    job: &Job,
    recipe: &Recipe,
    graph: &Graph,
    folder: &Path,
    session: &Session,
) -> Result<BuiltKernel, Failure> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot make the folder {}: {error}", folder.display())))?;
    let places: Vec<(Range<usize>, PathBuf)> = ranges(graph.nodes())
        .map(|range| (range.clone(), folder.join(format!("rows-{:010}-{:010}.npz", range.start, range.end))))
        .collect();
    let mut missing = Vec::new();
    for (range, path) in &places {
        if !is_finished(range, path, recipe, graph, session)? {
            missing.push((range, path));
        }
    }
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
        write_shard(path, &shard)?;
        phase.advance(range.len() as u64)?;
    }
    drop(phase);
    let shards =
        places.iter().map(|(_, path)| read_shard(path, session)).collect::<Result<Vec<Shard>, Failure>>()?;
    Ok(Shard::merge(shards)?)
}

/// Whether a range lies there whole; an error if what lies there is of another kernel.
fn is_finished(
    range: &Range<usize>,
    path: &Path,
    recipe: &Recipe,
    graph: &Graph,
    session: &Session,
) -> Result<bool, Failure> {
    // The manifest is written last, so a range that has one is whole.
    let Some(manifest) = read_manifest(path, session)? else { return Ok(false) };
    if manifest.graph == graph.hash() && &manifest.recipe == recipe {
        return Ok((manifest.start..manifest.end) == *range);
    }
    Err(Failure::new(format!("{} is of another kernel", path.display())).hint(
        "give --resume an empty folder, or the graph and options of the kernel that it holds".to_owned(),
    ))
}

/// Every row once, in ranges of equal size but the last.
fn ranges(nodes: usize) -> impl Iterator<Item = Range<usize>> {
    let each = nodes.div_ceil(RANGES).max(FEWEST_ROWS);
    (0..nodes).step_by(each).map(move |start| start..nodes.min(start + each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_row_once() {
        for nodes in [1, 255, 256, 257, 16_384, 16_385, 1_000_000] {
            let mut next = 0;
            for range in ranges(nodes) {
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, nodes);
            assert!(ranges(nodes).count() <= RANGES);
        }
    }
}
