//! The Parzen estimator: a density made of one kernel per observation and one for the prior.
//!
//! p(x) = sum_k w_k prod_axes kernel_k(x_axis). Kernels are normals truncated to the axis' range, with a
//! bandwidth from the gaps to the neighbouring observations; on steps, the normal's mass between half steps;
//! on categories, the observed choice plus a little of every other.

use std::collections::HashMap;

use super::gaussians::{subtract_half_squares, sum_of_exponentials};
use super::normal::{LOG_SQRT_TAU, log_mass, truncated_quantile};
use crate::{Distribution, RandomState};

/// Which Optuna to follow where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Optuna 3.6: the prior's centre counts as a neighbour; whole numbers in log space have densities.
    Published,
    /// Optuna 5: it does not; they have masses.
    Newest,
}

/// One parameter, in the space its kernels live in.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    kind: Kind,
    log: bool,
    low: f64,
    high: f64,
    /// Step, least and greatest value where values are rounded.
    rounding: Option<(f64, f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Category(usize),
    Density,
    Mass,
}

impl Axis {
    pub(super) fn new(distribution: &Distribution, rules: Rules) -> Self {
        let numeric = |low: f64, high: f64, log: bool, step: Option<f64>| {
            let half = step.unwrap_or(0.0) / 2.0;
            let ends = (low - half, high + half);
            let (from, to) = if log { (ends.0.ln(), ends.1.ln()) } else { ends };
            let mass = step.is_some() && !(log && rules == Rules::Published);
            Self {
                kind: if mass { Kind::Mass } else { Kind::Density },
                log,
                low: from,
                high: to,
                rounding: step.map(|step| (step, low, high)),
            }
        };
        match distribution {
            Distribution::Categorical { choices } => {
                Self { kind: Kind::Category(choices.len()), log: false, low: 0.0, high: 0.0, rounding: None }
            }
            Distribution::Float { low, high, log, step } => numeric(*low, *high, *log, *step),
            Distribution::Integer { low, high, log, step } => {
                numeric(*low as f64, *high as f64, *log, Some(*step as f64))
            }
        }
    }

    /// From a parameter's internal value to the space of kernels.
    fn place(&self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }

    /// Back, rounded to what the distribution contains.
    fn value(&self, place: f64) -> f64 {
        let value = if self.log { place.exp() } else { place };
        match self.rounding {
            None if self.log => value.clamp(self.low.exp(), self.high.exp()),
            None => value.clamp(self.low, self.high),
            Some((step, low, high)) => {
                (low + ((value - low) / step).round_ties_even() * step).clamp(low, high)
            }
        }
    }

    /// log of what divides a kernel so that it integrates to one over the range.
    fn log_normaliser(&self, mu: f64, sigma: f64) -> f64 {
        let mass = log_mass((self.low - mu) / sigma, (self.high - mu) / sigma);
        if self.kind == Kind::Mass { mass } else { mass + sigma.ln() + LOG_SQRT_TAU }
    }

    /// log of the kernel's mass on a step, before normalisation.
    fn log_step_mass(&self, value: f64, mu: f64, sigma: f64) -> f64 {
        let half = self.rounding.map_or(0.0, |(step, ..)| step / 2.0);
        log_mass((self.place(value - half) - mu) / sigma, (self.place(value + half) - mu) / sigma)
    }
}

/// What an estimator is made from: observations in the order of trial numbers.
pub(super) struct Observations<'a> {
    /// Internal values of one axis.
    pub(super) values: Vec<f64>,
    /// Places in `values`, by ascending value.
    pub(super) order: Vec<u32>,
    /// Per place: the bandwidth last used and its normaliser (a cache kept between suggestions).
    pub(super) cache: Option<Vec<&'a mut (f64, f64)>>,
}

enum Kernels {
    Category { observed: Vec<u32>, log_hit: f64, log_miss: f64, log_prior: f64, choices: usize },
    Normal { mus: Vec<f64>, sigmas: Vec<f64>, inverse: Vec<f64> },
}

/// A mixture of product kernels; the prior is the last.
pub(super) struct Estimator<'a> {
    axes: &'a [Axis],
    weights: Vec<f64>,
    /// log weight plus the kernels' constants.
    base: Vec<f64>,
    kernels: Vec<Kernels>,
}

impl<'a> Estimator<'a> {
    pub(super) fn new(axes: &'a [Axis], observations: Vec<Observations<'_>>, rules: Rules) -> Self {
        let count = observations.first().map_or(0, |axis| axis.values.len());
        let weights = weights(count);
        let mut base: Vec<f64> = weights.iter().map(|weight| weight.ln()).collect();
        let kernels = axes
            .iter()
            .zip(observations)
            .map(|(axis, mut observed)| match axis.kind {
                Kind::Category(choices) => category(choices, &observed.values),
                Kind::Density | Kind::Mass => {
                    let (mus, sigmas) = bandwidths(axis, &observed, rules);
                    for k in 0..=count {
                        let fresh = || axis.log_normaliser(mus[k], sigmas[k]);
                        base[k] -= match &mut observed.cache {
                            Some(cache) if k < count => {
                                if cache[k].0 != sigmas[k] {
                                    *cache[k] = (sigmas[k], fresh());
                                }
                                cache[k].1
                            }
                            _ => fresh(),
                        };
                    }
                    let inverse = sigmas.iter().map(|sigma| 1.0 / sigma).collect();
                    Kernels::Normal { mus, sigmas, inverse }
                }
            })
            .collect();
        Self { axes, weights, base, kernels }
    }

    /// Draws `count` points; the result is by axis. Categories draw before numbers, as in Optuna.
    pub(super) fn sample(&self, stream: &mut RandomState, count: usize) -> Vec<Vec<f64>> {
        let mut cumulative = self.weights.clone();
        for k in 1..cumulative.len() {
            cumulative[k] += cumulative[k - 1];
        }
        let total = cumulative[cumulative.len() - 1];
        cumulative.iter_mut().for_each(|entry| *entry /= total);
        let last = self.weights.len() - 1;
        let chosen: Vec<usize> = (0..count)
            .map(|_| {
                let u = stream.next_double();
                cumulative.partition_point(|&entry| entry <= u).min(last)
            })
            .collect();
        let mut points = vec![Vec::new(); self.axes.len()];
        for (axis, kernels) in self.kernels.iter().enumerate() {
            if let Kernels::Category { choices, .. } = kernels {
                points[axis] = chosen
                    .iter()
                    .map(|&k| {
                        let u = stream.next_double();
                        let mut sum = 0.0;
                        let below = (0..choices - 1).take_while(|&choice| {
                            sum += kernels.log_probability(k, choice as u32).exp();
                            sum < u
                        });
                        below.count() as f64
                    })
                    .collect();
            }
        }
        for (axis, kernels) in self.kernels.iter().enumerate() {
            if let Kernels::Normal { mus, sigmas, .. } = kernels {
                let Axis { low, high, .. } = self.axes[axis];
                points[axis] = chosen
                    .iter()
                    .map(|&k| {
                        let (mu, sigma) = (mus[k], sigmas[k]);
                        let u = stream.next_double();
                        let z = truncated_quantile(u, (low - mu) / sigma, (high - mu) / sigma);
                        self.axes[axis].value(z * sigma + mu)
                    })
                    .collect();
            }
        }
        points
    }

    /// log p at each of the points (by axis).
    pub(super) fn log_density(&self, points: &[Vec<f64>]) -> Vec<f64> {
        let tables: Vec<Option<StepMasses>> = self
            .axes
            .iter()
            .zip(&self.kernels)
            .zip(points)
            .map(|((axis, kernels), values)| match kernels {
                Kernels::Normal { mus, sigmas, .. } if axis.kind == Kind::Mass => {
                    Some(StepMasses::new(axis, mus, sigmas, values))
                }
                _ => None,
            })
            .collect();
        if let [Kernels::Category { .. }] = self.kernels.as_slice() {
            return self.log_density_of_category(&points[0]);
        }
        let mut exponents = vec![0.0; self.base.len()];
        (0..points[0].len())
            .map(|point| {
                exponents.copy_from_slice(&self.base);
                for (axis, kernels) in self.kernels.iter().enumerate() {
                    let value = points[axis][point];
                    match (kernels, &tables[axis]) {
                        (_, Some(table)) => table.add(point, &mut exponents),
                        (Kernels::Normal { mus, inverse, .. }, None) => {
                            subtract_half_squares(&mut exponents, self.axes[axis].place(value), mus, inverse);
                        }
                        (Kernels::Category { observed, log_hit, log_miss, log_prior, .. }, None) => {
                            let choice = value as u32;
                            for (exponent, &own) in exponents.iter_mut().zip(observed) {
                                *exponent += if own == choice { *log_hit } else { *log_miss };
                            }
                            exponents[observed.len()] += log_prior;
                        }
                    }
                }
                sum_of_exponentials(&exponents).ln()
            })
            .collect()
    }
}

impl Estimator<'_> {
    /// One category alone has only as many different kernels as choices: their weights are added up first.
    fn log_density_of_category(&self, values: &[f64]) -> Vec<f64> {
        let [Kernels::Category { observed, log_hit, log_miss, log_prior, choices }] = self.kernels.as_slice()
        else {
            unreachable!("asked of one category only")
        };
        let mut weight = vec![0.0; *choices];
        for (own, own_weight) in observed.iter().zip(&self.weights) {
            weight[*own as usize] += own_weight;
        }
        let total: f64 = weight.iter().sum();
        let prior = self.weights[observed.len()] * log_prior.exp();
        let density = |own: f64| own * log_hit.exp() + (total - own) * log_miss.exp() + prior;
        values.iter().map(|&value| density(weight[value as usize]).ln()).collect()
    }
}

impl Kernels {
    fn log_probability(&self, kernel: usize, choice: u32) -> f64 {
        match self {
            Self::Category { observed, log_hit, log_miss, log_prior, .. } => match observed.get(kernel) {
                None => *log_prior,
                Some(&own) if own == choice => *log_hit,
                Some(_) => *log_miss,
            },
            Self::Normal { .. } => unreachable!("asked of categories only"),
        }
    }
}

/// Weights of `count` observations and the prior: 1 up to 25, then a ramp for the oldest; normalised.
fn weights(count: usize) -> Vec<f64> {
    let mut weights = vec![1.0; count + 1];
    if count > 25 {
        let ramp = count - 25;
        let start = 1.0 / count as f64;
        let step = if ramp > 1 { (1.0 - start) / (ramp - 1) as f64 } else { 0.0 };
        for (k, weight) in weights[..ramp].iter_mut().enumerate() {
            *weight = k as f64 * step + start;
        }
        if ramp > 1 {
            weights[ramp - 1] = 1.0;
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// 1/(m + 1) for every choice plus 1 for the observed one, normalised; the prior is even.
fn category(choices: usize, observed: &[f64]) -> Kernels {
    let little = 1.0 / (observed.len() + 1) as f64;
    let total = little * choices as f64 + 1.0;
    Kernels::Category {
        observed: observed.iter().map(|&value| value as u32).collect(),
        log_hit: ((1.0 + little) / total).ln(),
        log_miss: (little / total).ln(),
        log_prior: (1.0 / choices as f64).ln(),
        choices,
    }
}

/// Centres and bandwidths, the prior last: the larger gap to a neighbour, the outermost points their one
/// inner gap, clipped to [range / min(100, m + 2), range].
fn bandwidths(axis: &Axis, observed: &Observations<'_>, rules: Rules) -> (Vec<f64>, Vec<f64>) {
    let count = observed.values.len();
    let range = axis.high - axis.low;
    let centre = 0.5 * (axis.low + axis.high);
    let mut mus: Vec<f64> = observed.values.iter().map(|&value| axis.place(value)).collect();
    mus.push(centre);
    let mut sigmas = vec![range; count + 1];
    let mut order = observed.order.clone();
    if rules == Rules::Published {
        let place = order.partition_point(|&k| mus[k as usize] <= centre);
        order.insert(place, count as u32);
    }
    let at = |rank: usize| mus[order[rank] as usize];
    let narrowest = range / f64::min(100.0, (count + 2) as f64);
    let last = order.len().wrapping_sub(1);
    for (rank, &k) in order.iter().enumerate() {
        let left = at(rank) - if rank == 0 { axis.low } else { at(rank - 1) };
        let right = if rank == last { axis.high } else { at(rank + 1) } - at(rank);
        let gap = match (rank, order.len()) {
            (_, 1) => left.max(right),
            (0, _) => right,
            (rank, _) if rank == last => left,
            _ => left.max(right),
        };
        sigmas[k as usize] = gap.clamp(narrowest, range);
    }
    sigmas[count] = range;
    (mus, sigmas)
}

/// Masses on steps, for each distinct kernel and each distinct value: whole numbers repeat.
struct StepMasses {
    kernel: Vec<u32>,
    value: Vec<u32>,
    masses: Vec<Vec<f64>>,
}

impl StepMasses {
    fn new(axis: &Axis, mus: &[f64], sigmas: &[f64], values: &[f64]) -> Self {
        let mut distinct: Vec<(f64, f64)> = Vec::new();
        let mut known: HashMap<(u64, u64), u32> = HashMap::new();
        let kernel = mus
            .iter()
            .zip(sigmas)
            .map(|(&mu, &sigma)| {
                *known.entry((mu.to_bits(), sigma.to_bits())).or_insert_with(|| {
                    distinct.push((mu, sigma));
                    distinct.len() as u32 - 1
                })
            })
            .collect();
        let mut points: Vec<f64> = Vec::new();
        let value = values
            .iter()
            .map(|&value| {
                let place = points.iter().position(|&known| known == value).unwrap_or_else(|| {
                    points.push(value);
                    points.len() - 1
                });
                place as u32
            })
            .collect();
        let masses = points
            .iter()
            .map(|&value| distinct.iter().map(|&(mu, sigma)| axis.log_step_mass(value, mu, sigma)).collect())
            .collect();
        Self { kernel, value, masses }
    }

    fn add(&self, point: usize, exponents: &mut [f64]) {
        let masses = &self.masses[self.value[point] as usize];
        for (exponent, &kernel) in exponents.iter_mut().zip(&self.kernel) {
            *exponent += masses[kernel as usize];
        }
    }
}
