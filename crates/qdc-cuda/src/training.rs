//! Training a batch of runs: all of a step on the device, and no traffic until some steps are done.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaStream};
use qdc_core::{Metric, Watch};
use qdc_nn::random::derive;
use qdc_nn::training::{Schedule, Scores, Step, Trained, check_split, start_seed};
use qdc_nn::{Batch, BatchRun, Criterion, Learner, Network, Program, Trainer};

use crate::error::while_doing;
use crate::launch::Launch;
use crate::network::DeviceNetwork;
use crate::room::{Allocation, Room, read};
use crate::state::{self, Address, Judge, Loss, Run};
use crate::{Device, Error};

/// Steps between two looks at the runs.
const STEPS: usize = 16;
/// Vertices of a block of the loss.
const BLOCK: u32 = 256;
/// The share of the free memory that a batch may take.
const SHARE: f64 = 0.9;

/// What came of the runs of a batch, in their order.
type Results = Vec<Option<Trained<f32>>>;

impl Trainer for Device {
    fn device(&self) -> &str {
        self.name()
    }

    /// Trains the runs together, in several batches where the device's memory asks for it. Scores are
    /// accuracies: other metrics are for the CPU.
    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, qdc_nn::Error> {
        for run in batch.runs {
            let (classes, metric) = (batch.architecture.classes, batch.schedule.metric);
            check_split(run.split, run.number, batch.labels, classes, metric)?;
        }
        Ok(train(self, batch, watch, on_end)?)
    }
}

fn train(
    device: &Device,
    batch: &Batch<'_>,
    watch: &Watch,
    on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
) -> Result<Results, Error> {
    if batch.schedule.metric != Metric::Accuracy {
        return Err(Error::Metric { metric: batch.schedule.metric });
    }
    let mut network = Network::new(batch.architecture, batch.inputs, 0)?;
    let program = network.program();
    let mut trained = Vec::with_capacity(batch.runs.len());
    while trained.len() < batch.runs.len() {
        let rest = Batch { runs: &batch.runs[trained.len()..], ..*batch };
        let (results, stopped) = train_together(device, &rest, &program, &mut network, watch, on_end)?;
        trained.extend(results);
        if stopped {
            break;
        }
    }
    trained.resize(batch.runs.len(), None);
    Ok(trained)
}

/// Bytes of device memory that `runs` runs of a batch take together.
pub(crate) fn planned(
    device: &Device,
    batch: &Batch<'_>,
    program: &Program<f32>,
    runs: usize,
) -> Result<u64, Error> {
    let mut room = Room::dry();
    Places::new(device, batch, program, runs as u32, &mut room)?;
    Ok(room.bytes())
}

/// How many runs of a batch fit the device's memory at once.
fn runs_that_fit(device: &Device, batch: &Batch<'_>, program: &Program<f32>) -> Result<usize, Error> {
    let (one, two) = (planned(device, batch, program, 1)?, planned(device, batch, program, 2)?);
    let (free, each) = (device.free_memory()?, (two - one).max(1));
    let room = (free as f64 * SHARE) as u64;
    if one > room {
        return Err(Error::Memory { needed: one, free: room });
    }
    Ok((1 + (room - one) / each).min(batch.runs.len().max(1) as u64) as usize)
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
    best: Address,
    curve: Address,
}

impl<'a> Places<'a> {
    pub(crate) fn new(
        device: &'a Device,
        batch: &Batch<'_>,
        program: &'a Program<f32>,
        runs: u32,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let network = DeviceNetwork::new(device, program, runs, room)?;
        let (count, nodes) = (u64::from(runs), program.nodes as u64);
        let (weights, blocks) = (count * program.weights as u64, count * nodes.div_ceil(u64::from(BLOCK)));
        let steps = batch.schedule.max_steps as u64;
        let sites = network.sites.clone();
        let vertex = |row: usize| program.order.as_ref().map_or(row, |order| order[row] as usize);
        Ok(Self {
            first_moments: room.reserve::<f32>(weights),
            second_moments: room.reserve::<f32>(weights),
            sites: room.upload(sites.len() as u64, || sites)?,
            corrections: room.upload(2 * steps, || corrections(batch.schedule.max_steps))?,
            labels: room
                .upload(nodes, || (0..program.nodes).map(|row| batch.labels[vertex(row)]).collect())?,
            sets: room.upload(count * nodes, || sets(batch, program.nodes, vertex))?,
            train_losses: room.reserve::<f64>(blocks),
            losses: room.reserve::<f64>(blocks),
            right: room.reserve::<u32>(3 * blocks),
            best: if batch.keep.weights { room.reserve::<f32>(weights) } else { 0 },
            curve: if batch.keep.curve { room.reserve::<f64>(5 * count * steps) } else { 0 },
            network,
        })
    }

    /// The kernels of one step.
    pub(crate) fn step(&self, batch: &Batch<'_>, program: &Program<f32>) -> Vec<Launch> {
        let (network, mut launches) = (&self.network, Vec::new());
        let runs = network.states;
        let (logits, d_logits, logits_run) = network.logits();
        let nodes = program.nodes as u32;
        let blocks = nodes.div_ceil(BLOCK);
        let loss = Loss {
            runs,
            logits,
            d_logits,
            labels: self.labels,
            sets: self.sets,
            losses: self.train_losses,
            right: self.right,
            logits_run,
            nodes,
            classes: program.classes.columns() as u32,
            stride: program.classes.stride() as u32,
            blocks,
        };
        network.forward(true, &mut launches);
        launches.push(network.flat("loss", nodes, loss));
        network.backward(&mut launches);
        let length = program.weights as u32;
        let adam = state::Adam {
            runs,
            weights: network.weights,
            first: self.first_moments,
            second: self.second_moments,
            parts: network.parts,
            sites: self.sites,
            corrections: self.corrections,
            parts_run: network.parts_run,
            length,
            count: network.sites.len() as u32,
        };
        launches.push(network.flat("adam", length, adam));
        network.forward(false, &mut launches);
        launches.push(network.flat("loss", nodes, Loss { d_logits: 0, losses: self.losses, ..loss }));
        let judge = Judge {
            runs,
            train_losses: self.train_losses,
            losses: self.losses,
            right: self.right,
            curve: self.curve,
            blocks,
            curve_steps: batch.schedule.max_steps as u32,
        };
        launches.push(network.launch("judge", (batch.runs.len() as u32, 1, 1), (32, 1, 1), 0, judge));
        if self.best != 0 {
            let keep = state::Keep { runs, weights: network.weights, best: self.best, length, pad: 0 };
            launches.push(network.flat("keep", length, keep));
        }
        launches
    }
}

/// 1 - b1^t and sqrt(1 - b2^t) for t = 1, 2...
fn corrections(steps: usize) -> Vec<f64> {
    let correction = |t: i32| [1.0 - 0.9f64.powi(t), (1.0 - 0.999f64.powi(t)).sqrt()];
    (1..=steps as i32).flat_map(correction).collect()
}

/// For every run and row, a bit for each set the row's vertex is in.
fn sets(batch: &Batch<'_>, nodes: usize, vertex: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut rows = vec![0; nodes];
    (0..nodes).for_each(|row| rows[vertex(row)] = row);
    let mut sets = vec![0; batch.runs.len() * nodes];
    for (run, sets) in batch.runs.iter().zip(sets.chunks_exact_mut(nodes)) {
        for (bit, set) in [run.split.train(), run.split.validation(), run.split.test()].iter().enumerate() {
            set.iter().for_each(|&vertex| sets[rows[vertex as usize]] |= 1 << bit);
        }
    }
    sets
}

/// Trains as many of the first runs as fit the device together; says whether `on_end` broke.
fn train_together(
    device: &Device,
    batch: &Batch<'_>,
    program: &Program<f32>,
    network: &mut Network<f32>,
    watch: &Watch,
    on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
) -> Result<(Results, bool), Error> {
    let begun = Instant::now();
    let stream = device.stream()?;
    let planning = device.planning.lock().unwrap_or_else(PoisonError::into_inner);
    let count = runs_that_fit(device, batch, program)?;
    let batch = &Batch { runs: &batch.runs[..count], ..*batch };
    let allocation = Allocation::new(device, &stream, planned(device, batch, program, count)?)?;
    drop(planning);
    let mut room = Room::of(&allocation);
    let places = Places::new(device, batch, program, count as u32, &mut room)?;
    let states = places.network.states;
    allocation.write(states, &batch.runs.iter().map(|run| begin(run, batch.schedule)).collect::<Vec<_>>())?;
    for (at, run) in batch.runs.iter().enumerate() {
        network.restart(start_seed(run.seed, run.number));
        let place = places.network.weights + 4 * (at * program.weights) as u64;
        allocation.write(place, network.weights())?;
    }
    let graph = capture(&stream, &places.step(batch, program))?;
    let mut trained: Results = vec![None; count];
    let phase = watch.phase(&format!("{count} runs"), batch.schedule.max_steps as u64);
    let mut steps = 0;
    while steps < batch.schedule.max_steps && trained.iter().any(Option::is_none) {
        let next = STEPS.min(batch.schedule.max_steps - steps);
        for _ in 0..next {
            graph.launch().map_err(while_doing("training"))?;
        }
        steps += next;
        for (at, run) in read::<Run>(&stream, states, count)?.iter().enumerate() {
            if trained[at].is_none() && run.stopped != 0 {
                let result = finish(&stream, &places, batch, program, at, run, begun)?;
                let verdict = on_end(&result.scores);
                trained[at] = Some(result);
                if verdict.is_break() {
                    return Ok((trained, true));
                }
            }
        }
        phase.advance(next as u64).map_err(qdc_nn::Error::from)?;
    }
    Ok((trained, false))
}

/// The seed of a run's random stream, as on the CPU.
fn stream_of(run: &BatchRun<'_>) -> u64 {
    derive(run.seed, run.number as u64)
}

/// A run before its first step.
pub(crate) fn begin(run: &BatchRun<'_>, schedule: &Schedule) -> Run {
    let sizes = [run.split.train(), run.split.validation(), run.split.test()].map(|set| set.len() as u32);
    Run {
        seed: stream_of(run),
        learning_rate: schedule.learning_rate,
        weight_decay: schedule.weight_decay,
        patience: schedule.stopping.patience as u64,
        warm_up: schedule.stopping.warm_up as u64,
        max_steps: schedule.max_steps as u32,
        stopped: u32::from(schedule.max_steps == 0),
        sizes,
        stops_by_loss: u32::from(schedule.stopping.criterion == Criterion::Loss),
        ..Run::default()
    }
}

/// Records kernels as a graph, which is launched as one.
fn capture(stream: &Arc<CudaStream>, launches: &[Launch]) -> Result<CudaGraph, Error> {
    let failed = while_doing("recording a step");
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).map_err(&failed)?;
    let recorded = launches.iter().try_for_each(|launch| launch.enqueue(stream));
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags).map_err(&failed)?;
    recorded?;
    graph.ok_or(Error::Driver { doing: "recording a step", problem: "it gave no graph".into() })
}

/// The result of a run that has stopped.
fn finish(
    stream: &CudaStream,
    places: &Places<'_>,
    batch: &Batch<'_>,
    program: &Program<f32>,
    at: usize,
    run: &Run,
    begun: Instant,
) -> Result<Trained<f32>, Error> {
    let some = |step: u32| (step > 0).then_some(step as usize);
    let scores = Scores {
        split: batch.runs[at].number,
        seed: batch.runs[at].seed,
        train: run.train,
        validation: run.validation,
        validation_loss: some(run.best_step).map(|_| run.best_loss),
        test: run.test,
        steps: run.step as usize,
        best_step: run.best_step as usize,
        diverged_at: some(run.diverged_at),
        seconds: begun.elapsed().as_secs_f64(),
    };
    let weights = match some(run.best_step) {
        Some(_) if batch.keep.weights => {
            let place = places.best + 4 * (at * program.weights) as u64;
            Some(read::<f32>(stream, place, program.weights)?)
        }
        _ => None,
    };
    let mut curve = Vec::new();
    if batch.keep.curve {
        let place = places.curve + 8 * 5 * (at * batch.schedule.max_steps) as u64;
        let kept = run.step - u32::from(run.diverged_at > 0); // a step that diverges is not drawn
        let numbers = read::<f64>(stream, place, 5 * kept as usize)?;
        curve = numbers
            .chunks_exact(5)
            .enumerate()
            .map(|(at, n)| Step {
                step: at + 1,
                train_loss: n[0],
                validation_loss: n[1],
                train: n[2],
                validation: n[3],
                test: n[4],
            })
            .collect();
    }
    Ok(Trained { scores, weights, curve })
}
