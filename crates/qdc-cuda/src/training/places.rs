//! The addresses of all that a batch needs, and the kernels of one step.

use qdc_nn::training::Schedule;
use qdc_nn::{Batch, BatchRun};

use super::{Member, started};
use crate::launch::Launch;
use crate::network::{Description, DeviceNetwork, Host};
use crate::room::{Allocation, Room};
use crate::scores::Scoring;
use crate::state::{self, Address, Judge, Loss, Site};
use crate::{Device, Error};

/// Vertices of a block of the loss.
const BLOCK: u32 = 256;

/// Bytes of device memory that some trainings take together.
pub(crate) fn planned(
    device: &Device,
    batch: &Batch<'_>,
    description: &Description,
    members: &[Member<'_>],
) -> Result<u64, Error> {
    let mut room = Room::dry();
    Places::new(device, batch, description, members, &mut room)?;
    Ok(room.bytes())
}

/// The addresses of all that a batch needs.
pub(crate) struct Places<'a> {
    pub(crate) network: DeviceNetwork<'a>,
    pub(crate) first_moments: Address,
    second_moments: Address,
    sites: Address,
    corrections: Address,
    labels: Address,
    sets: Address,
    train_losses: Address,
    losses: Address,
    right: Address,
    scoring: Scoring,
    pub(super) best: Address,
    pub(super) curve: Address,
}

impl<'a> Places<'a> {
    pub(crate) fn new(
        device: &'a Device,
        batch: &Batch<'_>,
        description: &'a Description,
        members: &[Member<'_>],
        room: &mut Room,
    ) -> Result<Self, Error> {
        let network = DeviceNetwork::new(device, description, members.len() as u32, room)?;
        let (count, nodes) = (members.len() as u64, description.nodes());
        let weights = count * description.weights() as u64;
        let blocks = count * (nodes as u64).div_ceil(u64::from(BLOCK));
        let steps = batch.schedule.max_steps as u64;
        let sites = sites(&network, description);
        let vertex = |row: usize| description.order().map_or(row, |order| order[row] as usize);
        let mut rows = vec![0; nodes];
        (0..nodes).for_each(|row| rows[vertex(row)] = row as u32);
        let runs: Vec<BatchRun<'_>> = members.iter().map(|member| member.run).collect();
        Ok(Self {
            first_moments: room.reserve::<f32>(weights),
            second_moments: room.reserve::<f32>(weights),
            sites: room.upload(sites.len() as u64, || sites)?,
            corrections: room.upload(2 * steps, || corrections(batch.schedule.max_steps))?,
            labels: room
                .upload(nodes as u64, || (0..nodes).map(|row| batch.labels[vertex(row)]).collect())?,
            sets: room.upload(count * nodes as u64, || sets(&runs, &rows))?,
            train_losses: room.reserve::<f64>(blocks),
            losses: room.reserve::<f64>(blocks),
            right: room.reserve::<u32>(3 * blocks),
            scoring: Scoring::new(batch, &runs, |vertex| rows[vertex as usize], room)?,
            best: if batch.keep.weights { room.reserve::<f32>(weights) } else { 0 },
            curve: if batch.keep.curve { room.reserve::<f64>(5 * count * steps) } else { 0 },
            network,
        })
    }

    /// Writes the states and weights that the trainings start from.
    pub(crate) fn start(
        &self,
        allocation: &Allocation,
        host: &mut Host<'_>,
        schedule: &Schedule,
        members: &[Member<'_>],
    ) -> Result<(), Error> {
        let frame = self.network.frame();
        let mut states = Vec::with_capacity(members.len());
        for (at, member) in members.iter().enumerate() {
            states.push(started(host, member, schedule));
            allocation.write(frame.weights + 4 * at as u64 * frame.weights_run, host.weights())?;
        }
        allocation.write(frame.states, &states)
    }

    /// The kernels of one step.
    pub(crate) fn step(&self, batch: &Batch<'_>, description: &Description) -> Vec<Launch> {
        let (network, frame, mut launches) = (&self.network, self.network.frame(), Vec::new());
        let (runs, logits) = (frame.states, network.logits());
        let (nodes, blocks) = (frame.nodes, frame.nodes.div_ceil(BLOCK));
        let loss = Loss {
            runs,
            logits: logits.output,
            d_logits: logits.gradient,
            labels: self.labels,
            sets: self.sets,
            losses: self.train_losses,
            right: self.right,
            logits_run: logits.run,
            nodes,
            classes: description.classes().columns() as u32,
            stride: logits.stride,
            blocks,
        };
        network.forward(true, &mut launches);
        launches.push(frame.flat("loss", nodes, loss));
        network.backward(&mut launches);
        let length = frame.weights_run as u32;
        let adam = state::Adam {
            runs,
            weights: frame.weights,
            first: self.first_moments,
            second: self.second_moments,
            parts: frame.parts,
            sites: self.sites,
            corrections: self.corrections,
            parts_run: frame.parts_run,
            length,
            count: frame.sites.len() as u32,
        };
        launches.push(frame.flat("adam", length, adam));
        network.forward(false, &mut launches);
        let loss = Loss { d_logits: 0, losses: self.losses, ..loss };
        launches.push(frame.flat("loss", nodes, loss));
        self.scoring.launches(frame, &loss, &mut launches);
        let judge = Judge {
            runs,
            train_losses: self.train_losses,
            losses: self.losses,
            right: self.right,
            scores: self.scoring.scores(),
            curve: self.curve,
            blocks,
            curve_steps: batch.schedule.max_steps as u32,
        };
        launches.push(frame.launch("judge", (frame.runs, 1, 1), (32, 1, 1), 0, judge));
        if self.best != 0 {
            let keep = state::Keep { runs, weights: frame.weights, best: self.best, length, pad: 0 };
            launches.push(frame.flat("keep", length, keep));
        }
        launches
    }
}

/// The sites of a network, each with the group its parameters belong to.
fn sites(network: &DeviceNetwork<'_>, description: &Description) -> Vec<Site> {
    let group = |site: &Site| {
        let holds = |group: &std::ops::Range<usize>| group.contains(&(site.begin as usize));
        description.groups.iter().position(holds).expect("every parameter is in a group") as u32
    };
    network.frame().sites.iter().map(|site| Site { group: group(site), ..*site }).collect()
}

/// 1 - b1^t and sqrt(1 - b2^t) for t = 1, 2...
fn corrections(steps: usize) -> Vec<f64> {
    let correction = |t: i32| [1.0 - 0.9f64.powi(t), (1.0 - 0.999f64.powi(t)).sqrt()];
    (1..=steps as i32).flat_map(correction).collect()
}

/// For every run and row, a bit for each set the row's vertex is in; `rows` gives the row of a vertex.
fn sets(runs: &[BatchRun<'_>], rows: &[u32]) -> Vec<u8> {
    let nodes = rows.len();
    let mut sets = vec![0; runs.len() * nodes];
    for (run, sets) in runs.iter().zip(sets.chunks_exact_mut(nodes)) {
        for (bit, set) in [run.split.train(), run.split.validation(), run.split.test()].iter().enumerate() {
            set.iter().for_each(|&vertex| sets[rows[vertex as usize] as usize] |= 1 << bit);
        }
    }
    sets
}
