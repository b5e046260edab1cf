//! Homophily of a window on the spectrum without eigenvectors, and a suggestion for mu and sigma from it.
//!
//! For the filter P of a window, h_i is the sum of P_ij^2 over the same-label j != i, divided by the sum over
//! all j != i. Neither sum needs P. With z random signs on the vertices of one class and 0 elsewhere, the
//! mean of (P z)_i^2 is the sum of P_ij^2 over that class; for i in the class itself, z_i (P z)_i has mean
//! P_ii and its variance is the sum over j != i. P z is a Chebyshev series applied to a few dozen vectors.
//!
//! Squares do not see signs, and a kernel keeps what is positive. So the suggestion goes by a second number,
//! the agreement: the share of vertices whose own class has the largest mean P_ij, the vertex itself left
//! out. It costs one more vector for each class, the class's indicator.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chebyshev::{self, Operator, Series};
use crate::{Error, Filter, Graph, Spectrum, Transition, Watch};

/// Groups of probes for the jackknife that gives the spread.
const GROUPS: usize = 8;
/// Random vectors for each class, unless said otherwise.
pub const PROBES: usize = 48;
/// The filter is applied to this precision, far below the spread.
const TOLERANCE: f64 = 1e-6;

/// The homophily of one window, estimated.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct WindowEstimate {
    /// Centre of the window.
    pub mu: f64,
    /// Its width.
    pub sigma: f64,
    /// The mean of h_i over the labelled vertices.
    pub homophily: f64,
    /// Its standard error over the random probes (jackknife).
    pub spread: f64,
    /// The share of labelled vertices whose own class has the largest mean entry, the vertex itself left out.
    pub agreement: f64,
}

/// Windows of one width slid over the spectrum, in steps of a tenth.
pub fn sliding_windows(sigma: f64) -> Vec<(f64, f64)> {
    (-9..=10).map(|tenth| (f64::from(tenth) / 10.0, sigma)).collect()
}

/// Estimates the homophily of several Gaussian windows (mu, sigma). Vertices without a label (`None`) take no
/// part.
///
/// Cost for each window: one application of its Chebyshev series, about 5 / sigma terms, to `probes` vectors
/// for each class. The spread falls like 1 / sqrt(probes).
///
/// # Errors
/// If there is not one label for each vertex, a sigma is not above 0, or the watch asks to stop.
pub fn window_homophily(
    graph: &Graph,
    labels: &[Option<u32>],
    windows: &[(f64, f64)],
    probes: usize,
    seed: u64,
    watch: &Watch,
) -> Result<Vec<WindowEstimate>, Error> {
    let nodes = graph.nodes();
    check_labels(nodes, labels)?;
    let classes = labels.iter().flatten().max().map_or(0, |&largest| largest as usize + 1);
    let probes = probes.div_ceil(GROUPS).max(2) * GROUPS;
    let columns = classes * (probes + 1); // random signs, then the indicators
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut signals = vec![0.0; nodes * columns];
    for (vertex, label) in labels.iter().enumerate() {
        if let Some(class) = label {
            let first = vertex * columns + *class as usize * probes;
            for sign in &mut signals[first..first + probes] {
                *sign = if random.random::<bool>() { 1.0 } else { -1.0 };
            }
            signals[vertex * columns + classes * probes + *class as usize] = 1.0;
        }
    }
    let operator = Operator::<f64>::new(&Transition::new(graph));
    let phase = watch.phase("homophily of windows", windows.len() as u64);
    let mut result = Vec::with_capacity(windows.len());
    for &(mu, sigma) in windows {
        let series = Series::of(&Filter::gaussian(mu, sigma)?, TOLERANCE)?;
        let silent = Watch::silent();
        let moved = chebyshev::apply(&operator, series.coefficients(), &signals, columns, &silent)?;
        let estimate = |left_out: Option<usize>| {
            let kept: Vec<usize> =
                (0..probes).filter(|probe| Some(probe * GROUPS / probes) != left_out).collect();
            mean_share(labels, &signals, &moved, classes, probes, &kept)
        };
        let homophily = estimate(None);
        let partial: Vec<f64> = (0..GROUPS).map(|group| estimate(Some(group))).collect();
        let centre = partial.iter().sum::<f64>() / GROUPS as f64;
        let scatter: f64 = partial.iter().map(|value| (value - centre).powi(2)).sum();
        let spread = (scatter * (GROUPS - 1) as f64 / GROUPS as f64).sqrt();
        let agreement = agreement(labels, &signals, &moved, classes, probes);
        result.push(WindowEstimate { mu, sigma, homophily, spread, agreement });
        phase.advance(1)?;
    }
    Ok(result)
}

/// The mean of h_i over the labelled vertices, from some of the probes.
fn mean_share(
    labels: &[Option<u32>],
    signals: &[f64],
    moved: &[f64],
    classes: usize,
    probes: usize,
    kept: &[usize],
) -> f64 {
    let columns = classes * (probes + 1);
    let (mut sum, mut count) = (0.0, 0usize);
    for (vertex, own) in labels.iter().enumerate() {
        let Some(own) = *own else { continue };
        count += 1;
        let (mut same, mut others) = (0.0, 0.0);
        for class in 0..classes {
            let at = |probe: &usize| vertex * columns + class * probes + probe;
            if class == own as usize {
                let values: Vec<f64> = kept.iter().map(|p| signals[at(p)] * moved[at(p)]).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let scatter: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                same = scatter / (values.len() - 1) as f64;
            } else {
                others += kept.iter().map(|p| moved[at(p)].powi(2)).sum::<f64>() / kept.len() as f64;
            }
        }
        if same + others > 0.0 {
            sum += same / (same + others);
        }
    }
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The share of labelled vertices whose own class has the largest mean entry.
fn agreement(labels: &[Option<u32>], signals: &[f64], moved: &[f64], classes: usize, probes: usize) -> f64 {
    let columns = classes * (probes + 1);
    let mut sizes = vec![0.0; classes];
    labels.iter().flatten().for_each(|&label| sizes[label as usize] += 1.0);
    let (mut hits, mut count) = (0usize, 0usize);
    for (vertex, own) in labels.iter().enumerate() {
        let Some(own) = own.map(|own| own as usize) else { continue };
        count += 1;
        let row = vertex * columns;
        let diagonal =
            (0..probes).map(|p| row + own * probes + p).map(|at| signals[at] * moved[at]).sum::<f64>();
        let diagonal = diagonal / probes as f64;
        let mean = |class: usize| {
            let sum = moved[row + classes * probes + class];
            match class == own {
                true if sizes[class] > 1.0 => (sum - diagonal) / (sizes[class] - 1.0),
                false if sizes[class] > 0.0 => sum / sizes[class],
                _ => f64::NEG_INFINITY,
            }
        };
        let mine = mean(own);
        hits += usize::from((0..classes).all(|class| class == own || mean(class) < mine));
    }
    if count == 0 { 0.0 } else { hits as f64 / count as f64 }
}

/// The homophily exactly, from all eigenpairs: what the estimate is held against. Costs N^3.
///
/// # Errors
/// If there is not one label for each vertex, or sigma is not above 0.
pub fn window_homophily_exact(
    spectrum: &Spectrum,
    labels: &[Option<u32>],
    mu: f64,
    sigma: f64,
) -> Result<f64, Error> {
    let nodes = spectrum.nodes();
    check_labels(nodes, labels)?;
    let filter = Filter::gaussian(mu, sigma)?;
    let (mut sum, mut count) = (0.0, 0usize);
    let mut row = vec![0.0; nodes];
    for (vertex, own) in labels.iter().enumerate().filter(|(_, own)| own.is_some()) {
        row.fill(0.0);
        for (pair, &eigenvalue) in spectrum.eigenvalues().iter().enumerate() {
            let vector = spectrum.vector(pair);
            let factor = filter.evaluate(eigenvalue) * vector[vertex];
            row.iter_mut().zip(vector).for_each(|(sum, value)| *sum += factor * value);
        }
        let (mut same, mut all) = (0.0, 0.0);
        for (other, label) in labels.iter().enumerate() {
            if other != vertex && label.is_some() {
                all += row[other].powi(2);
                same += if label == own { row[other].powi(2) } else { 0.0 };
            }
        }
        count += 1;
        sum += if all > 0.0 { same / all } else { 0.0 };
    }
    Ok(if count == 0 { 0.0 } else { sum / count as f64 })
}

/// A suggestion for mu and sigma, and what it rests on.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Suggestion {
    /// Centre of the window to try first.
    pub mu: f64,
    /// Its width.
    pub sigma: f64,
    /// The agreement there.
    pub agreement: f64,
    /// What always guessing the largest class would give.
    pub chance: f64,
    /// Why, in a sentence.
    pub reason: String,
    /// Every window that was looked at.
    pub windows: Vec<WindowEstimate>,
}

/// Suggests mu and sigma from the labels of the training vertices alone.
///
/// Narrow windows (sigma 0.1) are slid over the spectrum; mu is the centre of the one with the best
/// agreement. The window is then widened for as long as that costs no more than a tenth of the lift over
/// chance.
///
/// # Errors
/// As [`window_homophily`].
pub fn suggest(
    graph: &Graph,
    training: &[Option<u32>],
    seed: u64,
    watch: &Watch,
) -> Result<Suggestion, Error> {
    let mut windows = window_homophily(graph, training, &sliding_windows(0.1), PROBES, seed, watch)?;
    let mut best = windows[0];
    for &window in &windows {
        if window.agreement > best.agreement {
            best = window;
        }
    }
    let (chance, labelled) = largest_class(training);
    let lift = (best.agreement - chance).max(0.0);
    let wider = [0.2, 0.3, 0.5, 0.8].map(|sigma| (best.mu, sigma));
    let wider = window_homophily(graph, training, &wider, PROBES, seed, watch)?;
    let enough = |window: &&WindowEstimate| window.agreement >= best.agreement - 0.1 * lift;
    let chosen = wider.iter().take_while(enough).last().copied().unwrap_or(best);
    windows.extend(wider);
    let (found, guess) = (100.0 * best.agreement, 100.0 * chance);
    let error = 100.0 * (best.agreement * (1.0 - best.agreement) / labelled.max(1) as f64).sqrt();
    let reason = if found - guess > 2.0 * error && labelled > 0 {
        format!(
            "through the window around {:.1}, {found:.1} % of the training vertices lean to their own class \
             (guessing the largest class: {guess:.1} %); sigma {:.1} is the widest window that keeps nine tenths of \
             that lift",
            best.mu, chosen.sigma
        )
    } else {
        format!(
            "no part of the spectrum tells the classes apart better than a guess ({found:.1} % against {guess:.1} %, \
             give or take {error:.1}): take this as a place to start a search, no more"
        )
    };
    let WindowEstimate { mu, sigma, agreement, .. } = chosen;
    Ok(Suggestion { mu, sigma, agreement, chance, reason, windows })
}

/// The share of the largest class, and the number of labelled vertices.
fn largest_class(labels: &[Option<u32>]) -> (f64, usize) {
    let mut sizes = std::collections::BTreeMap::<u32, usize>::new();
    labels.iter().flatten().for_each(|&label| *sizes.entry(label).or_default() += 1);
    let total: usize = sizes.values().sum();
    (sizes.values().copied().max().unwrap_or(0) as f64 / total.max(1) as f64, total)
}

fn check_labels(nodes: usize, labels: &[Option<u32>]) -> Result<(), Error> {
    if labels.len() == nodes {
        return Ok(());
    }
    Err(Error::LengthMismatch { what: "labels, one for each vertex", expected: nodes, found: labels.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Eigensolver};

    /// Two classes; edges run within a class with odds 4 : 1 (or across, with `across`).
    fn two_classes(across: bool) -> (Graph, Vec<Option<u32>>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut edges = Vec::new();
        for a in 0..80u64 {
            for b in a + 1..80 {
                let same = (a % 2 == b % 2) != across;
                if random.random::<f64>() < if same { 0.16 } else { 0.04 } {
                    edges.push((a, b));
                }
            }
        }
        let labels = (0..80).map(|vertex| Some(vertex % 2)).collect();
        (Graph::from_edges(80, edges, EdgeRule::Undirected).unwrap(), labels)
    }

    #[test]
    fn the_estimate_agrees_with_the_exact_value_within_its_spread() {
        let (graph, labels) = two_classes(false);
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let windows = [(-0.3, 0.1), (0.0, 0.1), (0.4, 0.2), (0.9, 0.1)];
        let estimates = window_homophily(&graph, &labels, &windows, 256, 1, &Watch::silent()).unwrap();
        for estimate in estimates {
            let exact = window_homophily_exact(&spectrum, &labels, estimate.mu, estimate.sigma).unwrap();
            let distance = (estimate.homophily - exact).abs();
            assert!(distance < 4.0 * estimate.spread + 0.01, "{estimate:?}, exactly {exact}");
            assert!(estimate.spread < 0.02, "{estimate:?}");
        }
    }

    #[test]
    fn the_suggestion_follows_the_side_of_the_spectrum_that_carries_the_classes() {
        let suggested = |across| {
            let (graph, labels) = two_classes(across);
            suggest(&graph, &labels, 0, &Watch::silent()).unwrap()
        };
        // Like joined to like: the classes are smooth. Like joined to unlike: they alternate, at the low end.
        assert!(suggested(false).mu > 0.2, "{:?}", suggested(false).reason);
        assert!(suggested(true).mu < -0.2, "{:?}", suggested(true).reason);
    }

    #[test]
    fn a_graph_without_labels_suggests_nothing_firm() {
        let (graph, _) = two_classes(false);
        let suggestion = suggest(&graph, &[None; 80], 0, &Watch::silent()).unwrap();
        assert!(suggestion.reason.contains("no part of the spectrum"));
    }
}
