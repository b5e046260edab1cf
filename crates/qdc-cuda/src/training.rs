//! Training a batch of runs: all of a step on the device, and no traffic until some steps are done.

mod places;
mod results;

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use cudarc::driver::CudaGraph;
use cudarc::driver::CudaStream;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use qdc_core::Watch;
use qdc_nn::random::derive;
use qdc_nn::training::{Schedule, Scores, Trained, check_split, start_seed};
use qdc_nn::{Batch, BatchRun, Criterion, Group, Trainer};

use crate::error::while_doing;
use crate::launch::Launch;
use crate::network::{Description, Host};
use crate::room::{Allocation, Room, read};
use crate::state::{GROUPS, Run};
use crate::{Device, Error};
pub(crate) use places::{Places, planned};
use results::{Results, finish};

/// Steps between two looks at the runs.
const STEPS: usize = 16;
/// The share of the free memory that a batch may take.
const SHARE: f64 = 0.9;
/// On the device a dense product does about this many multiplications in the time a sparse one does one
/// (bench/gpu/RESULTS.md).
const DENSE_ADVANTAGE: f64 = 8.0;

/// Hears of every run as it ends.
type OnEnd<'a> = &'a (dyn Fn(&Scores) -> ControlFlow<()> + Sync);

/// One training of a batch: a run from one of the starts of its network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) run: BatchRun<'a>,
    /// Which of the batch's runs it is.
    pub(crate) place: usize,
    pub(crate) start: usize,
}

/// The trainings of a batch: every run from every start.
pub(crate) fn members<'a>(batch: &Batch<'a>, starts: usize) -> Vec<Member<'a>> {
    let numbered = batch.runs.iter().enumerate();
    numbered.flat_map(|(place, &run)| (0..starts).map(move |start| Member { run, place, start })).collect()
}

impl Trainer for Device {
    fn device(&self) -> &str {
        self.name()
    }

    fn dense_advantage(&self) -> f64 {
        DENSE_ADVANTAGE
    }

    /// Trains the runs together, in several batches where the device's memory asks for it.
    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, qdc_nn::Error> {
        for run in batch.runs {
            let (classes, metric) = (batch.trainee.classes(), batch.schedule.metric);
            check_split(run.split, run.number, batch.labels, classes, metric)?;
        }
        Ok(train(self, batch, watch, on_end)?)
    }
}

fn train(
    device: &Device,
    batch: &Batch<'_>,
    watch: &Watch,
    on_end: OnEnd<'_>,
) -> Result<Vec<Option<Trained<f32>>>, Error> {
    let mut host = Host::new(batch.trainee)?;
    let description = host.describe()?;
    let members = members(batch, host.starts());
    let mut results = Results::new(batch.runs.len(), host.starts(), on_end);
    let mut rest = members.as_slice();
    while !rest.is_empty() {
        let (count, verdict) =
            train_together(device, batch, &description, &mut host, rest, watch, &mut results)?;
        if verdict.is_break() {
            break;
        }
        rest = &rest[count..];
    }
    Ok(results.into_runs())
}

/// How many of these trainings fit the device's memory at once.
fn members_that_fit(
    device: &Device,
    batch: &Batch<'_>,
    description: &Description,
    members: &[Member<'_>],
) -> Result<usize, Error> {
    let one = planned(device, batch, description, &members[..1])?;
    let (free, others) = (device.free_memory()?, members.len() as u64 - 1);
    let room = (free as f64 * SHARE) as u64;
    if one > room {
        return Err(Error::Memory { needed: one, free: room });
    }
    if others == 0 {
        return Ok(1);
    }
    let each = (planned(device, batch, description, members)? - one).div_ceil(others).max(1);
    Ok((1 + (room - one) / each).min(members.len() as u64) as usize)
}

/// Trains as many of the first members as fit the device together; says how many, and whether the caller wants
/// no more.
fn train_together(
    device: &Device,
    batch: &Batch<'_>,
    description: &Description,
    host: &mut Host<'_>,
    members: &[Member<'_>],
    watch: &Watch,
    results: &mut Results<'_>,
) -> Result<(usize, ControlFlow<()>), Error> {
    let begun = Instant::now();
    let stream = device.stream()?;
    let planning = device.planning.lock().unwrap_or_else(PoisonError::into_inner);
    let count = members_that_fit(device, batch, description, members)?;
    let members = &members[..count];
    let allocation = Allocation::new(device, &stream, planned(device, batch, description, members)?)?;
    drop(planning);
    let mut room = Room::of(&allocation);
    let places = Places::new(device, batch, description, members, &mut room)?;
    places.start(&allocation, host, batch.schedule, members)?;
    places.network.prologue().iter().try_for_each(|launch| launch.enqueue(&stream))?;
    let graph = capture(&stream, &places.step(batch, description))?;
    let mut ended = vec![false; count];
    let phase = watch.phase(&format!("{count} runs"), batch.schedule.max_steps as u64);
    let mut steps = 0;
    while steps < batch.schedule.max_steps && ended.contains(&false) {
        let next = STEPS.min(batch.schedule.max_steps - steps);
        for _ in 0..next {
            graph.launch().map_err(while_doing("training"))?;
        }
        steps += next;
        for (at, run) in read::<Run>(&stream, places.network.frame().states, count)?.iter().enumerate() {
            if !ended[at] && run.stopped != 0 {
                ended[at] = true;
                let trained = finish(device, &stream, &places, batch, &members[at], at, run, begun)?;
                if results.add(&members[at], trained).is_break() {
                    return Ok((count, ControlFlow::Break(())));
                }
            }
        }
        phase.advance(next as u64).map_err(qdc_nn::Error::from)?;
    }
    Ok((count, ControlFlow::Continue(())))
}

/// A run before its first step.
pub(crate) fn begin(run: &BatchRun<'_>, schedule: &Schedule, groups: &[Group]) -> Run {
    let sizes = [run.split.train(), run.split.validation(), run.split.test()].map(|set| set.len() as u32);
    let (mut rates, mut decays) = ([0.0; GROUPS], [0.0; GROUPS]);
    for (at, group) in groups.iter().enumerate() {
        (rates[at], decays[at]) = (group.learning_rate, group.weight_decay);
    }
    Run {
        seed: derive(run.seed, run.number as u64), // as on the CPU
        rates,
        decays,
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

/// The weights of a member as they start, and its state.
pub(crate) fn started(host: &mut Host<'_>, member: &Member<'_>, schedule: &Schedule) -> Run {
    host.restart(member.start, start_seed(member.run.seed, member.run.number));
    let groups = host.groups(schedule.learning_rate, schedule.weight_decay);
    begin(&member.run, schedule, &groups)
}
