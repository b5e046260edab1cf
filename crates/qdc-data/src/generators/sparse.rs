//! Large sparse random graphs, in time proportional to their edges.

use crate::random::Random;

/// Visits each of `count` places with probability `p`, by drawing the gaps between those visited.
///
/// Reference: V. Batagelj, U. Brandes, "Efficient generation of large random networks", 2005.
pub(super) fn bernoulli(count: u64, p: f64, random: &mut Random, mut visit: impl FnMut(u64)) {
    if p <= 0.0 {
        return;
    }
    if p >= 1.0 {
        return (0..count).for_each(visit);
    }
    let log_miss = (-p).ln_1p();
    let mut place = 0u64;
    loop {
        let gap = ((1.0 - random.unit()).ln() / log_miss).floor();
        if gap >= (count - place) as f64 {
            return;
        }
        place += gap as u64;
        visit(place);
        place += 1;
        if place >= count {
            return;
        }
    }
}

/// The pair (smaller, larger) at `place` when pairs are listed by their larger end.
pub(super) fn pair(place: u64) -> (u64, u64) {
    let mut larger = ((1.0 + (1.0 + 8.0 * place as f64).sqrt()) / 2.0) as u64;
    while larger * (larger - 1) / 2 > place {
        larger -= 1;
    }
    while (larger + 1) * larger / 2 <= place {
        larger += 1;
    }
    (place - larger * (larger - 1) / 2, larger)
}

/// Each of the n (n - 1) / 2 edges with probability p.
pub(super) fn erdos_renyi(n: u64, p: f64, seed: u64) -> Vec<(u64, u64)> {
    let mut edges = Vec::new();
    bernoulli(n * (n - 1) / 2, p, &mut Random::new(seed, 0), |place| edges.push(pair(place)));
    edges
}

/// Preferential attachment: each new vertex chooses the ends of edges drawn before it, so that the chance to
/// be chosen grows with the degree, and the degrees follow a power law of exponent 3.
///
/// A new vertex brings `degree / 2` edges on average. Repeated choices are drawn again a few times, then
/// dropped.
///
/// Reference: A.-L. Barabasi, R. Albert, "Emergence of scaling in random networks", 1999.
pub(super) fn power_law(n: u64, degree: f64, seed: u64) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed, 0);
    let mut edges: Vec<(u64, u64)> = vec![(0, 1)];
    let mut chosen_by = vec![0u32; n as usize]; // the last vertex that chose each one
    for vertex in 2..n {
        // Edges there should be once this vertex has brought its own: fractions carry over.
        let due = ((vertex as f64 * degree / 2.0).round() as usize).max(vertex as usize);
        let first = edges.len();
        let wanted = due.saturating_sub(first).clamp(1, vertex as usize);
        for _ in 0..wanted {
            for _attempt in 0..8 {
                let (from, to) = edges[random.below(first as u64) as usize];
                let chosen = if random.bits() >> 63 == 0 { from } else { to };
                if chosen_by[chosen as usize] != vertex as u32 {
                    chosen_by[chosen as usize] = vertex as u32;
                    edges.push((chosen, vertex));
                    break;
                }
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_listed_once_each() {
        let all: Vec<_> = (0..6).map(pair).collect();
        assert_eq!(all, [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]);
        let large = 3_000_000_000u64;
        let last = large * (large - 1) / 2 - 1;
        assert_eq!(pair(last), (large - 2, large - 1));
    }

    #[test]
    fn an_erdos_renyi_graph_has_the_expected_number_of_edges() {
        let edges = erdos_renyi(2000, 0.01, 3).len() as f64;
        let expected = 0.01 * 2000.0 * 1999.0 / 2.0;
        assert!((edges - expected).abs() < 5.0 * expected.sqrt(), "{edges} instead of {expected}");
    }

    #[test]
    fn a_power_law_graph_has_its_mean_degree_and_hubs() {
        let n = 20_000;
        let edges = power_law(n, 5.0, 0);
        let mean = 2.0 * edges.len() as f64 / n as f64;
        assert!((mean - 5.0).abs() < 0.1, "mean degree {mean}");
        let mut degrees = vec![0; n as usize];
        edges.iter().for_each(|&(from, to)| {
            degrees[from as usize] += 1;
            degrees[to as usize] += 1;
        });
        assert!(degrees.iter().all(|&degree| degree > 0), "connected by construction");
        assert!(*degrees.iter().max().unwrap() > 100, "the largest degree grows like sqrt(n)");
    }
}
