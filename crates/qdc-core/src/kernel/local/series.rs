//! A row of sum_k c_k T_k(L) by a truncated recurrence, with a proved bound on what is left out.
//!
//! v_0 = e_i, v_1 = L v_0, v_(k+1) = 2 L v_k - v_(k-1), and the row is sum_k c_k v_k. What a vertex holds back in
//! step k, a part h_k of v_k that is not passed on, is missing in the row as p_(k+1)(L) f_k L h_k, where f_0 = 1,
//! f_k = 2 and p_k(x) = sum over m >= k of c_m U_(m-k)(x); so the error of an entry is at most
//!
//!   sum_k sup |f_k x p_(k+1)(x)| |h_k|_2.
//!
//! Signs are chosen so that v_(k+1) grows out of v_(k-1) in place: with v_k = s_k w_k, s = + + - - and so on,
//! w_(k+1) = (s_k s_(k+1)) f_k L w_k + w_(k-1). What arrives in step k then stays for all later steps of its
//! parity and adds g_k = s_k c_k + s_(k+2) c_(k+2) + ... of itself to the row at once. So a step looks only at
//! vertices at which something arrived, or that passed on two steps before.
//!
//! The entries that are kept also get their neighbours' c_(k+1) f_k L h_k, the first term of what is missing,
//! for the cost of one row of L each. That makes their error three times smaller.
//!
//! Reference for the suprema: H. Ehlich, K. Zeller, "Schwankung von Polynomen zwischen Gitterpunkten", 1964.

use std::f64::consts::PI;

use super::field::{Field, Links};
use super::{Cut, Tally};
use crate::chebyshev::Series;

/// The unit of rounding in single precision.
pub(super) const UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// One step of the recurrence.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// s_k s_(k+1) f_k.
    factor: f32,
    /// g_(k+1).
    gain: f32,
    /// What |v| / sqrt(entries of the row) must exceed to be passed on.
    cut: f32,
    /// sup |f_k x p_(k+1)(x)|.
    missing: f64,
    /// sup |f_k x (p_(k+1)(x) - c_(k+1))|.
    unsettled: f64,
    /// sup |p_(k+1)(x)|.
    later: f64,
}

/// The recurrence for a series and a cut.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// g_0.
    first: f32,
    /// The share of the cut that is left to hubs.
    hubs: f64,
}

impl Steps {
    /// Passes on what would change the row by more than about the `cut` in norm, for each link.
    pub(super) fn new(series: &Series, cut: Cut) -> Self {
        let c = series.coefficients();
        let last = c.len() - 1;
        let sign = |k: usize| if k & 2 == 0 { 1.0 } else { -1.0 };
        let factor = |k: usize| if k == 0 { 1.0 } else { 2.0 };
        let mut gains = vec![0.0; last + 3];
        for k in (0..=last).rev() {
            gains[k] = sign(k) * c[k] + gains[k + 2];
        }
        let mut largest = vec![[0f64; 3]; last];
        let points = 8 * (last + 1);
        for point in 0..points {
            let x = (PI * (point as f64 + 0.5) / points as f64).cos();
            let (mut next, mut after) = (0.0, 0.0);
            for k in (0..last).rev() {
                (next, after) = (c[k + 1] + 2.0 * x * next - after, next);
                let found = [factor(k) * x * next, factor(k) * x * (next - c[k + 1]), next];
                largest[k].iter_mut().zip(found).for_each(|(most, value)| *most = most.max(value.abs()));
            }
        }
        // Between the points a polynomial of degree d is larger by at most 1 / cos(pi d / 2 points).
        let between = 1.0 / (PI * last as f64 / (2 * points) as f64).cos();
        let step = |k: usize| {
            let [missing, unsettled, later] = largest[k].map(|most| between * most);
            Step {
                factor: (factor(k) * sign(k) * sign(k + 1)) as f32,
                gain: gains[k + 1] as f32,
                cut: (cut.all / missing) as f32, // infinite where nothing can be missing
                missing,
                unsettled,
                later,
            }
        };
        Self { steps: (0..last).map(step).collect(), first: gains[0] as f32, hubs: cut.hubs }
    }

    /// Makes the row of the vertex at `origin`, left in the field, and says how wrong it can be.
    pub(super) fn row(
        &self,
        links: &Links,
        origin: u32,
        field: &mut Field,
        pushers: &mut [Vec<u32>; 2],
    ) -> Tally {
        let care = links.care(origin, 1, self.hubs);
        field.start(origin, self.first);
        pushers.iter_mut().for_each(Vec::clear);
        let mut tally = Tally::default();
        // Squares of the norms of what is held and of what was passed on, for even and odd steps.
        let (mut held, mut passed) = ([0f64; 2], [0f64; 2]);
        let (mut gain, mut size) = (0.0, f64::from(self.first.abs()));
        for (k, step) in self.steps.iter().enumerate() {
            let (now, other) = (k & 1, 1 - (k & 1));
            let credit = step.factor * step.gain;
            field.look_also_at(&pushers[now]);
            let (mut change, mut moved) = (0.0, 0.0);
            field.look(&mut pushers[now], |cell| {
                let (before, arrived) = cell.collect(now);
                cell.sum += gain * arrived;
                let value = cell.value[now];
                let passes_on = value.abs() * cell.reach > care * step.cut;
                let old = if cell.hold(now, !passes_on) { before } else { 0.0 };
                let new = if passes_on { 0.0 } else { value };
                cell.owed += (new - old) * credit;
                change += f64::from(new).powi(2) - f64::from(old).powi(2);
                moved += f64::from(value).powi(2) - f64::from(new).powi(2);
                passes_on
            });
            held[now] = (held[now] + change).max(0.0);
            passed[now] = moved;
            field.spread(links, &pushers[now], |cell| step.factor * cell.value[now]);
            gain = step.gain;
            let held_norm = held[now].sqrt();
            tally.missing += step.missing * held_norm;
            tally.unsettled += step.unsettled * held_norm;
            // A compensated sum of m terms is off by 2 u (1 + m u) of the sum of magnitudes, and the terms by 4 u; a
            // value and an entry that miss each other's rounding count twice.
            let most = links.longest().min(pushers[now].len()) as f64;
            let before = (held[other] + passed[other]).sqrt();
            tally.rounding += step.later * (10.0 + 2.0 * most * UNIT) * UNIT * (2.0 * moved.sqrt() + before);
            size += f64::from(credit.abs()) * (moved.sqrt() + 2.0 * held_norm);
        }
        field.look(&mut pushers[0], |cell| {
            cell.sum += gain * cell.arrived;
            false
        });
        tally.rounding += (self.steps.len() as f64 + 6.0) * UNIT * size;
        tally.work = field.work;
        tally
    }
}
