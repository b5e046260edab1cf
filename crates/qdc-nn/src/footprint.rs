//! What a network takes in memory, counted before it is built.
//!
//! The counts follow the constructors ([`crate::Network`], [`crate::Adam`], the layers,
//! [`crate::Propagation`]) array by array; a test with a counting allocator keeps them in step.

use crate::Width;
use crate::architecture::{Architecture, Combinator, Kind, Tower};
use crate::inputs::{REORDER_FROM, is_precomputed};
use crate::layers::GROUP;
use crate::mini_batch::reach;
use crate::propagation::{DENSE_ABOVE, ENTRIES_FOR_TILES};
use crate::sparse::Tiles;

/// Bytes of a number in training.
const NUMBER: u64 = 4;
/// Bytes of a column index.
const INDEX: u64 = 4;
/// Bytes of a row pointer.
const POINTER: u64 = 8;

/// The sizes of what a network runs over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of vertices.
    pub nodes: usize,
    /// Number of features of a vertex.
    pub features: usize,
    /// Stored entries of sparse features; none where they are dense.
    pub feature_entries: Option<usize>,
    /// The matrix of each tower; none for an MLP.
    pub matrices: Vec<MatrixShape>,
}

/// The size of a matrix to propagate with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    /// Stored entries.
    pub entries: usize,
    /// Whether it is its own transpose; if not, both are kept.
    pub symmetric: bool,
    /// Whether its entries lie in a mapped file, so that mini-batches take no memory for them.
    pub mapped: bool,
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The most that is held while features and matrices are made ready; before the first run.
    pub preparing: u64,
    /// What all runs of a network share: features and matrices in the form they are multiplied in.
    pub shared: u64,
    /// Held besides for a moment, when the first run sets up what all share.
    pub passing: u64,
    /// What each run takes besides: activations, gradients, weights and the optimiser's state.
    pub run: u64,
    /// The weights of one network.
    pub weights: u64,
}

impl Footprint {
    /// Counts what `architecture` takes over inputs of this shape, in single precision.
    pub fn of(architecture: &Architecture, shape: &Shape) -> Self {
        Self::count(architecture, shape, Part::Whole)
    }

    /// The same in mini-batches of so many vertices. What a batch reaches is counted by the mean row of the
    /// matrices: batches that meet hubs take more.
    pub fn in_batches(architecture: &Architecture, shape: &Shape, batch_nodes: usize) -> Self {
        let dense = shape.feature_entries.is_none();
        let reach = |tower: &Tower| reach(tower, is_precomputed(tower, dense, shape.nodes, true));
        let furthest = architecture.towers.iter().map(reach).max().unwrap_or(0);
        let share = |part: usize, of: usize| of.div_ceil(shape.nodes.max(1)).saturating_mul(part);
        let all: usize = shape.matrices.iter().map(|matrix| share(1, matrix.entries)).sum();
        let (mut field, mut rows) = (batch_nodes.min(shape.nodes), 0);
        for _ in 0..furthest {
            rows = field;
            field = field.saturating_mul(all.max(1)).saturating_add(field).min(shape.nodes);
        }
        let of_rows = |matrix: &MatrixShape| {
            let entries = share(rows, matrix.entries).min(matrix.entries);
            MatrixShape { entries, symmetric: false, mapped: false }
        };
        let reached = Shape {
            nodes: field,
            features: shape.features,
            feature_entries: shape.feature_entries.map(|entries| share(field, entries)),
            matrices: shape.matrices.iter().map(of_rows).collect(),
        };
        let batch = Self::count(architecture, &reached, Part::Batch);
        let logits = NUMBER * shape.nodes as u64 * Width::single(architecture.classes).stride() as u64;
        let run = batch.of_runs(1) + 2 * batch.weights + logits + INDEX * shape.nodes as u64;
        Self { run, ..Self::count(architecture, shape, Part::Source) }
    }

    fn count(architecture: &Architecture, shape: &Shape, part: Part) -> Self {
        let mut propagated = 0;
        let mut run = Run { nodes: shape.nodes as u64, numbers: 0, parameters: 0, bytes: 0 };
        let classes = Width::single(architecture.classes);
        let (features, mut matrices) = (features(shape), 0);
        let (mut columns, mut largest) = (0, 0);
        let mut ends = Vec::new();
        for (number, tower) in architecture.towers.iter().enumerate() {
            let matrix = shape.matrices.get(number).copied();
            let entries = matrix.map_or(0, |matrix| matrix.entries);
            let dense = shape.feature_entries.is_none();
            let precomputed =
                matrix.is_some() && is_precomputed(tower, dense, shape.nodes, part != Part::Whole);
            propagated += if precomputed { features } else { 0 };
            ends.push(run.tower(tower, shape, entries as u64, precomputed));
            if let (Some(MatrixShape { mapped, .. }), Part::Source) = (matrix, part) {
                matrices += rows_form(shape.nodes, if mapped { 0 } else { entries });
            } else if let Some(MatrixShape { symmetric, .. }) = matrix {
                matrices += propagation(shape.nodes, entries) * if symmetric { 1 } else { 2 };
                largest = largest.max(rows_form(shape.nodes, entries));
                if matches!(tower.kind, Kind::Gat { .. }) {
                    columns += by_column(shape.nodes, entries);
                }
            }
        }
        match architecture.combinator {
            None => {}
            Some(Combinator::Add) => {
                run.activations(ends[0], 2); // the sum and its gradient
                run.weights(ends[0].stride(), classes);
                run.activations(classes, 2);
            }
            Some(Combinator::Concat) => {
                for &end in &ends {
                    run.weights(end.stride(), classes);
                    run.activations(classes, 2);
                }
                run.activations(classes, 2); // their sum
            }
        }
        let reordered = part == Part::Whole && shape.nodes >= REORDER_FROM && !shape.matrices.is_empty();
        if reordered {
            run.activations(classes, 2); // logits in the order of the vertices
            run.bytes += INDEX * shape.nodes as u64; // and that order
        }
        // In the order of the vertices first, then in the network's; a matrix is compared with its transpose.
        let copies = if reordered { 2 } else { 1 };
        Self {
            preparing: copies * (features + matrices) + largest + propagated,
            shared: features + matrices + columns + propagated,
            passing: columns, // before they are transposed
            run: NUMBER * (run.numbers + 4 * run.parameters) + run.bytes, // weights, gradient, two moments
            weights: NUMBER * run.parameters,
        }
    }

    /// The most that `at_once` runs hold together.
    pub fn of_runs(&self, at_once: usize) -> u64 {
        let runs = self.run.saturating_mul(at_once as u64);
        self.preparing.max(self.shared.saturating_add(self.passing).saturating_add(runs))
    }
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A network over the whole graph.
    Whole,
    /// What mini-batches are cut from.
    Source,
    /// A network over the field of a batch.
    Batch,
}

/// The count of one run.
struct Run {
    nodes: u64,
    /// Numbers of activations and gradients.
    numbers: u64,
    parameters: u64,
    /// Bytes of anything else.
    bytes: u64,
}

impl Run {
    fn activations(&mut self, width: Width, copies: u64) {
        self.numbers += copies * self.nodes * width.stride() as u64;
    }

    fn weights(&mut self, rows: usize, columns: Width) {
        self.parameters += (rows * columns.stride() + columns.stride()) as u64; // with a bias
    }

    /// The layers of a tower, as `Builder::tower` sets them up; gives its last width.
    fn tower(&mut self, tower: &Tower, shape: &Shape, entries: u64, precomputed: bool) -> Width {
        let dense = Width::single(shape.features);
        let mut input = None;
        if shape.feature_entries.is_none() {
            self.activations(dense, 1); // features after dropout; no gradient
            input = Some(dense);
        }
        for (depth, &width) in tower.widths.iter().enumerate() {
            let transformed = match tower.kind {
                Kind::Gat { heads, .. } => Width::blocks(heads, width),
                Kind::Mlp | Kind::Gcn => Width::single(width),
            };
            let propagates = tower.kind == Kind::Gcn && (depth > 0 || !precomputed);
            let narrower = input.filter(|input: &Width| input.stride() < transformed.stride());
            if let (true, Some(input)) = (propagates, narrower) {
                self.activations(input, if depth == 0 { 1 } else { 2 });
            }
            match (input, shape.feature_entries) {
                (Some(input), _) if depth > 0 => self.weights(input.stride(), transformed),
                (_, stored) => {
                    self.weights(shape.features, transformed);
                    if let Some(stored) = stored {
                        let kept = if tower.dropout > 0.0 { stored as u64 } else { 0 };
                        self.bytes += kept * (INDEX + NUMBER + 1) + self.nodes * POINTER;
                    }
                }
            }
            self.activations(transformed, 2);
            let mut output = transformed;
            match tower.kind {
                Kind::Gcn if propagates && narrower.is_none() => self.activations(transformed, 2),
                Kind::Mlp | Kind::Gcn => {}
                Kind::Gat { heads, .. } => {
                    if depth + 1 == tower.widths.len() {
                        output = Width::single(width);
                    }
                    self.activations(output, 2);
                    self.attention(heads as u64, entries, transformed);
                }
            }
            input = Some(output);
        }
        input.unwrap_or(dense)
    }

    /// What an attention keeps for its backward pass.
    fn attention(&mut self, heads: u64, entries: u64, width: Width) {
        let group = if heads < GROUP as u64 { 1 } else { GROUP as u64 };
        self.numbers += entries * (heads + group) + 2 * self.nodes * (heads + group);
        self.bytes += 2 * self.nodes * INDEX + entries / 512 * 32; // numbers of entries, spans
        self.parameters += 4 * width.stride() as u64;
    }
}

/// Bytes of the features as the network uses them.
fn features(shape: &Shape) -> u64 {
    match shape.feature_entries {
        Some(entries) => rows_form(shape.nodes, entries),
        None => NUMBER * shape.nodes as u64 * Width::single(shape.features).stride() as u64,
    }
}

/// Bytes of a sparse matrix, row by row.
fn rows_form(rows: usize, entries: usize) -> u64 {
    entries as u64 * (INDEX + NUMBER) + rows as u64 * POINTER
}

/// Bytes of a matrix ready to propagate with: row by row, and the form it is multiplied in.
fn propagation(nodes: usize, entries: usize) -> u64 {
    let (rows, stored) = (nodes as u64, entries as u64);
    let strips = nodes.div_ceil(Tiles::<f32>::COLUMNS);
    let per_cell = entries as f64 / (nodes * strips).max(1) as f64;
    let form = if entries as f64 > DENSE_ABOVE * (nodes as f64).powi(2) {
        NUMBER * rows * rows
    } else if strips > 2 && per_cell >= ENTRIES_FOR_TILES && entries < u32::MAX as usize {
        stored * (2 + NUMBER) + strips as u64 * rows * INDEX
    } else {
        0
    };
    rows_form(nodes, entries) + form
}

/// Bytes of the entries of a matrix column by column, as attention needs them.
fn by_column(nodes: usize, entries: usize) -> u64 {
    entries as u64 * (INDEX + POINTER) + nodes as u64 * POINTER
}
