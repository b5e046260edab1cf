//! Drawing at random, with the draws Optuna's `RandomSampler` makes.

use super::Streams;
use crate::{Distribution, RandomState, Space};

/// A point drawn from every distribution, parameter by parameter.
pub(super) fn suggest(space: &Space, streams: &mut Streams) -> Vec<f64> {
    space.iter().map(|(_, distribution)| draw(distribution, &mut streams.startup)).collect()
}

/// The only value of a distribution that has one (the least one of others).
pub(super) fn single(distribution: &Distribution) -> f64 {
    match distribution {
        Distribution::Categorical { .. } => 0.0,
        Distribution::Float { low, .. } => *low,
        Distribution::Integer { low, .. } => *low as f64,
    }
}

fn draw(distribution: &Distribution, stream: &mut RandomState) -> f64 {
    if distribution.is_single() {
        return single(distribution);
    }
    match distribution {
        Distribution::Categorical { choices } => {
            let draws = stream.doubles(choices.len());
            let largest = (1..draws.len()).fold(0, |best, i| if draws[i] > draws[best] { i } else { best });
            largest as f64
        }
        Distribution::Float { low, high, log: true, .. } => {
            between(low.ln(), high.ln(), stream).exp().clamp(*low, high.next_down())
        }
        Distribution::Float { low, high, step: Some(step), .. } => {
            rounded(between(low - step / 2.0, high + step / 2.0, stream), *low, *high, *step)
        }
        Distribution::Float { low, high, .. } => between(*low, *high, stream).min(high.next_down()),
        Distribution::Integer { low, high, log: true, .. } => {
            let (low, high) = (*low as f64, *high as f64);
            between((low - 0.5).ln(), (high + 0.5).ln(), stream).exp().round_ties_even().clamp(low, high)
        }
        Distribution::Integer { low, high, step, .. } => {
            let (low, high, step) = (*low as f64, *high as f64, *step as f64);
            rounded(between(low - step / 2.0, high + step / 2.0, stream), low, high, step)
        }
    }
}

fn between(low: f64, high: f64, stream: &mut RandomState) -> f64 {
    low + (high - low) * stream.next_double()
}

fn rounded(value: f64, low: f64, high: f64, step: f64) -> f64 {
    (((value - low) / step).round_ties_even() * step + low).clamp(low, high)
}
