//! The bank of windows and the learned window: from their program to the kernels of one training step, for all
//! runs of a batch at once.
//!
//! What does not depend on dropout is computed once for each state of the weights: without input dropout an
//! evaluation and the training step after it share the channels.

pub(crate) mod arguments;
mod channel;
mod series;

use qdc_nn::bank::BankProgram;
use qdc_nn::program::Dropout;

use crate::frame::{Frame, Place};
use crate::grid::{Sites, THREADS, bias_parts, matrix_parts, rows_of_a_part};
use crate::launch::Launch;
use crate::matrices::counted;
use crate::room::Room;
use crate::state::{Address, Finish, Mask};
use crate::{Device, Error};
use arguments::{ChannelWork, Shares};
use channel::{Made, Scratch};
use series::LearnedRoom;

/// No dropout.
const NONE: Dropout = Dropout { rate: 0.0, stream: 0 };

/// A bank network on the device: places for everything, from which kernels are made.
pub(crate) struct DeviceBank<'a> {
    pub(crate) frame: Frame<'a>,
    program: &'a BankProgram<f32>,
    /// The channels one after the other: what they give, then its gradient.
    y: Address,
    /// The channels side by side as they are read out, then the gradient of that.
    active: Place,
    inverse: Address,
    biases: Address,
    constants: Address,
    shares: Address,
    share_parts: Address,
    sum: Place,
    second: Vec<Place>,
    made: Vec<Made>,
    scratch: Option<Scratch>,
    learned: Option<LearnedRoom>,
}

impl<'a> DeviceBank<'a> {
    /// Places the network of `program` for `runs` runs.
    pub(crate) fn new(
        device: &'a Device,
        program: &'a BankProgram<f32>,
        runs: u32,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let frame = Frame::new(device, program.nodes, program.weights, runs, sites(program), room)?;
        let (count, nodes, channels) = (u64::from(runs), program.nodes as u64, program.channels.len() as u64);
        let wide = channels * program.hidden.stride() as u64;
        let run = u64::from(counted("numbers of the channels", nodes * wide)?);
        let active = room.reserve::<f32>(count * run);
        let made = Made::all(&frame, program, room)?;
        let maps = made.iter().any(Made::maps);
        let scratch = if maps { Some(Scratch::new(&frame, program.hidden, room)?) } else { None };
        let learned = LearnedRoom::new(&frame, program, &made, room)?;
        let biases = program.channels.iter().map(|channel| channel.bias.start as u32);
        let constants = program.channels.iter().map(|channel| channel.constant as f32);
        let second = program.second.iter().map(|stage| frame.array(stage.width, true, room));
        let second = second.collect::<Result<_, _>>()?;
        Ok(Self {
            program,
            y: room.reserve::<f32>(count * run),
            active: Place { output: active, gradient: active, run, stride: wide as u32 },
            inverse: room.reserve::<f32>(count * channels * nodes),
            biases: room.upload(channels, || biases.collect())?,
            constants: room.upload(channels, || constants.collect())?,
            shares: room.reserve::<f32>(count * channels),
            share_parts: room.reserve::<f64>(count * channels * u64::from(bias_parts(frame.nodes))),
            sum: frame.array(program.joined, true, room)?,
            second,
            made,
            scratch,
            learned,
            frame,
        })
    }

    /// Where the logits and their gradient lie, with numbers from run to run.
    pub(crate) fn logits(&self) -> Place {
        *self.second.last().unwrap_or(&self.sum)
    }

    /// The kernels before the first step: channels that a training pass takes over from an evaluation.
    pub(crate) fn prologue(&self, launches: &mut Vec<Launch>) {
        if !self.drops_inputs() {
            self.channels(false, launches);
        }
    }

    /// The kernels of a forward pass.
    pub(crate) fn forward(&self, training: bool, launches: &mut Vec<Launch>) {
        let frame = &self.frame;
        if !training || self.drops_inputs() {
            self.channels(training, launches);
        }
        launches.push(frame.launch("shares", (frame.runs, 1, 1), (32, 1, 1), 0, self.shares()));
        let work = self.work(training);
        let quads = (work.rows * work.hidden / 4).div_ceil(THREADS);
        let grid = (quads, work.channels, frame.runs);
        launches.push(frame.launch("channel_join", grid, (THREADS, 1, 1), 0, work));
        launches.push(frame.linear(self.active, Mask::default(), self.program.readout.start, self.sum));
        let finish = |stage| Finish::of(stage, frame.weights, frame.weights_run, training);
        frame.finish(self.sum, finish(Some(&self.program.finish)), launches);
        let mut before = self.sum;
        for (stage, &place) in self.program.second.iter().zip(&self.second) {
            launches.push(frame.linear(before, Mask::default(), stage.theta.start, place));
            frame.finish(place, finish(stage.activate.as_ref()), launches);
            before = place;
        }
    }

    /// The kernels of a backward pass, from the gradient of the logits to the parts of that of the parameters.
    pub(crate) fn backward(&self, launches: &mut Vec<Launch>) {
        let frame = &self.frame;
        for (at, (stage, &place)) in self.program.second.iter().zip(&self.second).enumerate().rev() {
            let before = if at == 0 { self.sum } else { self.second[at - 1] };
            if let Some(activate) = &stage.activate {
                frame.activate_back(place, activate, launches);
            }
            launches.push(frame.weight_back(before, NONE, stage.theta.start, place));
            launches.push(frame.input_back(before, before.gradient, stage.theta.start, place));
        }
        frame.activate_back(self.sum, &self.program.finish, launches);
        let readout = self.program.readout.start;
        launches.push(frame.weight_back(self.active, NONE, readout, self.sum));
        launches.push(frame.input_back(self.active, self.active.gradient, readout, self.sum));
        let work = self.work(true);
        let grid = (bias_parts(frame.nodes), work.channels, frame.runs);
        launches.push(frame.launch("channel_split", grid, (32, 8, 1), 0, work));
        launches.push(frame.launch("shares_back", (frame.runs, 1, 1), (32, 1, 1), 0, self.shares()));
        for number in 0..self.program.channels.len() {
            self.channel_back(number, launches);
        }
    }

    /// Whether what channels act on is dropped out in training.
    fn drops_inputs(&self) -> bool {
        self.program.channels.iter().any(|channel| channel.input_dropout.rate > 0.0)
    }

    fn shares(&self) -> Shares {
        let frame = &self.frame;
        let mixing = self.program.mixing.start;
        Shares {
            runs: frame.states,
            weights: frame.weight(mixing),
            shares: self.shares,
            parts: self.share_parts,
            gradient: frame.parts_of(frame.site(mixing)),
            weights_run: frame.weights_run,
            gradient_run: frame.parts_run,
            channels: self.program.channels.len() as u32,
            blocks: bias_parts(frame.nodes),
        }
    }

    fn work(&self, training: bool) -> ChannelWork {
        let frame = &self.frame;
        ChannelWork {
            runs: frame.states,
            y: self.y,
            active: self.active.output,
            inverse: self.inverse,
            weights: frame.weights,
            biases: self.biases,
            constants: self.constants,
            shares: self.shares,
            parts: self.share_parts,
            weights_run: frame.weights_run,
            mask: Mask::of(self.program.channels[0].dropout, training),
            rows: frame.nodes,
            hidden: self.program.hidden.stride() as u32,
            channels: self.program.channels.len() as u32,
            norm: u32::from(self.program.norm),
            per_block: rows_of_a_part(frame.nodes),
            pad: 0,
        }
    }
}

/// Where the gradients of the parameters lie in parts.
fn sites(program: &BankProgram<f32>) -> Sites {
    let rows = program.nodes as u32;
    let mut sites = Sites::default();
    for channel in &program.channels {
        sites.add(&channel.weight, channel::weight_parts(channel, program.hidden, rows), 1.0);
        sites.add(&channel.bias, bias_parts(rows), channel.constant as f32);
        channel.window.iter().for_each(|window| sites.add(window, 1, 1.0));
    }
    sites.add(&program.mixing, 1, 1.0);
    sites.add(&program.readout, matrix_parts(rows), 1.0);
    sites.add(&program.finish.bias, bias_parts(rows), 1.0);
    program.second.iter().for_each(|stage| sites.add_stage(stage, rows));
    sites
}
