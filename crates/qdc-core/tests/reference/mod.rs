//! Spectra to far more digits than the library computes: eigenpairs in double-double arithmetic.
//!
//! Small matrices by Jacobi's method; strong products of two graphs by the pairs of their factors, as their L
//! is the Kronecker product of the factors' L; circulant graphs by their Fourier vectors.

use qdc_core::Graph;

/// A number of about 32 digits: the sum of two, the second far smaller than the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Double(pub(crate) f64, pub(crate) f64);

fn two_sum(a: f64, b: f64) -> Double {
    let sum = a + b;
    let part = sum - a;
    Double(sum, (a - (sum - part)) + (b - part))
}

impl Double {
    pub(crate) const ZERO: Self = Self(0.0, 0.0);
    pub(crate) const ONE: Self = Self(1.0, 0.0);

    pub(crate) fn of(value: f64) -> Self {
        Self(value, 0.0)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let high = two_sum(self.0, other.0);
        let low = two_sum(self.1, other.1);
        let first = two_sum(high.0, high.1 + low.0);
        two_sum(first.0, first.1 + low.1)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self(-other.0, -other.1))
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product);
        two_sum(product, rest + (self.0 * other.1 + self.1 * other.0))
    }

    pub(crate) fn over(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let rest = self.minus(other.times(Self::of(first)));
        let second = rest.0 / other.0;
        let rest = rest.minus(other.times(Self::of(second)));
        two_sum(first, second).plus(Self::of(rest.0 / other.0))
    }

    pub(crate) fn root(self) -> Self {
        if self.0 <= 0.0 {
            return Self::ZERO;
        }
        let near = Self::of(self.0.sqrt());
        near.plus(self.minus(near.times(near)).over(near.plus(near)))
    }

    /// The exponential to sixteen digits, however large the exponent.
    pub(crate) fn exponential(self) -> f64 {
        self.0.exp() * (1.0 + self.1)
    }
}

/// A graph with all its eigenpairs.
pub(crate) struct Exact {
    pub(crate) graph: Graph,
    pub(crate) self_loop: f64,
    /// In no order.
    pub(crate) eigenvalues: Vec<Double>,
    vectors: Vectors,
}

/// Where eigenvectors come from.
enum Vectors {
    /// vectors[i][a].
    Listed(Vec<Vec<Double>>),
    /// Pair a of n is pair (a / m, a % m) of two factors, of which the second has m vertices; vertices
    /// likewise.
    Product(Vec<Vec<Double>>, Vec<Vec<Double>>),
    /// cos(2 pi k / n): the pairs k and n - k have one projector, of which each counts for half.
    Fourier(Vec<Double>),
}

impl Exact {
    /// The entry (i, j) of phi_a phi_a^T.
    pub(crate) fn projector(&self, a: usize, i: usize, j: usize) -> Double {
        let of = |v: &Vec<Vec<Double>>, a: usize, i: usize, j: usize| v[i][a].times(v[j][a]);
        match &self.vectors {
            Vectors::Listed(v) => of(v, a, i, j),
            Vectors::Product(v, w) => {
                let m = w.len();
                of(v, a / m, i / m, j / m).times(of(w, a % m, i % m, j % m))
            }
            Vectors::Fourier(cosines) => {
                let n = cosines.len();
                cosines[a * (n + i - j) % n].over(Double::of(n as f64))
            }
        }
    }

    /// A matrix of weights with `self_loop` on its diagonal.
    pub(crate) fn small(weights: &[Vec<f64>], self_loop: f64) -> Self {
        let (eigenvalues, vectors) = eigenpairs(weights);
        Self { graph: graph(weights), self_loop, eigenvalues, vectors: Vectors::Listed(vectors) }
    }

    /// The strong product of two matrices of weights with ones on their diagonals. Products of weights must
    /// be exact.
    pub(crate) fn product(one: &[Vec<f64>], two: &[Vec<f64>]) -> Self {
        let m = two.len();
        let n = one.len() * m;
        let weights: Vec<Vec<f64>> =
            (0..n).map(|i| (0..n).map(|j| one[i / m][j / m] * two[i % m][j % m]).collect()).collect();
        let ((values, vectors), (others, other_vectors)) = (eigenpairs(one), eigenpairs(two));
        let eigenvalues =
            values.iter().flat_map(|&value| others.iter().map(move |&other| value.times(other)));
        Self {
            graph: graph(&weights),
            self_loop: 1.0,
            eigenvalues: eigenvalues.collect(),
            vectors: Vectors::Product(vectors, other_vectors),
        }
    }

    /// Vertices on a ring, each joined to those some steps away; the weights must add up without rounding.
    pub(crate) fn circulant(nodes: usize, steps: [(usize, f64); 2]) -> Self {
        let n = nodes as u64;
        let edges = (0..n).flat_map(|i| steps.map(|(step, weight)| (i, (i + step as u64) % n, weight)));
        let graph = Graph::from_weighted_edges(nodes, edges, qdc_core::EdgeRule::Undirected).unwrap();
        let degree = Double::of(1.0 + 2.0 * (steps[0].1 + steps[1].1));
        let cosines = cosines(nodes);
        let eigenvalue = |k: usize| {
            let terms = steps.iter().map(|&(step, weight)| (2.0 * weight, cosines[k * step % nodes]));
            let sum =
                terms.fold(Double::ONE, |sum, (weight, cosine)| sum.plus(cosine.times(Double::of(weight))));
            sum.over(degree)
        };
        let eigenvalues = (0..nodes).map(eigenvalue).collect();
        Self { graph, self_loop: 1.0, eigenvalues, vectors: Vectors::Fourier(cosines) }
    }
}

/// The graph of a matrix of weights; its diagonal is not looked at.
fn graph(weights: &[Vec<f64>]) -> Graph {
    let edges = (0..weights.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| weights[i][j] > 0.0)
        .map(|(i, j)| (i as u64, j as u64, weights[i][j]));
    Graph::from_weighted_edges(weights.len(), edges, qdc_core::EdgeRule::Undirected).unwrap()
}

/// Eigenvalues and eigenvectors, as columns, of D^-1/2 W D^-1/2 with D the row sums of W.
fn eigenpairs(weights: &[Vec<f64>]) -> (Vec<Double>, Vec<Vec<Double>>) {
    let degree = |row: &Vec<f64>| row.iter().fold(Double::ZERO, |sum, &weight| sum.plus(Double::of(weight)));
    let degrees: Vec<Double> = weights.iter().map(degree).collect();
    let entry = |i: usize, j: usize| Double::of(weights[i][j]).over(degrees[i].times(degrees[j]).root());
    jacobi((0..weights.len()).map(|i| (0..weights.len()).map(|j| entry(i, j)).collect()).collect())
}

/// Eigenvalues and eigenvectors, as columns, of a symmetric matrix by Jacobi's method.
fn jacobi(mut a: Vec<Vec<Double>>) -> (Vec<Double>, Vec<Vec<Double>>) {
    let n = a.len();
    let mut v = vec![vec![Double::ZERO; n]; n];
    (0..n).for_each(|i| v[i][i] = Double::ONE);
    for _ in 0..60 {
        let mut moved = false;
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].0.abs() < 1e-40 {
                    continue;
                }
                moved = true;
                let theta = a[q][q].minus(a[p][p]).over(a[p][q].plus(a[p][q]));
                let size = if theta.0 < 0.0 { Double(-theta.0, -theta.1) } else { theta };
                let t = Double::ONE.over(size.plus(size.times(size).plus(Double::ONE).root()));
                let t = if theta.0 < 0.0 { Double(-t.0, -t.1) } else { t };
                let c = Double::ONE.over(t.times(t).plus(Double::ONE).root());
                let s = t.times(c);
                let turn = |x: Double, y: Double| (c.times(x).minus(s.times(y)), s.times(x).plus(c.times(y)));
                for row in a.iter_mut().chain(&mut v) {
                    (row[p], row[q]) = turn(row[p], row[q]);
                }
                for k in 0..n {
                    (a[p][k], a[q][k]) = turn(a[p][k], a[q][k]);
                }
                (a[p][q], a[q][p]) = (Double::ZERO, Double::ZERO);
            }
        }
        if !moved {
            break;
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), v)
}

/// cos(2 pi k / n) for k in 0..n.
fn cosines(n: usize) -> Vec<Double> {
    // pi to 32 digits
    let pi = Double(std::f64::consts::PI, 1.224_646_799_147_353_2e-16);
    let cosine = |k: usize| {
        // Reduced to [0, pi / 2] so that the series is short.
        let k = k.min(n - k);
        let (k, sign) = if 4 * k > n { (n as f64 / 2.0 - k as f64, -1.0) } else { (k as f64, 1.0) };
        let angle = pi.times(Double::of(2.0 * k)).over(Double::of(n as f64));
        let square = angle.times(angle);
        let (mut term, mut sum) = (Double::of(sign), Double::of(sign));
        for j in 1..20 {
            term = term.times(square).over(Double::of(-f64::from((2 * j - 1) * (2 * j))));
            sum = sum.plus(term);
        }
        sum
    };
    (0..n).map(cosine).collect()
}
