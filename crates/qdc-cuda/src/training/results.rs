//! What came of the runs of a batch.

use std::ops::ControlFlow;
use std::time::Instant;

use cudarc::driver::CudaStream;
use qdc_nn::Batch;
use qdc_nn::bank::best_start;
use qdc_nn::training::{Scores, Step, Trained};

use super::{Member, OnEnd, Places};
use crate::room::read;
use crate::state::Run;
use crate::{Device, Error};

/// The results so far: of each run those of its starts.
pub(super) struct Results<'a> {
    starts: Vec<Vec<Option<Trained<f32>>>>,
    runs: Vec<Option<Trained<f32>>>,
    on_end: OnEnd<'a>,
}

impl<'a> Results<'a> {
    pub(super) fn new(runs: usize, starts: usize, on_end: OnEnd<'a>) -> Self {
        Self { starts: vec![vec![None; starts]; runs], runs: vec![None; runs], on_end }
    }

    /// Takes the result of a member. A run whose starts have all ended is told of; says whether to go on.
    pub(super) fn add(&mut self, member: &Member<'_>, trained: Trained<f32>) -> ControlFlow<()> {
        let starts = &mut self.starts[member.place];
        starts[member.start] = Some(trained);
        if starts.iter().any(Option::is_none) {
            return ControlFlow::Continue(());
        }
        let best = best_start(starts.drain(..).flatten().collect());
        let verdict = best.as_ref().map_or(ControlFlow::Continue(()), |best| (self.on_end)(&best.scores));
        self.runs[member.place] = best;
        verdict
    }

    /// The results in the order of the runs; none of runs that did not end.
    pub(super) fn into_runs(self) -> Vec<Option<Trained<f32>>> {
        self.runs
    }
}

/// The result of a training that has stopped, which has the number `at` on the device.
#[allow(clippy::too_many_arguments)] // each is one noun of the sentence
pub(super) fn finish(
    device: &Device,
    stream: &CudaStream,
    places: &Places<'_>,
    batch: &Batch<'_>,
    member: &Member<'_>,
    at: usize,
    run: &Run,
    begun: Instant,
) -> Result<Trained<f32>, Error> {
    let some = |step: u32| (step > 0).then_some(step as usize);
    let scores = Scores {
        split: member.run.number,
        seed: member.run.seed,
        train: run.train,
        validation: run.validation,
        validation_loss: some(run.best_step).map(|_| run.best_loss),
        test: run.test,
        steps: run.step as usize,
        best_step: run.best_step as usize,
        diverged_at: some(run.diverged_at),
        seconds: begun.elapsed().as_secs_f64(),
    };
    let length = places.network.frame().weights_run;
    let weights = match some(run.best_step) {
        Some(_) if batch.keep.weights => {
            Some(read::<f32>(stream, places.best + 4 * at as u64 * length, length as usize)?)
        }
        _ => None,
    };
    let mut curve = Vec::new();
    if batch.keep.curve {
        let place = places.curve + 8 * 5 * (at * batch.schedule.max_steps) as u64;
        let kept = run.step - u32::from(run.diverged_at > 0); // a step that diverges is not drawn
        let numbers = read::<f64>(stream, place, 5 * kept as usize)?;
        let step = |(at, n): (usize, &[f64])| Step {
            step: at + 1,
            train_loss: n[0],
            validation_loss: n[1],
            train: n[2],
            validation: n[3],
            test: n[4],
        };
        curve = numbers.chunks_exact(5).enumerate().map(step).collect();
    }
    Ok(Trained { device: device.name().into(), scores, weights, curve })
}
