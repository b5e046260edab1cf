//! Training on a few vertices at a time: mini-batches over the rows of the matrices.
//!
//! The logits of a batch depend on the vertices within as many entries of it as there are propagations: its
//! field. A network is built over the field alone, so that the memory of a step follows from the batch and not
//! from the graph; the loss and gradient of the batch are those the whole graph gives, nothing is sampled. Rows of
//! the outermost vertices stay empty, as no logit of the batch depends on what is computed from them.
//!
//! Where features are dense, the first product M X of a GCN is made once for all steps, so that two layers reach
//! one entry far and not two; dropout then acts on M X.
//!
//! References: F. Wu et al., "Simplifying graph convolutional networks", 2019 (M X made once); A. Bojchevski et
//! al., "Scaling graph neural networks with approximate PageRank" (PPRGo), 2020 (batches of rows of a kernel).

use std::ops::Range;
use std::sync::Arc;

use qdc_core::Csr;

use crate::aligned::Aligned;
use crate::architecture::{Architecture, Kind, Tower};
use crate::chain::Placed;
use crate::layers::Pass;
use crate::random::derive;
use crate::{Adam, Error, Inputs, Learner, Matrix, Network, Propagation, Real, Width};

/// How many entries far the output of a tower looks; `precomputed` says that M X is there.
pub(crate) fn reach(tower: &Tower, precomputed: bool) -> usize {
    match tower.kind {
        Kind::Mlp => 0,
        Kind::Gcn => tower.widths.len() - usize::from(precomputed),
        Kind::Gat { .. } => tower.widths.len(),
    }
}

/// The training vertices of a step in batches of `nodes`, in an order drawn from `seed`.
pub(crate) fn batches(vertices: &[u32], nodes: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut drawn = vertices.to_vec();
    drawn.sort_unstable_by_key(|&vertex| (derive(seed, u64::from(vertex)), vertex));
    drawn.chunks(nodes.max(1)).map(<[u32]>::to_vec).collect()
}

/// A network that computes the logits of a few vertices at a time.
///
/// A step over n vertices takes the time and memory of a network over their field; evaluation goes through all
/// vertices that are asked for in batches of the same size.
pub struct MiniBatched<T> {
    architecture: Architecture,
    inputs: Inputs<T>,
    nodes: usize,
    parameters: Vec<Placed>,
    weights: Aligned<T>,
    gradient: Aligned<T>,
    logits: Matrix<T>,
    field: Field,
}

impl<T: Real> MiniBatched<T> {
    /// Builds the network for batches of `nodes` vertices and starts its parameters from `seed`, as
    /// [`Network::new`] does.
    ///
    /// # Errors
    /// As [`Network::new`].
    ///
    /// # Panics
    /// If the inputs are stored in another order than the vertices'.
    pub fn new(
        architecture: &Architecture,
        inputs: &Inputs<T>,
        nodes: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        assert!(inputs.order.is_none(), "mini-batches are cut from rows in the order of the vertices");
        let first =
            Network::new(architecture, &Field::new(inputs.nodes()).inputs(architecture, inputs, &[]), seed)?;
        let weights = Aligned::from(first.weights());
        Ok(Self {
            architecture: architecture.clone(),
            inputs: inputs.clone(),
            nodes: nodes.max(1),
            parameters: first.parameters().to_vec(),
            gradient: weights.clone(),
            weights,
            logits: Matrix::zeros(inputs.nodes(), Width::single(architecture.classes)),
            field: Field::new(inputs.nodes()),
        })
    }

    /// The gradient left by [`Learner::loss_and_gradient`], laid out like the weights.
    pub fn gradient(&self) -> &[T] {
        &self.gradient
    }

    /// The network over the field of a batch, whose vertices come first.
    fn network(&mut self, batch: &[u32]) -> Network<T> {
        let inputs = self.field.inputs(&self.architecture, &self.inputs, batch);
        let mut network = Network::new(&self.architecture, &inputs, 0).expect("it was built before");
        network.weights_mut().copy_from_slice(&self.weights);
        network
    }

    /// Sets the logits of some vertices.
    fn predict(&mut self, vertices: &[u32]) {
        for batch in vertices.chunks(self.nodes) {
            let mut network = self.network(batch);
            let logits = network.forward(Pass::Evaluate);
            for (row, &vertex) in batch.iter().enumerate() {
                self.logits.row_mut(vertex as usize).copy_from_slice(logits.row(row));
            }
        }
    }
}

impl<T: Real> Learner<T> for MiniBatched<T> {
    fn parameters(&self) -> &[Placed] {
        &self.parameters
    }

    fn weights(&self) -> &[T] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut [T] {
        &mut self.weights
    }

    /// The logits of all vertices without dropout, whatever the pass.
    fn forward(&mut self, _pass: Pass) -> &Matrix<T> {
        let all: Vec<u32> = (0..self.inputs.nodes() as u32).collect();
        self.predict(&all);
        &self.logits
    }

    fn evaluate(&mut self, sets: &[&[u32]]) -> &Matrix<T> {
        sets.iter().for_each(|vertices| self.predict(vertices));
        &self.logits
    }

    fn loss_and_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        let mut network = self.network(vertices);
        let labels: Vec<u32> = vertices.iter().map(|&vertex| labels[vertex as usize]).collect();
        let first: Vec<u32> = (0..vertices.len() as u32).collect();
        let loss = network.loss_and_gradient(&labels, &first, pass);
        self.gradient.copy_from_slice(network.gradient());
        loss
    }

    fn update(&mut self, adam: &mut Adam<T>) {
        adam.step(&mut self.weights, &self.gradient);
    }
}

/// The vertices that a batch reaches, by the number of entries it takes to reach them.
struct Field {
    /// The place of each vertex of the graph in the field, or `OUTSIDE`.
    places: Vec<u32>,
    vertices: Vec<u32>,
    /// Where those end that are reached by 0, 1, 2... entries.
    ends: Vec<usize>,
}

const OUTSIDE: u32 = u32::MAX;

impl Field {
    fn new(nodes: usize) -> Self {
        Self { places: vec![OUTSIDE; nodes], vertices: Vec::new(), ends: Vec::new() }
    }

    /// The inputs of a network over the field of a batch.
    fn inputs<T: Real>(
        &mut self,
        architecture: &Architecture,
        inputs: &Inputs<T>,
        batch: &[u32],
    ) -> Inputs<T> {
        let reaches: Vec<usize> = architecture
            .towers
            .iter()
            .enumerate()
            .map(|(number, tower)| reach(tower, inputs.precomputed(number).is_some()))
            .collect();
        self.grow(inputs, &reaches, batch);
        let matrices = inputs.matrices.iter().zip(&reaches).map(|(matrix, &reach)| {
            let rows = if reach == 0 { 0 } else { self.ends[reach - 1] };
            Arc::new(Propagation::new(self.cut(matrix.matrix(), rows)))
        });
        inputs.select(&self.vertices, matrices.collect())
    }

    /// Finds the vertices within as many entries of the batch as the towers look, in all matrices.
    fn grow<T: Real>(&mut self, inputs: &Inputs<T>, reaches: &[usize], batch: &[u32]) {
        self.vertices.iter().for_each(|&vertex| self.places[vertex as usize] = OUTSIDE);
        self.vertices.clear();
        self.ends.clear();
        self.add(batch);
        for distance in 0..reaches.iter().copied().max().unwrap_or(0) {
            let last: Range<usize> =
                distance.checked_sub(1).map_or(0, |at| self.ends[at])..self.ends[distance];
            let looking = inputs.matrices.iter().zip(reaches).filter(|&(_, &reach)| reach > distance);
            for matrix in looking.map(|(matrix, _)| matrix.matrix()) {
                for at in last.clone() {
                    let columns = matrix.row(self.vertices[at] as usize).0;
                    columns.iter().for_each(|&column| self.visit(column));
                }
            }
            self.ends.push(self.vertices.len());
        }
    }

    fn add(&mut self, vertices: &[u32]) {
        vertices.iter().for_each(|&vertex| self.visit(vertex));
        self.ends.push(self.vertices.len());
    }

    fn visit(&mut self, vertex: u32) {
        let place = &mut self.places[vertex as usize];
        if *place == OUTSIDE {
            *place = self.vertices.len() as u32;
            self.vertices.push(vertex);
        }
    }

    /// The part of a matrix within the field; only the first `rows` have entries.
    fn cut<T: Real>(&self, matrix: &Csr<T>, rows: usize) -> Csr<T> {
        let size = self.vertices.len();
        let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut entries: Vec<(u32, T)> = Vec::new();
        for &vertex in &self.vertices[..rows] {
            let (columns, own) = matrix.row(vertex as usize);
            entries.clear();
            entries
                .extend(columns.iter().map(|&column| self.places[column as usize]).zip(own.iter().copied()));
            entries.sort_unstable_by_key(|entry| entry.0);
            indices.extend(entries.iter().map(|entry| entry.0));
            values.extend(entries.iter().map(|entry| entry.1));
            pointers.push(indices.len());
        }
        pointers.resize(size + 1, indices.len());
        Csr::new(size, size, pointers, indices, values)
            .expect("places in a field are different and lie within it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_vertex_once_in_an_order_that_follows_from_the_seed() {
        let vertices: Vec<u32> = (0..100).map(|v| 3 * v).collect();
        let drawn = batches(&vertices, 30, 1);
        assert_eq!(drawn.iter().map(Vec::len).collect::<Vec<_>>(), [30, 30, 30, 10]);
        let mut all = drawn.concat();
        assert_ne!(all, vertices);
        assert_ne!(drawn, batches(&vertices, 30, 2));
        assert_eq!(drawn, batches(&vertices, 30, 1));
        all.sort_unstable();
        assert_eq!(all, vertices);
    }

    #[test]
    fn a_field_has_whole_rows_within_its_reach_and_none_beyond() {
        // A path 0 - 1 - ... - 9 with loops.
        let rows = (0..10u32).map(|i| {
            let columns: Vec<u32> = (i.saturating_sub(1)..=(i + 1).min(9)).collect();
            let values = columns.iter().map(|&j| f64::from(10 * i + j)).collect();
            (columns, values)
        });
        let matrix = Arc::new(Propagation::new(Csr::from_rows(10, rows).unwrap()));
        let inputs = Inputs::dense(Matrix::<f64>::zeros(10, Width::single(1)), vec![matrix]);
        let mut field = Field::new(10);
        for _ in 0..2 {
            field.grow(&inputs, &[2], &[5, 4]);
            assert_eq!(field.vertices, [5, 4, 6, 3, 7, 2]);
            assert_eq!(field.ends, [2, 4, 6]);
            let cut = field.cut(inputs.matrices[0].matrix(), 4);
            assert_eq!(cut.row(0), (&[0, 1, 2][..], &[55.0, 54.0, 56.0][..]));
            assert_eq!(cut.row(3), (&[1, 3, 5][..], &[34.0, 33.0, 32.0][..]));
            assert_eq!((cut.row(4).0.len(), cut.row(5).0.len()), (0, 0));
        }
    }
}
