//! Networks of towers: from their program to the kernels of one training step, for all runs of a batch at once.

mod attention;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use qdc_nn::program::{Dropout, Operation, Program, Stage};
use qdc_nn::{Propagation, Width};

use crate::frame::{Frame, Place};
use crate::grid::{THREADS, groups, rows_of_a_part, sites};
use crate::launch::Launch;
use crate::matrices::{Matrices, counted};
use crate::room::Room;
use crate::state::{Add, Address, Finish, Gather, Mask, Product, Sparse};
use crate::{Device, Error};

/// What attention keeps from its forward pass for its backward pass.
#[derive(Clone, Copy, Default)]
struct AttentionRoom {
    source: Address,
    target: Address,
    p: Address,
    d_scores: Address,
    d_source: Address,
    d_target: Address,
    d_edge: Address,
}

/// A network on the device: places for everything, from which kernels are made.
pub(crate) struct DeviceTowers<'a> {
    pub(crate) frame: Frame<'a>,
    program: &'a Program<f32>,
    /// By the address of the matrix on the host, and whether it is attended over.
    matrices: HashMap<(usize, bool), Matrices>,
    places: HashMap<(usize, usize), Place>,
    attention: HashMap<(usize, usize), AttentionRoom>,
    sum: Option<Place>,
}

/// The chain that follows the sum of the towers has this number.
const READOUT: usize = usize::MAX;

impl<'a> DeviceTowers<'a> {
    /// Places the network of `program` for `runs` runs.
    pub(crate) fn new(
        device: &'a Device,
        program: &'a Program<f32>,
        runs: u32,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let frame = Frame::new(device, program.nodes, program.weights, runs, sites(program), room)?;
        let mut network = Self {
            frame,
            program,
            matrices: HashMap::new(),
            places: HashMap::new(),
            attention: HashMap::new(),
            sum: None,
        };
        for (chain, stages) in network.chains() {
            for (at, stage) in stages.iter().enumerate() {
                network.place((chain, at), stage, room)?;
            }
        }
        if program.towers.len() > 1 {
            let width = last(&program.towers[0]).width;
            network.sum = Some(network.frame.array(width, true, room)?);
        }
        Ok(network)
    }

    fn chains(&self) -> Vec<(usize, &'a [Stage<f32>])> {
        let towers = self.program.towers.iter().enumerate().map(|(t, stages)| (t, stages.as_slice()));
        let readout =
            (!self.program.readout.is_empty()).then_some((READOUT, self.program.readout.as_slice()));
        towers.chain(readout).collect()
    }

    fn place(&mut self, key: (usize, usize), stage: &Stage<f32>, room: &mut Room) -> Result<(), Error> {
        let place = self.frame.array(stage.width, stage.varies, room)?;
        self.places.insert(key, place);
        match &stage.operation {
            Operation::SparseFeatures { features, .. } => {
                let identity = (Arc::as_ptr(features) as usize, false);
                if let Entry::Vacant(place) = self.matrices.entry(identity) {
                    place.insert(Matrices::of(features, room)?);
                }
            }
            Operation::DenseFeatures { features, .. } => {
                let values = features.values();
                let made = room.upload(values.len() as u64, || values.to_vec())?;
                let nothing = Sparse { values: made, ..Sparse::default() };
                let (forward, backward) = (nothing, nothing);
                let made = Matrices {
                    forward,
                    backward,
                    rows: 0,
                    columns: 0,
                    entries: 0,
                    dense: None,
                    symmetric: true,
                };
                self.matrices.insert((Arc::as_ptr(features) as usize, false), made);
            }
            Operation::Linear { .. } => {}
            Operation::Propagate { matrix } | Operation::Attention { matrix, .. } => {
                let attends = matches!(stage.operation, Operation::Attention { .. });
                let identity = (Arc::as_ptr(matrix) as usize, attends);
                if let Entry::Vacant(place) = self.matrices.entry(identity) {
                    place.insert(Matrices::of_propagation(matrix, attends, room)?);
                }
                if let Operation::Attention { input, .. } = &stage.operation {
                    let heads = input.count() as u64;
                    let entries = matrix.matrix().entries() as u64 * heads;
                    counted("entries times heads of an attention", entries)?;
                    let runs = u64::from(self.frame.runs);
                    let (nodes, entries) = (runs * self.program.nodes as u64 * heads, runs * entries);
                    let attention = AttentionRoom {
                        source: room.reserve::<f32>(nodes),
                        target: room.reserve::<f32>(nodes),
                        p: room.reserve::<f32>(entries),
                        d_scores: room.reserve::<f32>(entries),
                        d_source: room.reserve::<f32>(nodes),
                        d_target: room.reserve::<f32>(nodes),
                        d_edge: room.reserve::<f32>(nodes),
                    };
                    self.attention.insert(key, attention);
                }
            }
        }
        Ok(())
    }

    /// Where the logits and their gradient lie.
    pub(crate) fn logits(&self) -> Place {
        match (self.program.readout.len(), self.sum) {
            (0, Some(sum)) => sum,
            (0, None) => self.places[&(0, self.program.towers[0].len() - 1)],
            (stages, _) => self.places[&(READOUT, stages - 1)],
        }
    }

    /// The kernels of a forward pass.
    pub(crate) fn forward(&self, training: bool, launches: &mut Vec<Launch>) {
        for (chain, stages) in self.chains() {
            if chain == READOUT {
                self.join(launches);
            }
            for (at, stage) in stages.iter().enumerate() {
                self.forward_stage((chain, at), stage, training, launches);
            }
        }
        if self.program.readout.is_empty() {
            self.join(launches);
        }
    }

    /// The sum of the towers, through a ReLU where layers follow.
    fn join(&self, launches: &mut Vec<Launch>) {
        let Some(sum) = self.sum else { return };
        let towers = &self.program.towers;
        for (t, tower) in towers.iter().enumerate() {
            let term = self.places[&(t, tower.len() - 1)];
            let ends = t + 1 == towers.len() && !self.program.readout.is_empty();
            let add = Add {
                runs: self.frame.states,
                x: term.output,
                y: sum.output,
                x_run: term.run,
                y_run: sum.run,
                finish: if ends { Finish::relu() } else { Finish::default() },
                length: sum.run as u32,
                stride: sum.stride,
                fresh: u32::from(t == 0),
                pad: 0,
            };
            launches.push(self.frame.flat("add", sum.run as u32, add));
        }
    }

    /// The kernels of a backward pass, from the gradient of the logits to the parts of that of the parameters.
    pub(crate) fn backward(&self, launches: &mut Vec<Launch>) {
        for (chain, stages) in self.chains().into_iter().rev() {
            if let (READOUT, Some(sum)) = (chain, self.sum) {
                self.backward_chain(chain, stages, Some(sum), None, launches);
                launches.push(self.frame.relu_back(sum));
            } else {
                // The derivative of a sum: towers share the gradient of it. Their last activation is the
                // identity, so none of them changes it.
                self.backward_chain(chain, stages, None, self.sum.map(|sum| sum.gradient), launches);
            }
        }
    }

    fn backward_chain(
        &self,
        chain: usize,
        stages: &[Stage<f32>],
        input: Option<Place>,
        last_gradient: Option<Address>,
        launches: &mut Vec<Launch>,
    ) {
        for (at, stage) in stages.iter().enumerate().rev() {
            let mut place = self.places[&(chain, at)];
            if let (true, Some(gradient)) = (at + 1 == stages.len(), last_gradient) {
                place.gradient = gradient;
            }
            if let Some(activate) = &stage.activate {
                self.frame.activate_back(place, activate, launches);
            }
            if stage.varies {
                let before = if at == 0 { input } else { Some(self.places[&(chain, at - 1)]) };
                self.backward_stage((chain, at), stage, place, before, launches);
            }
        }
    }

    fn forward_stage(
        &self,
        key: (usize, usize),
        stage: &Stage<f32>,
        training: bool,
        launches: &mut Vec<Launch>,
    ) {
        let (place, weights_run) = (self.places[&key], self.program.weights as u64);
        let finish = Finish::of(stage.activate.as_ref(), self.frame.weights, weights_run, training);
        let input = || self.input(key);
        match &stage.operation {
            Operation::SparseFeatures { features, dropout } => {
                let matrix = &self.matrices[&(Arc::as_ptr(features) as usize, false)];
                let mask = Mask::of(*dropout, training);
                let (theta, width) = (stage.theta.start, stage.width);
                launches.push(self.frame.features(matrix, mask, theta, place, width, finish));
            }
            Operation::DenseFeatures { features, dropout } => {
                let x = self.matrices[&(Arc::as_ptr(features) as usize, false)].forward.values;
                launches.push(self.frame.drop(x, Mask::of(*dropout, training), place));
            }
            Operation::Linear { .. } => {
                launches.push(self.frame.linear(input(), Mask::default(), stage.theta.start, place));
                self.frame.finish(place, finish, launches);
            }
            Operation::Propagate { matrix } => {
                self.propagate(
                    matrix,
                    false,
                    input().output,
                    place.output,
                    place,
                    stage.width,
                    finish,
                    launches,
                );
            }
            Operation::Attention { .. } => {
                let mut attention = self.attention(key, stage, place, input(), training);
                attention.finish = finish;
                let rows = |name, groups| {
                    let grid = (attention.nodes.div_ceil(8), groups, self.frame.runs);
                    self.frame.launch(name, grid, (32, 8, 1), 0, attention)
                };
                launches.push(rows("attention_project", 1));
                launches.push(rows("attention_attend", groups(attention.heads)));
                let columns =
                    if attention.average == 1 { attention.block } else { attention.heads * attention.block };
                launches.push(self.spread("attention_combine", columns / 4, attention, 16));
            }
        }
    }

    fn backward_stage(
        &self,
        key: (usize, usize),
        stage: &Stage<f32>,
        place: Place,
        before: Option<Place>,
        launches: &mut Vec<Launch>,
    ) {
        let (theta, nothing) = (stage.theta.start, Dropout { rate: 0.0, stream: 0 });
        let wanted = before.filter(|before| before.gradient != 0);
        match &stage.operation {
            Operation::SparseFeatures { features, dropout } => {
                let matrix = &self.matrices[&(Arc::as_ptr(features) as usize, false)];
                let width = stage.width;
                launches.push(self.frame.features_back(matrix, *dropout, theta, place, width));
            }
            Operation::DenseFeatures { .. } => {}
            Operation::Linear { .. } => {
                let before = before.expect("a linear map has an input");
                launches.push(self.frame.weight_back(before, nothing, theta, place));
                if let Some(before) = wanted {
                    launches.push(self.frame.input_back(before, before.gradient, theta, place));
                }
            }
            Operation::Propagate { matrix } => {
                if let Some(before) = wanted {
                    let nothing = Finish::default();
                    let (from, to) = (place.gradient, before.gradient);
                    self.propagate(matrix, true, from, to, place, stage.width, nothing, launches);
                }
            }
            Operation::Attention { .. } => {
                let before = before.expect("an attention has an input");
                let mut attention = self.attention(key, stage, place, before, true);
                let site = self.frame.site(theta);
                attention.parts = self.frame.parts_of(site);
                attention.parts_length = site.length;
                attention.per_block = rows_of_a_part(attention.nodes);
                let grid = (attention.nodes.div_ceil(8), groups(attention.heads), self.frame.runs);
                launches.push(self.frame.launch("attention_scores", grid, (32, 8, 1), 0, attention));
                let columns = attention.heads * attention.block;
                launches.push(self.spread("attention_pull", columns / 4, attention, 20));
                let grid = (site.parts, columns.div_ceil(32), self.frame.runs);
                launches.push(self.frame.launch(
                    "attention_theta",
                    grid,
                    (32, 8, 1),
                    3 * THREADS * 4,
                    attention,
                ));
            }
        }
    }

    /// y = M x or M^T x, and what follows; x and y lie as `place` says.
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    fn propagate(
        &self,
        matrix: &Arc<Propagation<f32>>,
        transposed: bool,
        x: Address,
        y: Address,
        place: Place,
        width: Width,
        finish: Finish,
        launches: &mut Vec<Launch>,
    ) {
        let matrices = &self.matrices[&(Arc::as_ptr(matrix) as usize, false)];
        if let Some(dense) = matrices.dense {
            let nodes = matrices.rows;
            let product = Product {
                a: dense,
                b: x,
                b_run: place.run,
                c: y,
                c_run: place.run,
                rows: nodes,
                columns: place.stride,
                inner: nodes,
                a_stride: nodes,
                b_stride: place.stride,
                c_stride: place.stride,
                ..Product::default()
            };
            let name = if transposed && !matrices.symmetric { "product_a_transposed" } else { "product" };
            launches.push(self.frame.product(name, product, 1));
            self.frame.finish(Place { output: y, ..place }, finish, launches);
        } else {
            let matrix = if transposed { matrices.backward } else { matrices.forward };
            let (x_run, y_run, rows) = (place.run, place.run, matrices.rows);
            let gather = Gather { matrix, x, x_run, y, y_run, finish, rows, ..Gather::default() };
            launches.push(self.frame.gather(gather, width, matrices.entries));
        }
    }

    /// The input of a stage: the output of the one before, or the sum of the towers.
    fn input(&self, (chain, at): (usize, usize)) -> Place {
        match at {
            0 => self.sum.expect("a chain without features follows a sum"),
            at => self.places[&(chain, at - 1)],
        }
    }
}

/// The last stage of a chain.
fn last(stages: &[Stage<f32>]) -> &Stage<f32> {
    stages.last().expect("a chain has a layer")
}
