//! Geom-GCN's files: `out1_node_feature_label.txt`, `out1_graph_edges.txt`, and the ten splits of every
//! dataset.
//!
//! Features are written as a list of 0 and 1; for actor (called film there), as the list of columns that are
//! 1.
//!
//! Reference: H. Pei et al., "Geom-GCN: geometric graph convolutional networks", 2020.

use qdc_core::{Csr, EdgeRule, Features, Graph, Split};

use super::RawFiles;
use crate::dataset_file::members;
use crate::lines::{Lines, parse_whole, quoted};
use crate::npz::Npz;
use crate::{Dataset, Error, SPLITS};

/// Columns of actor's features; the file's header counts one less.
const ACTOR_FEATURES: usize = 932;

pub(super) fn read(files: &RawFiles<'_>, name: &str, folder: &str) -> Result<Dataset, Error> {
    let open = |file: &str| files.read(&format!("{}/new_data/{folder}/{file}", super::GEOM_GCN));

    let table = open("out1_node_feature_label.txt")?;
    let mut lines = Lines::new(&table.path, &table.bytes[..]);
    lines.next()?; // the names of the columns
    let mut vertices: Vec<(usize, Vec<u32>, u32)> = Vec::new();
    let mut columns = if folder == "film" { ACTOR_FEATURES } else { 0 };
    while let Some(line) = lines.next()? {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let vertex = match fields[..] {
            [id, features, label] => vertex(id, features, label, folder == "film"),
            _ => Err(format!("{} fields instead of vertex, features and label", fields.len())),
        };
        let (id, active, width, label) = vertex.map_err(|problem| lines.error(problem))?;
        if columns == 0 {
            columns = width;
        }
        if folder != "film" && width != columns || active.last().is_some_and(|last| *last as usize >= columns)
        {
            return Err(lines.error(format!("{width} features instead of {columns}")));
        }
        vertices.push((id, active, label));
    }
    vertices.sort_by_key(|vertex| vertex.0);
    if let Some(at) = (0..vertices.len()).find(|&at| vertices[at].0 != at) {
        let problem = format!("vertex {at} is missing or listed twice");
        return Err(Error::malformed(&table.path, "the first column", problem));
    }
    let labels = vertices.iter().map(|vertex| vertex.2).collect();
    let nodes = vertices.len();
    let rows = vertices.into_iter().map(|(_, active, _)| {
        let ones = vec![1.0; active.len()];
        (active, ones)
    });
    let features = Csr::from_rows(columns, rows)
        .map_err(|source| Error::Invalid { path: table.path.clone(), source })?;

    let list = open("out1_graph_edges.txt")?;
    let mut lines = Lines::new(&list.path, &list.bytes[..]);
    lines.next()?;
    let mut edges = Vec::new();
    while let Some(line) = lines.next()? {
        let pair: Option<Vec<u64>> = line.split(|byte| *byte == b'\t').map(parse_whole).collect();
        match pair.as_deref() {
            Some(&[from, to]) if from.max(to) < nodes as u64 => edges.push((from, to)),
            _ => {
                let problem = format!("{} is no pair of vertices below {nodes}", quoted(line));
                return Err(lines.error(problem));
            }
        }
    }
    let graph = Graph::from_edges(nodes, edges, EdgeRule::Undirected)
        .map_err(|source| Error::Invalid { path: list.path.clone(), source })?;
    Dataset::new(name.into(), graph, Features::Sparse(features), labels)
}

/// One line: the vertex, its active columns (ascending), the number of fields, its label.
fn vertex(
    id: &[u8],
    features: &[u8],
    label: &[u8],
    listed: bool,
) -> Result<(usize, Vec<u32>, usize, u32), String> {
    let whole = |field: &[u8]| {
        parse_whole(field)
            .filter(|number| *number < 1_000_000_000)
            .ok_or_else(|| format!("{} is no number expected here", quoted(field)))
    };
    let (mut active, mut width) = (Vec::new(), 0);
    for field in features.split(|byte| *byte == b',') {
        let value = whole(field)?;
        match (listed, value) {
            (true, column) => active.push(column as u32),
            (false, 0) => {}
            (false, 1) => active.push(width as u32),
            (false, value) => return Err(format!("feature {width} is {value}, neither 0 nor 1")),
        }
        width += 1;
    }
    active.sort_unstable();
    active.dedup();
    Ok((whole(id)? as usize, active, width, whole(label)? as u32))
}

/// The ten splits of a dataset.
pub(super) fn splits(files: &RawFiles<'_>, name: &str, nodes: usize) -> Result<Vec<Split>, Error> {
    (0..SPLITS)
        .map(|index| {
            let file = files.read(&split_path(name, index))?;
            let path = file.path.clone();
            let archive = Npz::from_bytes(&path, file.bytes, files.budget)?;
            let part = |mask: &str| {
                let mask_values = archive.vector::<bool>(mask)?;
                if mask_values.len() != nodes {
                    let problem = format!("{} values for {nodes} vertices", mask_values.len());
                    return Err(archive.malformed(mask, problem));
                }
                Ok(members(&mask_values))
            };
            let (train, validation, test) = (part("train_mask")?, part("val_mask")?, part("test_mask")?);
            Split::new(nodes, train, validation, test).map_err(|source| Error::Invalid { path, source })
        })
        .collect()
}

/// Where a split lies; files say 0.6 and 0.2, the shares really are 0.48 and 0.32.
pub(super) fn split_path(name: &str, index: usize) -> String {
    let name = if name == "actor" { "film" } else { name };
    format!("{}/splits/{name}_split_0.6_0.2_{index}.npz", super::GEOM_GCN)
}
