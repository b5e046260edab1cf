//! Block models: vertices in classes, edges more or less likely within a class than between classes.

use qdc_core::{EdgeRule, Features, Graph};

use super::sparse::{bernoulli, pair};
use crate::random::Random;
use crate::{Dataset, Error};

/// Classes of equal size (or one apart), one after the other.
pub(super) fn labels(n: u64, blocks: u64) -> Vec<u32> {
    (0..blocks)
        .flat_map(|block| (start(n, blocks, block)..start(n, blocks, block + 1)).map(move |_| block as u32))
        .collect()
}

fn start(n: u64, blocks: u64, block: u64) -> u64 {
    (u128::from(n) * u128::from(block) / u128::from(blocks)) as u64
}

/// Edges within a block with probability `p_in`, between blocks with probability `p_out`.
pub(super) fn edges(n: u64, blocks: u64, p_in: f64, p_out: f64, seed: u64) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed, 0);
    let mut edges = Vec::new();
    for block in 0..blocks {
        let (first, end) = (start(n, blocks, block), start(n, blocks, block + 1));
        let size = end - first;
        bernoulli(size * size.saturating_sub(1) / 2, p_in, &mut random, |place| {
            let (low, high) = pair(place);
            edges.push((first + low, first + high));
        });
        // All vertices of earlier blocks lie before this one: their pairs with it form a rectangle.
        bernoulli(size * first, p_out, &mut random, |place| {
            edges.push((place % first, first + place / first));
        });
    }
    edges
}

/// A contextual stochastic block model: a graph of given homophily, and features that hint at the class.
///
/// Each vertex has `degree` neighbours on average; a neighbour has the vertex's class with probability
/// `homophily`, else one of the others. Features are normal around a mean of the class: `signal` times a
/// random direction, plus noise of deviation 1 in every coordinate.
///
/// Reference: Y. Deshpande, S. Sen, A. Montanari, E. Mossel, "Contextual stochastic block models", 2018.
///
/// ```
/// let dataset = qdc_data::generators::ContextualBlocks { homophily: 0.1, ..Default::default() }.generate()?;
/// let statistics = dataset.statistics()?;
/// assert!((statistics.homophily - 0.1).abs() < 0.02);
/// # Ok::<(), qdc_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextualBlocks {
    /// Number of vertices.
    pub n: usize,
    /// The chance that a neighbour has the same class.
    pub homophily: f64,
    /// Number of classes, of equal size.
    pub classes: usize,
    /// Mean number of neighbours.
    pub degree: f64,
    /// Number of features.
    pub features: usize,
    /// Distance of each class's mean from the origin, in units of the noise.
    pub signal: f64,
    /// Fixes every random choice.
    pub seed: u64,
}

impl Default for ContextualBlocks {
    fn default() -> Self {
        Self { n: 1000, homophily: 0.2, classes: 2, degree: 10.0, features: 32, signal: 1.0, seed: 0 }
    }
}

impl ContextualBlocks {
    /// Makes the dataset; it has no splits yet.
    pub fn generate(&self) -> Result<Dataset, Error> {
        let Self { n, homophily, classes, degree, features, signal, seed } = *self;
        let class_size = n as f64 / classes as f64;
        let p_in = degree * homophily / (class_size - 1.0).max(1.0);
        let p_out = degree * (1.0 - homophily) / (n as f64 - class_size).max(1.0);
        let edges = edges(n as u64, classes as u64, p_in.min(1.0), p_out.min(1.0), seed);
        let graph = Graph::from_edges(n, edges, EdgeRule::Undirected)?;
        let labels = labels(n as u64, classes as u64);

        let mut random = Random::new(seed, 1);
        let mut directions: Vec<f64> = (0..classes * features).map(|_| random.normal()).collect();
        for direction in directions.chunks_exact_mut(features) {
            let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
            direction.iter_mut().for_each(|x| *x *= signal / length);
        }
        let mut values = Vec::with_capacity(n * features);
        for &class in &labels {
            let mean = &directions[class as usize * features..][..features];
            values.extend(mean.iter().map(|mean| (mean + random.normal()) as f32));
        }
        Dataset::new("csbm".into(), graph, Features::from_dense(features, values), labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homophily_is_what_was_asked_for() {
        for (homophily, classes) in [(0.0, 2), (0.2, 2), (0.8, 2), (0.5, 5), (1.0, 3)] {
            let model = ContextualBlocks { n: 3000, homophily, classes, ..Default::default() };
            let statistics = model.generate().unwrap().statistics().unwrap();
            assert!((statistics.homophily - homophily).abs() < 0.02, "{statistics:?}");
            assert!((statistics.edges as f64 / 15_000.0 - 1.0).abs() < 0.05, "{statistics:?}");
            assert_eq!(statistics.classes, classes);
        }
    }

    #[test]
    fn features_of_a_class_lie_around_its_mean() {
        let model = ContextualBlocks { n: 4000, signal: 2.0, features: 8, ..Default::default() };
        let dataset = model.generate().unwrap();
        let values = dataset.features.to_dense();
        let mut mean = [0.0; 8];
        for row in values.chunks_exact(8).take(2000) {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += f64::from(*x) / 2000.0);
        }
        let distance = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((distance - 2.0).abs() < 0.15, "{distance}");
    }
}
