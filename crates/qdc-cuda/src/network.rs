//! A network of either kind: what the host knows of it, and what of it is on the device.

use std::ops::Range;
use std::sync::Arc;

use qdc_nn::bank::{BankInputs, BankNetwork, BankProgram};
use qdc_nn::{Group, Learner, Network, Program, Trainee, Width};

use crate::bank::DeviceBank;
use crate::frame::{Frame, Place};
use crate::launch::Launch;
use crate::room::Room;
use crate::state::GROUPS;
use crate::towers::DeviceTowers;
use crate::{Device, Error};

/// A network as plain data.
pub(crate) struct Description {
    kind: Kind,
    /// Parameters that have rates and decays of their own.
    pub(crate) groups: Vec<Range<usize>>,
}

enum Kind {
    Towers(Program<f32>),
    Bank(BankProgram<f32>),
}

/// A network on the host, which starts the weights of every run.
pub(crate) enum Host<'a> {
    Towers(Box<Network<f32>>),
    Bank(Box<BankNetwork<f32>>, &'a [BankInputs<f32>]),
}

impl<'a> Host<'a> {
    pub(crate) fn new(trainee: Trainee<'a>) -> Result<Self, Error> {
        Ok(match trainee {
            Trainee::Towers { architecture, inputs } => {
                Self::Towers(Box::new(Network::new(architecture, inputs, 0)?))
            }
            Trainee::Bank { architecture, inputs } => {
                let first = inputs.first().ok_or_else(|| {
                    let problem = "a bank needs inputs to be trained on".to_owned();
                    qdc_nn::Error::Architecture { problem }
                })?;
                Self::Bank(Box::new(BankNetwork::new(architecture, first, 0)?), inputs)
            }
        })
    }

    /// From how many starts a run is trained.
    pub(crate) fn starts(&self) -> usize {
        match self {
            Self::Towers(_) => 1,
            Self::Bank(_, inputs) => inputs.len(),
        }
    }

    /// Starts the weights by a seed, from one of the starts.
    pub(crate) fn restart(&mut self, start: usize, seed: u64) {
        match self {
            Self::Towers(network) => network.restart(seed),
            Self::Bank(network, inputs) => network.restart(&inputs[start], seed),
        }
    }

    fn learner(&self) -> &dyn Learner<f32> {
        match self {
            Self::Towers(network) => &**network,
            Self::Bank(network, _) => &**network,
        }
    }

    /// The weights as they were started.
    pub(crate) fn weights(&self) -> &[f32] {
        self.learner().weights()
    }

    /// The groups of parameters, whose rates depend on the start.
    pub(crate) fn groups(&self, learning_rate: f64, weight_decay: f64) -> Vec<Group> {
        self.learner().groups(learning_rate, weight_decay)
    }

    /// The network as plain data.
    pub(crate) fn describe(&self) -> Result<Description, Error> {
        let groups: Vec<_> = self.groups(0.0, 0.0).into_iter().map(|group| group.range).collect();
        if groups.len() > GROUPS {
            let count = groups.len() as u64;
            return Err(Error::TooMany { what: "groups of parameters", count, most: GROUPS as u64 });
        }
        let kind = match self {
            Self::Towers(network) => Kind::Towers(network.program()),
            Self::Bank(network, _) => Kind::Bank(network.program()),
        };
        Ok(Description { kind, groups })
    }
}

impl Description {
    /// Number of vertices.
    pub(crate) fn nodes(&self) -> usize {
        match &self.kind {
            Kind::Towers(program) => program.nodes,
            Kind::Bank(program) => program.nodes,
        }
    }

    /// The columns of the logits.
    pub(crate) fn classes(&self) -> Width {
        match &self.kind {
            Kind::Towers(program) => program.classes,
            Kind::Bank(program) => program.classes,
        }
    }

    /// Numbers in the flat array of parameters.
    pub(crate) fn weights(&self) -> usize {
        match &self.kind {
            Kind::Towers(program) => program.weights,
            Kind::Bank(program) => program.weights,
        }
    }

    /// The vertex each row belongs to, where rows are stored in another order than theirs.
    pub(crate) fn order(&self) -> Option<&Arc<[u32]>> {
        match &self.kind {
            Kind::Towers(program) => program.order.as_ref(),
            Kind::Bank(_) => None,
        }
    }
}

/// A network on the device.
pub(crate) enum DeviceNetwork<'a> {
    Towers(DeviceTowers<'a>),
    Bank(DeviceBank<'a>),
}

impl<'a> DeviceNetwork<'a> {
    /// Places a network for `runs` runs.
    pub(crate) fn new(
        device: &'a Device,
        description: &'a Description,
        runs: u32,
        room: &mut Room,
    ) -> Result<Self, Error> {
        Ok(match &description.kind {
            Kind::Towers(program) => Self::Towers(DeviceTowers::new(device, program, runs, room)?),
            Kind::Bank(program) => Self::Bank(DeviceBank::new(device, program, runs, room)?),
        })
    }

    /// The runs and their weights.
    pub(crate) fn frame(&self) -> &Frame<'a> {
        match self {
            Self::Towers(network) => &network.frame,
            Self::Bank(network) => &network.frame,
        }
    }

    /// Where the logits and their gradient lie.
    pub(crate) fn logits(&self) -> Place {
        match self {
            Self::Towers(network) => network.logits(),
            Self::Bank(network) => network.logits(),
        }
    }

    /// The kernels before the first step.
    pub(crate) fn prologue(&self) -> Vec<Launch> {
        let mut launches = Vec::new();
        if let Self::Bank(network) = self {
            network.prologue(&mut launches);
        }
        launches
    }

    /// The kernels of a forward pass.
    pub(crate) fn forward(&self, training: bool, launches: &mut Vec<Launch>) {
        match self {
            Self::Towers(network) => network.forward(training, launches),
            Self::Bank(network) => network.forward(training, launches),
        }
    }

    /// The kernels of a backward pass, from the gradient of the logits to the parts of that of the parameters.
    pub(crate) fn backward(&self, launches: &mut Vec<Launch>) {
        match self {
            Self::Towers(network) => network.backward(launches),
            Self::Bank(network) => network.backward(launches),
        }
    }
}
