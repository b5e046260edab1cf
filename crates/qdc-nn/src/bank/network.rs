//! The bank network: its channels joined, read out, and the way back.

use std::ops::Range;

use super::channel::{Channel, Scratch};
use super::window::LearnedWindow;
use super::{BankArchitecture, BankInputs, BankProgram, Readout};
use crate::aligned::Aligned;
use crate::chain::{Chain, Placement};
use crate::dense::{View, product};
use crate::hardware::{Loops, dispatch, multiply_add};
use crate::layers::{Activate, Activation, Linear, Parameter, Pass, Rows, Start};
use crate::learner::{Group, Learner};
use crate::loss::cross_entropy_with_gradient;
use crate::network::start;
use crate::program::Dropout;
use crate::random::Mask;
use crate::{Adam, Error, Matrix, Placed, Real, Width};

/// A bank network with its parameters.
///
/// What does not depend on dropout is computed once for each state of the weights: without input dropout an
/// evaluation and the training step after it share the channels.
pub struct BankNetwork<T> {
    architecture: BankArchitecture,
    channels: Vec<Channel<T>>,
    /// Where the readout of each channel lies.
    readouts: Vec<Range<usize>>,
    /// Where the logarithms of the shares lie.
    mixing: Range<usize>,
    /// Where learned windows lie, and where they started.
    windows: Vec<(Range<usize>, LearnedWindow)>,
    /// Where the readout begins; up to the end of the weights.
    readout: usize,
    shares: Vec<T>,
    /// The sum of the channels' readouts, then what the activation made of it.
    sum: Matrix<T>,
    d_sum: Matrix<T>,
    finish: (Activate, Range<usize>),
    second: Option<Chain<T>>,
    /// Whether the channels' outputs belong to the weights as they are, without dropout.
    fresh: bool,
    scratch: Scratch<T>,
    active: Matrix<T>,
    d_active: Matrix<T>,
    part: Matrix<T>,
    parameters: Vec<Placed>,
    weights: Aligned<T>,
    gradient: Aligned<T>,
    nothing: Matrix<T>,
}

impl<T: Real> BankNetwork<T> {
    /// Builds the network and starts its parameters from `seed`: matrices by Glorot's rule, shares equal,
    /// biases of the readout at 0, learned windows where their inputs say.
    ///
    /// # Errors
    /// If the architecture is impossible, or there is no channel.
    pub fn new(architecture: &BankArchitecture, inputs: &BankInputs<T>, seed: u64) -> Result<Self, Error> {
        T::bank(architecture, inputs, seed)
    }

    pub(crate) fn compiled_new(
        architecture: &BankArchitecture,
        inputs: &BankInputs<T>,
        seed: u64,
    ) -> Result<Self, Error> {
        architecture.check()?;
        if inputs.channels.is_empty() {
            return Err(Error::Architecture { problem: "a bank needs a channel".into() });
        }
        let (nodes, count) = (inputs.nodes, inputs.channels.len());
        let hidden = Width::single(architecture.hidden);
        let classes = Width::single(architecture.classes);
        let joined = if architecture.readout == Readout::Linear { classes } else { hidden };
        let mut placement = Placement::default();
        let numbered = inputs.channels.iter().enumerate();
        let mut channels: Vec<Channel<T>> =
            numbered.map(|(k, input)| Channel::new(input, architecture, k, &mut placement)).collect();
        let mixing =
            placement.place("mixing", vec![Parameter::vector("weight", Width::single(count), Start::Zero)]);
        let numbered = channels.iter_mut().enumerate();
        let windows: Vec<(Range<usize>, LearnedWindow)> =
            numbered.filter_map(|(k, channel)| channel.place_window(k, &mut placement)).collect();
        let readout_start = placement.length;
        let whole = Start::Glorot { inputs: count * architecture.hidden, outputs: joined.columns() };
        let part = Parameter { start: whole, ..Parameter::weight(Rows::Hidden(hidden), joined) };
        let readouts =
            (0..count).map(|k| placement.place(&format!("readout.{k}"), vec![part.clone()])).collect();
        let stream = 2 * count as u64 + 1;
        let (finish, second) = match architecture.readout {
            Readout::Linear => (Activate::new(joined, Activation::Identity, true, 0.0, stream), None),
            Readout::Layers => {
                let finish = Activate::new(joined, Activation::Relu, true, architecture.dropout, stream);
                (finish, Some(Chain::of_activations(nodes)))
            }
        };
        let own = placement.place("readout", finish.parameters());
        let second = second.map(|mut chain| {
            chain.push(Linear::new(joined, classes), &mut placement, "readout.second");
            let bias = Activate::new(classes, Activation::Identity, true, 0.0, stream + 1);
            chain.activate(bias, &mut placement, "readout.second");
            chain
        });
        let Placement { parameters, length } = placement;
        let weights = Aligned::zeros(length);
        let zeros = |width| Matrix::zeros(nodes, width);
        let mut network = Self {
            architecture: architecture.clone(),
            channels,
            readouts,
            mixing,
            windows,
            readout: readout_start,
            shares: vec![T::ONE; count],
            sum: zeros(joined),
            d_sum: zeros(joined),
            finish: (finish, own),
            second,
            fresh: false,
            scratch: Scratch::new(nodes, architecture.hidden),
            active: zeros(hidden),
            d_active: zeros(hidden),
            part: zeros(joined),
            parameters,
            gradient: weights.clone(),
            weights,
            nothing: Matrix::zeros(0, Width::single(1)),
        };
        network.restart(inputs, seed);
        Ok(network)
    }

    /// Starts the parameters anew, as [`BankNetwork::new`] does: learned windows where `inputs` say, which
    /// otherwise are those of the network.
    pub fn restart(&mut self, inputs: &BankInputs<T>, seed: u64) {
        self.fresh = false;
        start(&self.parameters, &mut self.weights, seed);
        for ((range, window), begin) in self.windows.iter_mut().zip(inputs.starts()) {
            *window = begin;
            self.weights[range.start] = T::from_f64(begin.mu);
            self.weights[range.start + 1] = T::from_f64(begin.sigma);
        }
    }

    /// What it computes, as plain data.
    pub fn program(&self) -> BankProgram<T> {
        let stage = |(k, channel): (usize, &Channel<T>)| {
            channel.stage(self.architecture.input_dropout_of(k), self.architecture.dropout_of(k))
        };
        let (finish, own) = &self.finish;
        BankProgram {
            nodes: self.sum.rows(),
            classes: Width::single(self.architecture.classes),
            weights: self.weights.len(),
            hidden: Width::single(self.architecture.hidden),
            norm: self.architecture.norm,
            channels: self.channels.iter().enumerate().map(stage).collect(),
            mixing: self.mixing.clone(),
            readout: self.readouts[0].start..self.readouts[self.readouts.len() - 1].end,
            joined: self.sum.width(),
            finish: finish.stage(own.clone()),
            second: self.second.as_ref().map_or_else(Vec::new, Chain::stages),
        }
    }

    /// The shares of the channels, K softmax(a): their mean is 1.
    pub fn shares(&mut self) -> Vec<f64> {
        self.weigh();
        self.shares.iter().map(|share| share.to_f64()).collect()
    }

    /// Computes the shares from their logarithms.
    fn weigh(&mut self) {
        let logs = &self.weights[self.mixing.start..][..self.shares.len()];
        let highest = logs.iter().copied().fold(logs[0], T::max);
        for (share, &log) in self.shares.iter_mut().zip(logs) {
            *share = (log - highest).exp();
        }
        let mean = self.shares.iter().copied().sum::<T>() / T::from_f64(logs.len() as f64);
        self.shares.iter_mut().for_each(|share| *share /= mean);
    }

    /// mu and sigma of each learned window.
    pub fn windows(&self) -> Vec<(f64, f64)> {
        let value = |at: usize| self.weights[at].to_f64();
        self.windows.iter().map(|(range, _)| (value(range.start), value(range.start + 1))).collect()
    }

    /// The gradient left by [`Learner::loss_and_gradient`], laid out like the weights.
    pub fn gradient(&self) -> &[T] {
        &self.gradient
    }

    /// The mask of channel `k`, if this pass drops anything.
    fn mask(&self, k: usize, pass: Pass) -> Option<Mask> {
        let Dropout { rate, stream } = self.architecture.dropout_of(k);
        pass.mask(rate, stream)
    }

    pub(crate) fn compiled_forward(&mut self, pass: Pass) -> &Matrix<T> {
        let masked = self.architecture.input_dropout > 0.0 && pass != Pass::Evaluate;
        if !self.fresh || masked {
            for channel in &mut self.channels {
                channel.forward(&self.weights, &mut self.scratch, pass, &self.nothing);
            }
            self.fresh = !masked;
        }
        self.weigh();
        self.sum.values_mut().fill(T::ZERO);
        for k in 0..self.channels.len() {
            let mask = self.mask(k, pass);
            rectify(self.channels[k].output.values(), mask, self.active.values_mut());
            let matrix =
                View::new(self.active.stride(), self.part.stride(), &self.weights[self.readouts[k].clone()]);
            product((&self.active).into(), matrix, self.part.values_mut());
            dispatch(AddScaled { sum: self.sum.values_mut(), factor: self.shares[k], x: self.part.values() });
        }
        let (finish, own) = &mut self.finish;
        finish.forward(&self.weights[own.clone()], &mut self.sum, pass);
        match &mut self.second {
            None => &self.sum,
            Some(chain) => {
                chain.forward(&self.weights, &self.sum, pass);
                chain.output()
            }
        }
    }

    /// With s_k the shares and A_k = drop(relu(y_k)): sum = sum_k s_k A_k R_k, so d R_k = s_k A_k^T d sum,
    /// d A_k = s_k d sum R_k^T, d s_k = <A_k, d sum R_k^T>; and with s = K softmax(a),
    /// d a_k = s_k (d s_k - mean over j of s_j d s_j).
    pub(crate) fn compiled_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        self.compiled_forward(pass);
        let loss = match &mut self.second {
            None => cross_entropy_with_gradient(&self.sum, labels, vertices, &mut self.d_sum),
            Some(chain) => {
                let (logits, d_logits) = chain.ends();
                let loss = cross_entropy_with_gradient(logits, labels, vertices, d_logits);
                chain.backward(&self.weights, &self.sum, &mut self.gradient, &mut self.d_sum);
                loss
            }
        };
        let (finish, own) = &mut self.finish;
        finish.backward(&self.sum, &mut self.d_sum, &mut self.gradient[own.clone()]);
        let mixing = self.mixing.start;
        for k in 0..self.channels.len() {
            let (mask, share) = (self.mask(k, pass), self.shares[k]);
            rectify(self.channels[k].output.values(), mask, self.active.values_mut());
            let range = self.readouts[k].clone();
            let matrix = View::new(self.active.stride(), self.d_sum.stride(), &self.weights[range.clone()]);
            product((&self.d_sum).into(), matrix.transposed(), self.d_active.values_mut());
            let own = &mut self.gradient[range];
            product(View::from(&self.active).transposed(), (&self.d_sum).into(), own);
            own.iter_mut().for_each(|value| *value *= share);
            // y > 0 and kept, exactly where the activation is positive.
            let scale = share * T::from_f64(mask.map_or(1.0, Mask::scale));
            let (active, d_active) = (self.active.values(), self.d_active.values_mut());
            let d_share = dispatch(Unrectify { active, d_active, scale });
            self.gradient[mixing + k] = T::from_f64(d_share);
            let (weights, gradient) = (&self.weights, &mut self.gradient);
            self.channels[k].backward(
                weights,
                &mut self.d_active,
                &mut self.scratch,
                gradient,
                &self.nothing,
            );
        }
        let d_shares = &mut self.gradient[mixing..mixing + self.shares.len()];
        let count = T::from_f64(self.shares.len() as f64);
        let mean = d_shares.iter().zip(&self.shares).map(|(&d, &share)| d * share).sum::<T>() / count;
        for (d, &share) in d_shares.iter_mut().zip(&self.shares) {
            *d = share * (*d - mean);
        }
        loss
    }
}

impl<T: Real> Learner<T> for BankNetwork<T> {
    fn parameters(&self) -> &[Placed] {
        &self.parameters
    }

    fn weights(&self) -> &[T] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut [T] {
        self.fresh = false;
        &mut self.weights
    }

    /// The schedule's decay for the channels' matrices, none for shares and windows, the architecture's for
    /// the readout; windows have rates of their own.
    fn groups(&self, learning_rate: f64, weight_decay: f64) -> Vec<Group> {
        let group = |range, learning_rate, weight_decay| Group { range, learning_rate, weight_decay };
        let starts = self.windows.iter().map(|(range, _)| range.start).chain([self.readout]);
        let ends: Vec<usize> = starts.collect();
        let mut groups = vec![
            group(0..self.mixing.start, learning_rate, weight_decay),
            group(self.mixing.start..ends[0], learning_rate, 0.0),
        ];
        for (at, (_, window)) in self.windows.iter().enumerate() {
            groups.push(group(ends[at]..ends[at + 1], window.rate * learning_rate, 0.0));
        }
        groups.push(group(self.readout..self.weights.len(), learning_rate, self.architecture.readout_decay));
        groups
    }

    fn forward(&mut self, pass: Pass) -> &Matrix<T> {
        T::bank_forward(self, pass)
    }

    fn loss_and_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        T::bank_gradient(self, labels, vertices, pass)
    }

    fn update(&mut self, adam: &mut Adam<T>) {
        self.fresh = false;
        adam.step(&mut self.weights, &self.gradient);
        for (range, _) in &self.windows {
            for (at, (low, high)) in [LearnedWindow::MU, LearnedWindow::SIGMA].into_iter().enumerate() {
                let value = &mut self.weights[range.start + at];
                *value = T::from_f64(value.to_f64().clamp(low, high));
            }
        }
    }
}

/// out = drop(max(x, 0)).
fn rectify<T: Real>(x: &[T], mask: Option<Mask>, out: &mut [T]) {
    dispatch(Rectify { x, mask, out });
}

struct Rectify<'a, T> {
    x: &'a [T],
    mask: Option<Mask>,
    out: &'a mut [T],
}

impl<T: Real> Loops for Rectify<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        /// Whole blocks of a mask, few enough for the first-level cache.
        const CHUNK: usize = 1024;
        for (number, (out, x)) in self.out.chunks_mut(CHUNK).zip(self.x.chunks(CHUNK)).enumerate() {
            match self.mask {
                Some(mask) => {
                    out.copy_from_slice(x);
                    mask.apply(number * CHUNK, out, |x: T| x.max(T::ZERO));
                }
                None => out.iter_mut().zip(x).for_each(|(out, &x)| *out = x.max(T::ZERO)),
            }
        }
    }
}

/// <active, d_active>, and d_active <- scale d_active where active is positive, 0 elsewhere.
struct Unrectify<'a, T> {
    active: &'a [T],
    d_active: &'a mut [T],
    scale: T,
}

impl<T: Real> Loops for Unrectify<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f64 {
        const CHUNK: usize = 1024;
        let mut total = 0.0;
        for (active, d_active) in self.active.chunks(CHUNK).zip(self.d_active.chunks_mut(CHUNK)) {
            total += T::dot::<FUSED>(active, d_active).to_f64();
            for (d, &active) in d_active.iter_mut().zip(active) {
                *d = if active > T::ZERO { *d * self.scale } else { T::ZERO };
            }
        }
        total
    }
}

/// sum += factor x.
struct AddScaled<'a, T> {
    sum: &'a mut [T],
    factor: T,
    x: &'a [T],
}

impl<T: Real> Loops for AddScaled<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (sum, &x) in self.sum.iter_mut().zip(self.x) {
            *sum = multiply_add::<T, FUSED>(self.factor, x, *sum);
        }
    }
}
