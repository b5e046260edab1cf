//! From the pieces back to L: chooses the window over all pieces, lifts the vectors, fixes signs, measures.

use faer::Mat;
use rayon::prelude::*;

use super::groups;
use super::structure::Structure;
use crate::splitmix::scramble;
use crate::{Error, Transition, Watch};

/// Eigenpairs of one block of the structure, eigenvalues ascending.
pub(super) struct Found {
    pub(super) values: Vec<f64>,
    pub(super) vectors: Mat<f64>,
}

/// Eigenpairs of L, measured.
pub(super) struct Assembled {
    pub(super) eigenvalues: Vec<f64>,
    /// Column after column.
    pub(super) vectors: Vec<f64>,
    pub(super) residual_max: f64,
    pub(super) orthogonality: f64,
    /// The open interval in which no eigenvalue of L is missing, where that is proved.
    pub(super) interval: Option<[f64; 2]>,
}

/// Where an eigenpair comes from.
#[derive(Clone, Copy)]
enum Source {
    Twins { class: usize, index: usize },
    Block { block: usize, column: usize },
}

/// Joins the twins' pairs with those `found` in each block; `window` (mu, k) keeps the nearest, groups whole.
///
/// `interval` is where the blocks have proved that nothing is missing; the pairs that are not kept narrow it.
pub(super) fn assemble(
    transition: &Transition,
    structure: &Structure,
    found: &[Found],
    window: Option<(f64, usize)>,
    interval: Option<[f64; 2]>,
    watch: &Watch,
) -> Result<Assembled, Error> {
    let mut interval = interval;
    let mut sources: Vec<(f64, Source)> = Vec::new();
    for (class, twins) in structure.twins().iter().enumerate() {
        sources.extend(
            (0..twins.members.len() - 1).map(|index| (twins.eigenvalue, Source::Twins { class, index })),
        );
    }
    for (block, pairs) in found.iter().enumerate() {
        sources.extend(
            pairs.values.iter().enumerate().map(|(column, &value)| (value, Source::Block { block, column })),
        );
    }
    sources.sort_by(|a, b| a.0.total_cmp(&b.0)); // stable: equal ones stay in order of source
    let mut eigenvalues: Vec<f64> = sources.iter().map(|source| source.0).collect();
    if let Some((mu, count)) = window {
        let kept = groups::nearest(&eigenvalues, mu, count);
        interval = interval.map(|interval| groups::narrow(interval, &eigenvalues, &kept));
        sources = sources[kept.clone()].to_vec();
        eigenvalues = eigenvalues[kept].to_vec();
    }

    let nodes = structure.nodes();
    let mut vectors = vec![0.0; nodes * sources.len()];
    let phase = watch.phase("eigenvectors", sources.len() as u64);
    let residuals = vectors
        .par_chunks_mut(nodes)
        .zip(&sources)
        .map_init(
            || (vec![0.0; nodes], Vec::new()),
            |(image, reduced), (out, &(value, source))| {
                match source {
                    Source::Twins { class, index } => structure.twins()[class].vector(index, out),
                    Source::Block { block, column } => {
                        reduced.clear();
                        reduced.extend(found[block].vectors.col(column).iter());
                        structure.lift(&structure.blocks()[block], reduced, out);
                    }
                }
                fix_sign(out);
                phase.advance(1)?;
                Ok(residual(transition, value, out, image))
            },
        )
        .collect::<Result<Vec<f64>, Error>>()?;
    let orthogonality = orthogonality(nodes, &vectors);
    Ok(Assembled {
        eigenvalues,
        vectors,
        residual_max: residuals.into_iter().fold(0.0, f64::max),
        orthogonality,
        interval,
    })
}

/// The first of the entries largest in magnitude (within one part in a million) becomes positive.
fn fix_sign(vector: &mut [f64]) {
    let largest = vector.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let leading = vector.iter().find(|value| value.abs() >= largest * (1.0 - 1e-6));
    if leading.is_some_and(|value| *value < 0.0) {
        vector.iter_mut().for_each(|value| *value = -*value);
    }
}

/// |L v - E v|.
fn residual(transition: &Transition, eigenvalue: f64, vector: &[f64], image: &mut [f64]) -> f64 {
    let matrix = transition.matrix();
    for (row, out) in image.iter_mut().enumerate() {
        let (columns, values) = matrix.row(row);
        *out = columns.iter().zip(values).map(|(&column, value)| value * vector[column as usize]).sum();
    }
    image.iter().zip(vector).map(|(a, v)| (a - eigenvalue * v).powi(2)).sum::<f64>().sqrt()
}

/// The largest entry of |V^T V z - z| over eight random sign vectors z: an entry of it is a random signed sum
/// over one row of V^T V - I, so a repeated or crooked vector cannot hide.
fn orthogonality(nodes: usize, vectors: &[f64]) -> f64 {
    const PROBES: usize = 8;
    const ROWS: usize = 1024;
    let signs = |pair: usize| {
        let bits = scramble(pair as u64);
        std::array::from_fn::<f64, PROBES, _>(|probe| if bits >> probe & 1 == 1 { 1.0 } else { -1.0 })
    };
    let mut sums = vec![[0.0; PROBES]; nodes];
    sums.par_chunks_mut(ROWS).enumerate().for_each(|(chunk, sums)| {
        for (pair, vector) in vectors.chunks_exact(nodes).enumerate() {
            let signs = signs(pair);
            for (sum, &value) in sums.iter_mut().zip(&vector[chunk * ROWS..]) {
                (0..PROBES).for_each(|probe| sum[probe] += signs[probe] * value);
            }
        }
    });
    vectors
        .par_chunks_exact(nodes)
        .enumerate()
        .map(|(pair, vector)| {
            let mut image = [0.0; PROBES];
            for (&value, sum) in vector.iter().zip(&sums) {
                (0..PROBES).for_each(|probe| image[probe] += value * sum[probe]);
            }
            let signs = signs(pair);
            (0..PROBES).map(|probe| (image[probe] - signs[probe]).abs()).fold(0.0, f64::max)
        })
        .reduce(|| 0.0, f64::max)
}
