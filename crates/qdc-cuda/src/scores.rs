//! Scores on the device by another metric than accuracy, which the loss counts by the way.

#![allow(unsafe_code)] // the promise of `Argument`

use qdc_core::Metric;
use qdc_nn::{Batch, BatchRun};

use crate::Error;
use crate::frame::Frame;
use crate::launch::{Argument, Launch};
use crate::room::Room;
use crate::state::{Address, Loss};

/// Threads of a block of `device/scores.cu`.
const BLOCK: u32 = 256;

/// `macro_f1` and `auc_*`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Score {
    pub(crate) runs: Address,
    pub(crate) logits: Address,
    pub(crate) labels: Address,
    pub(crate) sets: Address,
    pub(crate) members: Address,
    pub(crate) begins: Address,
    pub(crate) keys: Address,
    pub(crate) pairs: Address,
    pub(crate) scores: Address,
    pub(crate) logits_run: u64,
    pub(crate) nodes: u32,
    pub(crate) classes: u32,
    pub(crate) stride: u32,
    pub(crate) members_run: u32,
    pub(crate) rankings: u32,
    pub(crate) blocks: u32,
}

// SAFETY: a `repr(C)` structure of numbers, field for field that of the kernels.
unsafe impl Argument for Score {}

/// Places for the scores of all runs by a metric.
pub(crate) struct Scoring {
    metric: Metric,
    score: Score,
}

impl Scoring {
    /// Places for the scores of `runs`, the runs of a batch on the device in their order; `row` gives the row
    /// of a vertex.
    pub(crate) fn new(
        batch: &Batch<'_>,
        runs: &[BatchRun<'_>],
        row: impl Fn(u32) -> u32,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let (metric, classes) = (batch.schedule.metric, batch.trainee.classes());
        let mut score = Score::default();
        if metric == Metric::Accuracy {
            return Ok(Self { metric, score });
        }
        let count = runs.len() as u64;
        score.scores = room.reserve::<f64>(3 * count);
        if metric == Metric::Auc {
            // Sizes are those of the largest run, so that room grows evenly with the runs.
            let sizes = batch.runs.iter().map(|run| sets(run).iter().map(|set| set.len()).sum::<usize>());
            let largest = batch.runs.iter().flat_map(|run| sets(run).map(<[u32]>::len)).max();
            score.members_run = sizes.max().unwrap_or(0) as u32;
            score.rankings = if classes == 2 { 1 } else { classes as u32 };
            score.blocks = (largest.unwrap_or(0) as u32).div_ceil(BLOCK);
            let (members, rankings) = (u64::from(score.members_run), u64::from(score.rankings));
            let made = || Ranked::of(runs, batch.labels, classes, score.members_run as usize, &row);
            score.members = room.upload(count * members, || made().members)?;
            score.begins = room.upload(count * 3 * (classes as u64 + 1), || made().begins)?;
            score.keys = room.reserve::<f64>(count * rankings * members);
            score.pairs = room.reserve::<u64>(count * 3 * rankings * u64::from(score.blocks));
        }
        Ok(Self { metric, score })
    }

    /// Where the scores of every run and set lie; 0 where accuracy counts.
    pub(crate) fn scores(&self) -> Address {
        self.score.scores
    }

    /// The kernels that score the logits that `loss` looks at.
    pub(crate) fn launches(&self, frame: &Frame<'_>, loss: &Loss, launches: &mut Vec<Launch>) {
        let score = Score {
            runs: frame.states,
            logits: loss.logits,
            labels: loss.labels,
            sets: loss.sets,
            logits_run: loss.logits_run,
            nodes: loss.nodes,
            classes: loss.classes,
            stride: loss.stride,
            ..self.score
        };
        let runs = frame.runs;
        match self.metric {
            Metric::Accuracy => {}
            Metric::F1 => {
                launches.push(frame.launch(
                    "macro_f1",
                    (3, 1, runs),
                    (BLOCK, 1, 1),
                    12 * score.classes,
                    score,
                ));
            }
            Metric::Auc => {
                launches.push(frame.flat("auc_keys", score.members_run, score));
                let grid = (score.blocks, 3 * score.rankings, runs);
                launches.push(frame.launch("auc_pairs", grid, (BLOCK, 1, 1), 0, score));
                launches.push(frame.launch("auc_score", (runs, 1, 1), (32, 1, 1), 0, score));
            }
        }
    }
}

fn sets<'a>(run: &BatchRun<'a>) -> [&'a [u32]; 3] {
    [run.split.train(), run.split.validation(), run.split.test()]
}

/// The rows of the sets of every run, those of a class together.
struct Ranked {
    members: Vec<u32>,
    /// For each run and set where each class begins, and where the last ends.
    begins: Vec<u32>,
}

impl Ranked {
    fn of(
        runs: &[BatchRun<'_>],
        labels: &[u32],
        classes: usize,
        capacity: usize,
        row: &impl Fn(u32) -> u32,
    ) -> Self {
        let (mut members, mut begins) = (Vec::new(), Vec::new());
        for (number, run) in runs.iter().enumerate() {
            let base = number * capacity;
            for set in sets(run) {
                for class in 0..classes as u32 {
                    begins.push((members.len() - base) as u32);
                    let own = set.iter().filter(|&&vertex| labels[vertex as usize] == class);
                    members.extend(own.map(|&vertex| row(vertex)));
                }
                begins.push((members.len() - base) as u32);
            }
            members.resize(base + capacity, 0);
        }
        Self { members, begins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdc_core::Split;

    #[test]
    fn members_stand_by_set_and_class_and_every_run_begins_at_its_place() {
        let split = Split::new(6, vec![0, 1, 2], vec![3, 4], vec![5]).unwrap();
        let run = BatchRun { split: &split, number: 0, seed: 0 };
        let labels = [1, 0, 1, 1, 0, 0];
        let ranked = Ranked::of(&[run, run], &labels, 2, 7, &|vertex| vertex + 10);
        assert_eq!(ranked.members, [11, 10, 12, 14, 13, 15, 0, 11, 10, 12, 14, 13, 15, 0]);
        assert_eq!(ranked.begins[..9], [0, 1, 3, 3, 4, 5, 5, 6, 6]);
        assert_eq!(ranked.begins[..9], ranked.begins[9..]);
    }
}
