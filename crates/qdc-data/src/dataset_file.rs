//! Datasets in one `.npz`, in the layout of the heterophilous-graphs collection.
//!
//! | array | shape | content |
//! | --- | --- | --- |
//! | `node_features` | vertices x features | any numbers |
//! | `node_labels` | vertices | classes, from 0; -1 for a vertex without one, which may be in no mask |
//! | `edges` | edges x 2 | undirected pairs |
//! | `train_masks`, `val_masks`, `test_masks` | splits x vertices | booleans; may be missing |

use std::path::Path;

use qdc_core::{Csr, EdgeRule, Features, Graph, Split, UNLABELLED};

use crate::npz::{Npz, NpzWriter};
use crate::{Budget, Dataset, EdgeReading, Error};

const FEATURES: &str = "array 'node_features'";
const MASKS: [&str; 3] = ["train_masks", "val_masks", "test_masks"];

/// Whether an archive has the layout of a dataset.
pub(crate) fn is_dataset(archive: &Npz) -> bool {
    archive.has("edges") || archive.has("node_features") || archive.has("node_labels")
}

/// Reads a dataset; its edges are undirected pairs.
pub fn read_dataset(path: &Path, budget: Budget) -> Result<Dataset, Error> {
    from_archive(&Npz::open_within(path, budget)?, &path.display().to_string(), EdgeReading::default())
}

pub(crate) fn from_archive(archive: &Npz, name: &str, reading: EdgeReading) -> Result<Dataset, Error> {
    let features = features(archive)?;
    let nodes = features.rows();
    let labels = labels(archive, nodes)?;
    let graph = graph(archive, nodes, reading)?;
    let mut dataset = Dataset::new(name.into(), graph, features, labels)?;
    if MASKS.iter().any(|mask| archive.has(mask)) {
        dataset.splits = splits(archive, nodes)?;
        check_masks(archive, &dataset)?;
    }
    Ok(dataset)
}

/// Reads features row by row, so that sparse ones are never held dense.
fn features(archive: &Npz) -> Result<Features, Error> {
    const NAME: &str = "node_features";
    let shape = archive.shape(NAME)?;
    let [rows, columns] = archive.expect_axes(NAME, &shape)?;
    if rows == 0 || columns == 0 {
        return Err(archive.malformed(NAME, format!("shape {rows} x {columns} holds nothing")));
    }
    if let Some(matrix) = sparse_features(archive, NAME, rows, columns)? {
        return Ok(Features::Sparse(matrix));
    }
    let (_, _, values) = archive.matrix::<f32>(NAME)?;
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(not_finite(archive, NAME, at / columns, at % columns));
    }
    Ok(Features::from_dense(columns, values))
}

/// The features in compressed rows; `None` where they are better kept dense, or come in Fortran's order.
fn sparse_features(
    archive: &Npz,
    name: &str,
    rows: usize,
    columns: usize,
) -> Result<Option<Csr<f32>>, Error> {
    let most = (Features::SPARSE_BELOW * rows as f64 * columns as f64) as usize;
    let mut reader = archive.reader(name)?;
    if reader.header.fortran_order {
        return Ok(None);
    }
    let account = archive.account();
    let mut pointers = account.room(FEATURES, rows.saturating_add(1))?;
    pointers.push(0);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut row = account.room(FEATURES, columns)?;
    for index in 0..rows {
        row.clear();
        reader.read::<f32>(columns, &mut row)?;
        for (column, &value) in row.iter().enumerate() {
            if value != 0.0 {
                if !value.is_finite() {
                    return Err(not_finite(archive, name, index, column));
                }
                account.push(FEATURES, &mut indices, column as u32)?;
                account.push(FEATURES, &mut values, value)?;
            }
        }
        if indices.len() > most {
            account.release::<u64>(indices.capacity());
            return Ok(None);
        }
        pointers.push(indices.len());
    }
    reader.finish()?;
    let matrix = Csr::new(rows, columns, pointers, indices, values)
        .map_err(|source| Error::Invalid { path: archive.path().into(), source })?;
    Ok(Some(matrix))
}

fn not_finite(archive: &Npz, name: &str, row: usize, column: usize) -> Error {
    archive.malformed(name, format!("row {row}, column {column}: the value is not finite"))
}

fn labels(archive: &Npz, nodes: usize) -> Result<Vec<u32>, Error> {
    const NAME: &str = "node_labels";
    let shape = archive.shape(NAME)?;
    let count: usize = shape.iter().product();
    // One column of labels is as good as a list.
    if count != nodes || !(shape.len() == 1 || shape == [nodes, 1]) {
        let problem = format!("shape {shape:?} instead of one label for each of {nodes} vertices");
        return Err(archive.malformed(NAME, problem));
    }
    let labels = archive.array::<i64>(NAME)?.data;
    let wrong = labels.iter().position(|&label| label < -1 || label >= nodes.max(1000) as i64);
    if let Some(vertex) = wrong {
        let problem = format!("vertex {vertex}: label {} is no class", labels[vertex]);
        return Err(archive
            .malformed(NAME, problem)
            .remedy("classes are numbered from 0 without large gaps; -1 stands for no label"));
    }
    Ok(labels.into_iter().map(|label| u32::try_from(label).unwrap_or(UNLABELLED)).collect())
}

/// Every vertex of a mask must have a label.
fn check_masks(archive: &Npz, dataset: &Dataset) -> Result<(), Error> {
    let parts: [fn(&Split) -> &[u32]; 3] = [Split::train, Split::validation, Split::test];
    for (index, split) in dataset.splits.iter().enumerate() {
        for (name, part) in MASKS.iter().zip(parts) {
            let unlabelled = |vertex: &&u32| dataset.labels[**vertex as usize] == UNLABELLED;
            if let Some(vertex) = part(split).iter().find(unlabelled) {
                let problem = format!("split {index}: vertex {vertex} has no label (-1)");
                return Err(archive
                    .malformed(name, problem)
                    .remedy("a vertex without a label may be true in no mask"));
            }
        }
    }
    Ok(())
}

fn graph(archive: &Npz, nodes: usize, reading: EdgeReading) -> Result<Graph, Error> {
    const NAME: &str = "edges";
    let shape = archive.shape(NAME)?;
    if shape.len() != 2 || shape[1] != 2 {
        let error = archive.malformed(NAME, format!("expected shape (edges, 2), found {shape:?}"));
        return Err(match shape[..] {
            [2, _] => error.remedy("transpose it: one row for each edge"),
            _ => error,
        });
    }
    let edges = archive.array::<i64>(NAME)?.data;
    let (pairs, _) = edges.as_chunks::<2>();
    let outside = |vertex: i64| vertex < 0 || vertex >= nodes as i64;
    if let Some(at) = pairs.iter().position(|&[from, to]| outside(from) || outside(to)) {
        let [from, to] = pairs[at];
        let problem = format!("row {at}: edge ({from}, {to}) names a vertex outside 0..{nodes}");
        return Err(archive
            .malformed(NAME, problem)
            .remedy("vertices count from 0, one for each row of node_features"));
    }
    archive.account().charge_graph(nodes, pairs.len())?;
    let pairs = || pairs.iter().map(|&[from, to]| (from as u64, to as u64));
    let invalid = |source| Error::Invalid { path: archive.path().into(), source };
    match reading {
        EdgeReading { symmetrize: Some(rule), .. } => {
            Graph::from_edges(nodes, pairs(), EdgeRule::Directed(rule))
        }
        EdgeReading { directed: false, .. } => Graph::from_edges(nodes, pairs(), EdgeRule::Undirected),
        EdgeReading { directed: true, symmetrize: None } => {
            let mut arcs: Vec<(u64, u64)> = pairs().collect();
            arcs.sort_unstable();
            match arcs.iter().find(|&&(from, to)| arcs.binary_search(&(to, from)).is_err()) {
                Some(&(from, to)) => {
                    Err(qdc_core::Error::Asymmetric { from, to, forward: 1.0, backward: 0.0 })
                }
                None => Graph::from_edges(nodes, arcs, EdgeRule::Undirected),
            }
        }
    }
    .map_err(invalid)
}

fn splits(archive: &Npz, nodes: usize) -> Result<Vec<Split>, Error> {
    let mut parts: [Vec<Vec<u32>>; 3] = Default::default();
    for (name, part) in MASKS.iter().zip(&mut parts) {
        let masks = archive.array::<bool>(name)?;
        if masks.shape.last() != Some(&nodes) || masks.shape.len() > 2 {
            let problem = format!("expected shape (splits, {nodes}), found {:?}", masks.shape);
            return Err(archive.malformed(name, problem));
        }
        *part = masks.data.chunks_exact(nodes).map(members).collect();
    }
    let [train, validation, test] = parts;
    if train.len() != validation.len() || train.len() != test.len() {
        let problem =
            format!("{} splits, but {} and {} elsewhere", train.len(), validation.len(), test.len());
        return Err(archive.malformed(MASKS[0], problem));
    }
    train
        .into_iter()
        .zip(validation)
        .zip(test)
        .enumerate()
        .map(|(index, ((train, validation), test))| {
            Split::new(nodes, train, validation, test).map_err(|problem| {
                Error::malformed(archive.path(), format!("masks of split {index}"), problem.to_string())
                    .remedy("a vertex may be true in one of train_masks, val_masks and test_masks only")
            })
        })
        .collect()
}

/// The vertices where a mask is true.
pub(crate) fn members(mask: &[bool]) -> Vec<u32> {
    mask.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(vertex, _)| vertex as u32).collect()
}

/// Writes a dataset whole or not at all; self-loops were dropped when it was read and are not written.
pub fn write_dataset(path: &Path, dataset: &Dataset) -> Result<(), Error> {
    let (nodes, columns) = (dataset.features.rows(), dataset.features.columns());
    let mut archive = NpzWriter::create(path)?;
    let values = dataset.features.to_dense();
    if values.iter().all(|value| *value == 0.0 || *value == 1.0) {
        archive.array_from("node_features", &[nodes, columns], values.iter().map(|&value| value as u8))?;
    } else {
        archive.array("node_features", &[nodes, columns], &values)?;
    }
    let labels = dataset.labels.iter().map(|&label| if label == UNLABELLED { -1 } else { i64::from(label) });
    archive.array_from("node_labels", &[nodes], labels)?;
    let ends = dataset.graph.edge_list().flat_map(|(from, to, _)| [from as i32, to as i32]);
    archive.array_from("edges", &[dataset.graph.edges(), 2], ends)?;
    let parts: [fn(&Split) -> &[u32]; 3] = [Split::train, Split::validation, Split::test];
    for (name, part) in MASKS.iter().zip(parts) {
        let mut mask = vec![false; dataset.splits.len() * nodes];
        for (index, split) in dataset.splits.iter().enumerate() {
            part(split).iter().for_each(|&vertex| mask[index * nodes + vertex as usize] = true);
        }
        archive.array(name, &[dataset.splits.len(), nodes], &mask)?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::ContextualBlocks;
    use crate::{DataDir, Shares, open};

    /// A small dataset file; `change` may replace arrays.
    fn written(change: impl Fn(&mut NpzWriter) -> Vec<&'static str>) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.npz");
        let mut archive = NpzWriter::create(&path).unwrap();
        let changed = change(&mut archive);
        let keep = |name: &&str| !changed.contains(name);
        ["node_features"]
            .iter()
            .filter(|name| keep(name))
            .for_each(|name| archive.array(name, &[3, 2], &[1u8, 0, 0, 1, 1, 1]).unwrap());
        ["node_labels"]
            .iter()
            .filter(|name| keep(name))
            .for_each(|name| archive.array(name, &[3], &[0, 1, 1]).unwrap());
        ["edges"]
            .iter()
            .filter(|name| keep(name))
            .for_each(|name| archive.array(name, &[2, 2], &[0, 1, 1, 2]).unwrap());
        for (at, name) in MASKS.iter().enumerate().filter(|(_, name)| keep(name)) {
            let mask: Vec<bool> = (0..3).map(|vertex| vertex == at).collect();
            archive.array(name, &[1, 3], &mask).unwrap();
        }
        archive.finish().unwrap();
        read_dataset(&path, Budget::default()).unwrap_err()
    }

    #[test]
    fn a_dataset_reads_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.npz");
        let model = ContextualBlocks { n: 40, classes: 3, ..Default::default() };
        let karate = open("karate", &DataDir::new("nowhere"), EdgeReading::default()).unwrap();
        for dataset in [model.generate().unwrap(), karate.into_dataset().unwrap()] {
            let mut dataset = dataset;
            dataset.labels[5] = UNLABELLED;
            let dataset = dataset.with_random_splits(Shares::default(), 1);
            write_dataset(&path, &dataset).unwrap();
            let again = read_dataset(&path, Budget::default()).unwrap();
            assert_eq!(Dataset { name: dataset.name.clone(), ..again }, dataset);
        }
    }

    #[test]
    fn every_wrong_array_is_named_with_the_place() {
        let message = |change: fn(&mut NpzWriter) -> Vec<&'static str>| written(change).to_string();
        let wrong_shape = written(|archive| {
            archive.array("edges", &[2, 3], &[0, 1, 1, 1, 2, 0]).unwrap();
            vec!["edges"]
        });
        assert!(wrong_shape.to_string().contains("array 'edges': expected shape (edges, 2), found [2, 3]"));
        assert!(wrong_shape.hint().unwrap().contains("transpose"));
        let outside = message(|archive| {
            archive.array("edges", &[2, 2], &[0, 1, 1, 3]).unwrap();
            vec!["edges"]
        });
        assert!(outside.contains("row 1: edge (1, 3) names a vertex outside 0..3"), "{outside}");
        let negative = message(|archive| {
            archive.array("edges", &[1, 2], &[0, -1]).unwrap();
            vec!["edges"]
        });
        assert!(negative.contains("row 0: edge (0, -1) names a vertex outside 0..3"), "{negative}");
        let overlap = written(|archive| {
            archive.array("val_masks", &[1, 3], &[true, true, false]).unwrap();
            vec!["val_masks"]
        });
        assert!(
            overlap
                .to_string()
                .contains("masks of split 0: vertex 0 is in the training and in the validation set")
        );
        assert!(overlap.hint().is_some());
        let label = message(|archive| {
            archive.array("node_labels", &[3], &[0, -2, 1]).unwrap();
            vec!["node_labels"]
        });
        assert!(label.contains("vertex 1: label -2 is no class"), "{label}");
        let unlabelled = message(|archive| {
            archive.array("node_labels", &[3], &[0, -1, 1]).unwrap();
            vec!["node_labels"]
        });
        assert!(
            unlabelled.contains("array 'val_masks': split 0: vertex 1 has no label (-1)"),
            "{unlabelled}"
        );
        let short = message(|archive| {
            archive.array("test_masks", &[1, 2], &[true, true]).unwrap();
            vec!["test_masks"]
        });
        assert!(short.contains("array 'test_masks': expected shape (splits, 3), found [1, 2]"), "{short}");
        let feature = message(|archive| {
            archive.array("node_features", &[3, 2], &[0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0]).unwrap();
            vec!["node_features"]
        });
        assert!(feature.contains("row 1, column 1: the value is not finite"), "{feature}");
    }
}
