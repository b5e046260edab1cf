//! Heat and quantum particles on a graph: f(t) = exp(-t H) f(0) and psi(t) = exp(-i t H) psi(0), with H = I -
//! L, plus a potential on the diagonal where the particle is given one.
//!
//! Both exponentials are Chebyshev series in H, scaled to [-1, 1] from bounds on its spectrum. The
//! coefficients are Bessel functions, which fall faster than exponentially once their order exceeds t times
//! half the width of the spectrum, so the series stops at a known degree with an error near rounding. The
//! polynomials T_k(H) psi(0) do not depend on time: one recurrence serves all times.

mod bessel;

use crate::{Csr, Error, Transition, Watch};

pub use self::bessel::{bessel_i_scaled, bessel_j};

/// Terms below this are left out.
const NEGLIGIBLE: f64 = 1e-17;
/// The most terms of a series: at longer times nothing but rounding would be left.
const MOST_TERMS: f64 = 1e7;
/// The most coefficients held at once, over all times.
const MOST_COEFFICIENTS: f64 = 1e8;

/// What was done to move a state through time.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DynamicsReport {
    /// Terms of the Chebyshev series, less one.
    pub degree: usize,
    /// Bounds on the spectrum of H that the series used.
    pub bounds: (f64, f64),
    /// Schroedinger's equation keeps the norm: the largest relative change of it over the times. Heat:
    /// `None`.
    pub norm_drift: Option<f64>,
}

/// A state at each time asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Evolution<State> {
    /// The times.
    pub times: Vec<f64>,
    /// The state at each.
    pub states: Vec<State>,
    /// How it was computed.
    pub report: DynamicsReport,
}

/// A complex amplitude for each vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Wave {
    /// Real parts.
    pub real: Vec<f64>,
    /// Imaginary parts.
    pub imaginary: Vec<f64>,
}

impl Wave {
    /// |psi|^2: the probability of seeing the particle at each vertex.
    pub fn probability(&self) -> Vec<f64> {
        self.real.iter().zip(&self.imaginary).map(|(re, im)| re * re + im * im).collect()
    }

    /// The square root of the total probability.
    pub fn norm(&self) -> f64 {
        self.probability().iter().sum::<f64>().sqrt()
    }
}

/// The operator H = I - L (+ V) that moves states on a graph.
///
/// ```
/// use qdc_core::{Dynamics, EdgeRule, Graph, Transition, Watch};
///
/// let pair = Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected)?;
/// let dynamics = Dynamics::new(&Transition::new(&pair));
/// let quantum = dynamics.schrodinger(&[1.0, 0.0], &[std::f64::consts::PI], &Watch::silent())?;
/// // The two levels are 0 and 1; after half a period of their difference the particle has crossed over.
/// assert!((quantum.states[0].probability()[1] - 1.0).abs() < 1e-14);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dynamics {
    transition: Csr<f64>,
    potential: Option<Vec<f64>>,
}

impl Dynamics {
    /// Dynamics under H = I - L.
    pub fn new(transition: &Transition) -> Self {
        Self { transition: transition.matrix().clone(), potential: None }
    }

    /// Adds a potential V(x), one value for each vertex, to H. It is for Schroedinger's equation only.
    ///
    /// # Errors
    /// If there is not one value for each vertex, or one is not finite.
    pub fn with_potential(self, potential: Vec<f64>) -> Result<Self, Error> {
        check_length(
            "values of the potential, one for each vertex",
            self.transition.rows(),
            potential.len(),
        )?;
        if let Some(&value) = potential.iter().find(|value| !value.is_finite()) {
            return Err(Error::Parameter { name: "potential", value, requirement: "finite at every vertex" });
        }
        Ok(Self { potential: Some(potential), ..self })
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.transition.rows()
    }

    /// The state with 1 at one vertex and 0 elsewhere.
    ///
    /// # Errors
    /// If there is no such vertex.
    pub fn at_vertex(&self, vertex: usize) -> Result<Vec<f64>, Error> {
        let nodes = self.nodes();
        if vertex >= nodes {
            return Err(Error::UnknownVertex { vertex: vertex as u64, nodes });
        }
        let mut state = vec![0.0; nodes];
        state[vertex] = 1.0;
        Ok(state)
    }

    /// exp(-t (I - L)) `initial` at each time, in O(degree (entries of L + N times)); the potential plays no
    /// part.
    ///
    /// What is conserved is the sum of sqrt(degree) f, not the sum of f. The degree grows like sqrt(t).
    ///
    /// # Errors
    /// If the state has another length, a time is negative, not finite or too long, or the watch asks to stop.
    pub fn heat(&self, initial: &[f64], times: &[f64], watch: &Watch) -> Result<Evolution<Vec<f64>>, Error> {
        let interval = Interval { low: 0.0, high: 2.0 };
        // exp(-t (1 + x)) = sum over k of (2 - [k = 0]) (-1)^k exp(-t) I_k(t) T_k(x)
        let coefficients = |time: f64| bessel_i_scaled(time * interval.half_width(), NEGLIGIBLE);
        let mut states = vec![vec![0.0; self.nodes()]; times.len()];
        let degree =
            self.expand(initial, times, None, &interval, coefficients, watch, |at, k, weight, term| {
                let sign = if k % 2 == 0 { weight } else { -weight };
                add_scaled(&mut states[at], sign, term);
            })?;
        let report = DynamicsReport { degree, bounds: (interval.low, interval.high), norm_drift: None };
        Ok(Evolution { times: times.to_vec(), states, report })
    }

    /// exp(-i t (I - L + V)) `initial` at each time, in O(degree (entries of L + N times)).
    ///
    /// The degree is about t times half the width of the spectrum. The norm is kept to rounding. A complex
    /// start is two real ones: the equation is linear.
    ///
    /// # Errors
    /// As [`Dynamics::heat`].
    pub fn schrodinger(
        &self,
        initial: &[f64],
        times: &[f64],
        watch: &Watch,
    ) -> Result<Evolution<Wave>, Error> {
        let (lowest, highest) = self.potential.as_ref().map_or((0.0, 0.0), |potential| {
            potential
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
        });
        let interval = Interval { low: lowest, high: 2.0 + highest };
        let coefficients = |time: f64| bessel_j(time * interval.half_width(), NEGLIGIBLE);
        let zero = vec![0.0; self.nodes()];
        let mut states = vec![Wave { real: zero.clone(), imaginary: zero }; times.len()];
        // exp(-i t (c + r x)) = exp(-i t c) sum over k of (2 - [k = 0]) (-i)^k J_k(t r) T_k(x)
        let potential = self.potential.as_deref();
        let degree =
            self.expand(initial, times, potential, &interval, coefficients, watch, |at, k, weight, term| {
                let wave = &mut states[at];
                match k % 4 {
                    0 => add_scaled(&mut wave.real, weight, term),
                    1 => add_scaled(&mut wave.imaginary, -weight, term),
                    2 => add_scaled(&mut wave.real, -weight, term),
                    _ => add_scaled(&mut wave.imaginary, weight, term),
                }
            })?;
        let norm = initial.iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut drift = 0.0_f64;
        for (wave, &time) in states.iter_mut().zip(times) {
            rotate(wave, -time * interval.centre());
            if norm > 0.0 {
                drift = drift.max((wave.norm() / norm - 1.0).abs());
            }
        }
        let bounds = (interval.low, interval.high);
        Ok(Evolution {
            times: times.to_vec(),
            states,
            report: DynamicsReport { degree, bounds, norm_drift: Some(drift) },
        })
    }

    /// Runs T_k(scaled H) `initial` through the recurrence, and hands each term with its weight for each time
    /// to `add(time index, k, weight, term)`. Returns the degree.
    #[allow(clippy::too_many_arguments)] // one private place where both equations meet
    fn expand(
        &self,
        initial: &[f64],
        times: &[f64],
        potential: Option<&[f64]>,
        interval: &Interval,
        coefficients: impl Fn(f64) -> Vec<f64>,
        watch: &Watch,
        mut add: impl FnMut(usize, usize, f64, &[f64]),
    ) -> Result<usize, Error> {
        check_length("values of the state, one for each vertex", self.nodes(), initial.len())?;
        if let Some(&value) = times.iter().find(|time| !time.is_finite() || **time < 0.0) {
            return Err(Error::Parameter { name: "times", value, requirement: "finite and not negative" });
        }
        let reach = |time: f64| time * interval.half_width();
        if let Some(&value) = times.iter().find(|&&time| reach(time) > MOST_TERMS || reach(time).is_nan()) {
            let requirement = "at most 1e7 without a potential; with one, at most 1e7 divided by half the width \
                               of the spectrum";
            return Err(Error::Parameter { name: "times", value, requirement });
        }
        let total: f64 = times.iter().map(|&time| reach(time) + 100.0).sum();
        if total > MOST_COEFFICIENTS {
            let (needed, limit) = (8.0 * total, 8.0 * MOST_COEFFICIENTS);
            let what = "so many long times at once";
            return Err(Error::Memory { what, needed: needed as u64, limit: limit as u64 });
        }
        let series: Vec<Vec<f64>> = times.iter().map(|&time| coefficients(time)).collect();
        let terms = series.iter().map(Vec::len).max().unwrap_or(1);

        let phase = watch.phase("moving through time", terms as u64);
        let mut before = vec![0.0; self.nodes()];
        let mut current = initial.to_vec();
        let mut image = vec![0.0; self.nodes()];
        for k in 0..terms {
            for (at, series) in series.iter().enumerate() {
                if let Some(&coefficient) = series.get(k) {
                    let weight = if k == 0 { coefficient } else { 2.0 * coefficient };
                    add(at, k, weight, &current);
                }
            }
            // T_1 = x T_0, then T_{k+1} = 2 x T_k - T_{k-1}, with x = (H - centre) / half width
            self.transition.apply(&current, &mut image);
            let factor = if k == 0 { 1.0 } else { 2.0 } / interval.half_width();
            for vertex in 0..self.nodes() {
                let diagonal = 1.0 - interval.centre() + potential.map_or(0.0, |potential| potential[vertex]);
                let shifted = diagonal * current[vertex] - image[vertex];
                image[vertex] = factor * shifted - before[vertex];
            }
            std::mem::swap(&mut before, &mut current);
            std::mem::swap(&mut current, &mut image);
            phase.advance(1)?;
        }
        Ok(terms - 1)
    }
}

/// Bounds on a spectrum.
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    fn centre(&self) -> f64 {
        0.5 * (self.low + self.high)
    }

    fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

fn add_scaled(sum: &mut [f64], factor: f64, term: &[f64]) {
    for (sum, term) in sum.iter_mut().zip(term) {
        *sum += factor * term;
    }
}

/// Multiplies a wave by exp(i angle).
fn rotate(wave: &mut Wave, angle: f64) {
    let (sine, cosine) = angle.sin_cos();
    for (re, im) in wave.real.iter_mut().zip(&mut wave.imaginary) {
        (*re, *im) = (*re * cosine - *im * sine, *re * sine + *im * cosine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph};
    use proptest::prelude::*;

    fn cycle(nodes: u64) -> Dynamics {
        let edges = (0..nodes).map(|i| (i, (i + 1) % nodes));
        Dynamics::new(&Transition::new(
            &Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap(),
        ))
    }

    #[test]
    fn the_norm_is_kept_over_a_long_time() {
        let dynamics = cycle(101);
        let start = dynamics.at_vertex(3).unwrap();
        let quantum = dynamics.schrodinger(&start, &[1000.0], &Watch::silent()).unwrap();
        assert!(quantum.report.norm_drift.unwrap() < 1e-10, "{:?}", quantum.report);
    }

    #[test]
    fn a_deep_well_holds_the_particle_and_keeps_the_norm() {
        let mut well = vec![0.0; 40];
        well[7] = -50.0;
        let dynamics = cycle(40).with_potential(well).unwrap();
        let start = dynamics.at_vertex(7).unwrap();
        let quantum = dynamics.schrodinger(&start, &[0.5, 20.0], &Watch::silent()).unwrap();
        for wave in &quantum.states {
            assert!(wave.probability()[7] > 0.99);
        }
        assert!(quantum.report.norm_drift.unwrap() < 1e-10);
        assert_eq!(quantum.report.bounds, (-50.0, 2.0));
    }

    #[test]
    fn times_that_need_too_many_terms_are_refused_instead_of_exhausting_memory() {
        let cycle = cycle(5);
        let start = cycle.at_vertex(0).unwrap();
        for time in [1e8, 1e10, 1e18, 1e300] {
            let refused = cycle.heat(&start, &[0.0, time], &Watch::silent());
            assert!(matches!(refused, Err(Error::Parameter { name: "times", value, .. }) if value == time));
            assert!(cycle.schrodinger(&start, &[time], &Watch::silent()).is_err());
        }
        let many = vec![9e6; 20];
        assert!(matches!(cycle.heat(&start, &many, &Watch::silent()), Err(Error::Memory { .. })));
        assert!(cycle.heat(&start, &[1e5], &Watch::silent()).is_ok());
    }

    #[test]
    fn what_does_not_fit_the_graph_is_refused() {
        let dynamics = cycle(5);
        assert!(matches!(dynamics.at_vertex(5), Err(Error::UnknownVertex { vertex: 5, nodes: 5 })));
        let watch = Watch::silent();
        assert!(matches!(dynamics.heat(&[1.0], &[1.0], &watch), Err(Error::LengthMismatch { .. })));
        let start = dynamics.at_vertex(0).unwrap();
        for time in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(dynamics.heat(&start, &[time], &watch), Err(Error::Parameter { .. })));
        }
        assert!(matches!(dynamics.clone().with_potential(vec![0.0]), Err(Error::LengthMismatch { .. })));
        assert!(matches!(dynamics.with_potential(vec![f64::NAN; 5]), Err(Error::Parameter { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// exp(-(s + t) H) = exp(-s H) exp(-t H); and a constant potential is a phase, which |psi|^2 does not
        /// see.
        #[test]
        fn times_add_up_and_a_constant_potential_is_not_seen(
            s in 0.0f64..30.0, t in 0.0f64..30.0, height in -3.0f64..3.0, from in 0usize..12,
        ) {
            let (dynamics, watch) = (cycle(12), Watch::silent());
            let start = dynamics.at_vertex(from).unwrap();
            let whole = dynamics.heat(&start, &[s + t], &watch).unwrap().states.remove(0);
            let half = dynamics.heat(&start, &[s], &watch).unwrap().states.remove(0);
            let steps = dynamics.heat(&half, &[t], &watch).unwrap().states.remove(0);
            for (a, b) in whole.iter().zip(&steps) {
                prop_assert!((a - b).abs() < 1e-13);
            }
            let lifted = dynamics.clone().with_potential(vec![height; 12]).unwrap();
            let plain = dynamics.schrodinger(&start, &[t], &watch).unwrap().states.remove(0);
            let lifted = lifted.schrodinger(&start, &[t], &watch).unwrap().states.remove(0);
            for (a, b) in plain.probability().iter().zip(lifted.probability()) {
                prop_assert!((a - b).abs() < 1e-12);
            }
        }
    }
}
