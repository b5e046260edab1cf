//! The tree-structured Parzen estimator.
//!
//! Finished trials are split into a few good ones and the rest; each part becomes a density. Of 24 candidates
//! drawn from the good density l, the one with the largest l(x) / g(x) is suggested.

use super::history::{Column, History};
use super::parzen::{Axis, Estimator, Observations, Rules};
use super::{Streams, random};
use crate::Space;

/// Candidates drawn for each suggestion.
const CANDIDATES: usize = 24;
/// Trials drawn at random before the estimator has something to estimate from.
const STARTUP: usize = 10;

/// One parameter at a time, as Optuna 3.6 does it.
pub(super) fn independent(space: &Space, history: &mut History, streams: &mut Streams) -> Vec<f64> {
    if history.informative() < STARTUP {
        return random::suggest(space, streams);
    }
    let good = history.good();
    (0..space.len())
        .map(|parameter| {
            let distribution = space.distribution(parameter);
            if distribution.is_single() {
                return random::single(distribution);
            }
            let axes = [Axis::new(distribution, Rules::Published)];
            let columns = &mut history.columns[parameter..=parameter];
            best(&axes, columns, &good, &[], streams, Rules::Published)[0]
        })
        .collect()
}

/// All parameters jointly, as Optuna 5 does it; trials still `running` count as bad ("constant liar").
pub(super) fn joint(
    space: &Space,
    history: &mut History,
    running: &[Vec<f64>],
    streams: &mut Streams,
) -> Vec<f64> {
    if history.informative() < STARTUP {
        return random::suggest(space, streams);
    }
    let mut searched: Vec<usize> = (0..space.len()).filter(|&i| !space.distribution(i).is_single()).collect();
    searched.sort_by(|&a, &b| space.name(a).cmp(space.name(b)));
    let mut values: Vec<f64> = (0..space.len()).map(|i| random::single(space.distribution(i))).collect();
    if searched.is_empty() {
        return values;
    }
    let good = history.good();
    let axes: Vec<Axis> = searched.iter().map(|&i| Axis::new(space.distribution(i), Rules::Newest)).collect();
    let running: Vec<Vec<f64>> =
        running.iter().map(|values| searched.iter().map(|&i| values[i]).collect()).collect();
    // The columns are lent out in the order of `searched` and put back.
    let mut columns: Vec<Column> =
        searched.iter().map(|&i| std::mem::take(&mut history.columns[i])).collect();
    let point = best(&axes, &mut columns, &good, &running, streams, Rules::Newest);
    for ((&i, column), value) in searched.iter().zip(columns).zip(point) {
        history.columns[i] = column;
        values[i] = value;
    }
    values
}

/// The candidate with the largest ratio; of equals the first.
fn best(
    axes: &[Axis],
    columns: &mut [Column],
    good: &[u32],
    running: &[Vec<f64>],
    streams: &mut Streams,
    rules: Rules,
) -> Vec<f64> {
    let count = columns[0].values.len();
    let complete: Vec<bool> =
        (0..count).map(|i| columns.iter().all(|column| !column.values[i].is_nan())).collect();
    let mut place = vec![u32::MAX; count];
    let mut places = 0;
    for &i in good.iter().filter(|&&i| complete[i as usize]) {
        place[i as usize] = places;
        places += 1;
    }
    let good_observations = columns.iter().map(|column| observations(column, &place, places)).collect();
    let good_density = Estimator::new(axes, good_observations, rules);
    let points = good_density.sample(&mut streams.main, CANDIDATES);

    let mut goods = good.iter().copied().peekable();
    places = 0;
    for i in 0..count {
        let is_good = goods.next_if_eq(&(i as u32)).is_some();
        place[i] = if is_good || !complete[i] { u32::MAX } else { places };
        places += u32::from(place[i] != u32::MAX);
    }
    let bad_observations = columns
        .iter_mut()
        .enumerate()
        .map(|(axis, column)| {
            let mut observed = observations(column, &place, places);
            for values in running {
                let k = observed.values.len() as u32;
                let rank =
                    observed.order.partition_point(|&other| observed.values[other as usize] <= values[axis]);
                observed.order.insert(rank, k);
                observed.values.push(values[axis]);
            }
            if running.is_empty() {
                let members =
                    column.normalisers.iter_mut().zip(&place).filter(|(_, place)| **place != u32::MAX);
                observed.cache = Some(members.map(|(entry, _)| entry).collect());
            }
            observed
        })
        .collect();
    let bad_density = Estimator::new(axes, bad_observations, rules);

    let (likely, unlikely) = (good_density.log_density(&points), bad_density.log_density(&points));
    let mut winner = 0;
    for candidate in 1..CANDIDATES {
        if likely[candidate] - unlikely[candidate] > likely[winner] - unlikely[winner] {
            winner = candidate;
        }
    }
    points.iter().map(|values| values[winner]).collect()
}

/// The observations that have a place, in the order of trials and by value.
fn observations(column: &Column, place: &[u32], places: u32) -> Observations<'static> {
    let mut values = Vec::with_capacity(places as usize + 8);
    values.extend(
        column.values.iter().zip(place).filter(|(_, place)| **place != u32::MAX).map(|(value, _)| *value),
    );
    let mut order = Vec::with_capacity(places as usize + 8);
    order.extend(column.order.iter().map(|&i| place[i as usize]).filter(|&place| place != u32::MAX));
    Observations { values, order, cache: None }
}
