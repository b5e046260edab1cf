//! Planetoid's files `ind.NAME.*`: cora, citeseer, pubmed.
//!
//! The first vertices have their features and labels in `allx` and `ally`; the last ones in `tx` and `ty`, in
//! the order `test.index` lists them. Citeseer's list has gaps: 15 vertices without neighbours, which get no
//! features and class 0.
//!
//! Reference: Z. Yang, W. Cohen, R. Salakhutdinov, "Revisiting semi-supervised learning with graph
//! embeddings", 2016.

use qdc_core::{Csr, EdgeRule, Features, Graph};

use super::RawFiles;
use super::pickle::Pickle;
use crate::lines::{Lines, parse_whole, quoted};
use crate::{Dataset, Error};

pub(super) fn read(files: &RawFiles<'_>, name: &str) -> Result<Dataset, Error> {
    let open = |part: &str| files.read(&format!("{}/data/ind.{name}.{part}", super::PLANETOID));

    let index = open("test.index")?;
    let (mut order, mut lines) = (Vec::new(), Lines::new(&index.path, &index.bytes[..]));
    while let Some(line) = lines.next()? {
        match parse_whole(line) {
            Some(vertex) if vertex < 1_000_000_000 => order.push(vertex as usize),
            _ => {
                let problem = format!("{} is no vertex", quoted(line));
                return Err(lines.error(problem));
            }
        }
    }

    let (early, late) = (open("allx")?, open("tx")?);
    let early_features = Pickle::read(&early.path, &early.bytes, files.budget)?.into_matrix()?;
    let late_features = Pickle::read(&late.path, &late.bytes, files.budget)?.into_matrix()?;
    let first = early_features.rows();
    let nodes = order.iter().max().map_or(first, |&last| last + 1);
    let wrong = |problem: String| Error::malformed(&index.path, "the list of test vertices", problem);
    if order.len() != late_features.rows() || nodes > first + 2 * order.len() {
        return Err(wrong(format!(
            "{} vertices up to {nodes}, but {} rows of features after the first {first}",
            order.len(),
            late_features.rows()
        )));
    }
    // late_row[vertex - first]: which row of tx and ty belongs to the vertex.
    let mut late_row = vec![None; nodes.saturating_sub(first)];
    for (row, &vertex) in order.iter().enumerate() {
        match vertex.checked_sub(first).and_then(|at| late_row.get_mut(at)) {
            Some(place @ None) => *place = Some(row),
            _ => return Err(wrong(format!("vertex {vertex} is listed twice, or below {first}"))),
        }
    }

    let columns = early_features.columns();
    let row_of = |matrix: &Csr<f32>, row: usize| {
        let (indices, values) = matrix.row(row);
        (indices.to_vec(), values.to_vec())
    };
    let rows = (0..first).map(|row| row_of(&early_features, row)).chain(
        late_row.iter().map(|row| row.map_or_else(Default::default, |row| row_of(&late_features, row))),
    );
    let features = Csr::from_rows(columns, rows)
        .map_err(|source| Error::Invalid { path: early.path.clone(), source })?;

    let (early, late) = (open("ally")?, open("ty")?);
    let early_labels = classes(Pickle::read(&early.path, &early.bytes, files.budget)?)?;
    let late_labels = classes(Pickle::read(&late.path, &late.bytes, files.budget)?)?;
    if early_labels.len() != first || late_labels.len() != order.len() {
        let problem = format!("{} labels for {first} rows of features", early_labels.len());
        return Err(Error::malformed(&early.path, "the pickle", problem));
    }
    let late_labels = late_row.iter().map(|row| row.map_or(0, |row| late_labels[row]));
    let labels: Vec<u32> = early_labels.iter().copied().chain(late_labels).collect();

    let file = open("graph")?;
    let lists = Pickle::read(&file.path, &file.bytes, files.budget)?.into_lists()?;
    let edges =
        lists.iter().flat_map(|(from, others)| others.iter().map(move |to| (*from as u64, *to as u64)));
    let graph = Graph::from_edges(nodes, edges, EdgeRule::Undirected)
        .map_err(|source| Error::Invalid { path: file.path.clone(), source })?;
    Dataset::new(name.into(), graph, Features::Sparse(features), labels)
}

/// The class of each row: where its 1 stands.
fn classes(pickle: Pickle<'_>) -> Result<Vec<u32>, Error> {
    let (_, columns, table) = pickle.into_table()?;
    let class = |row: &[i64]| row.iter().position(|&value| value != 0).unwrap_or(0) as u32;
    Ok(table.chunks_exact(columns.max(1)).map(class).collect())
}
