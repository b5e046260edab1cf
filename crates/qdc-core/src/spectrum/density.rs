//! How many eigenvalues lie where, roughly: the kernel polynomial method.
//!
//! Sixteen random sign vectors z give the Chebyshev moments m_j = mean of z^T T_j(B) z / n. Damped by
//! Jackson's factors, they integrate to the cumulated density with a resolution of about pi / degree; the
//! relative error of a count c is about sqrt(2 / (16 c)).

use super::panels::{Panel, product};
use crate::chebyshev::{Operator, WIDTH_F64 as WIDTH};
use crate::simd::{Line, Rows, step};
use crate::splitmix::scramble;
use crate::{Error, Watch};

/// An estimate of the number of eigenvalues below x.
pub(super) struct Density {
    rows: f64,
    moments: Vec<f64>,
}

impl Density {
    /// Moments up to `degree`: that many products with sixteen vectors.
    pub(super) fn new(
        operator: &Operator<f64>,
        degree: usize,
        seed: u64,
        watch: &Watch,
    ) -> Result<Self, Error> {
        let rows = operator.nodes();
        let start: Panel = (0..rows)
            .map(|row| {
                let bits = scramble(seed ^ scramble(row as u64 ^ 0xde51_7a00_0000_0000));
                Line(std::array::from_fn(|lane| if bits >> lane & 1 == 1 { 1.0 } else { -1.0 }))
            })
            .collect();
        let dot = |a: &Panel, b: &Panel| -> f64 {
            let sum: f64 =
                a.iter().zip(b).map(|(a, b)| (0..WIDTH).map(|lane| a[lane] * b[lane]).sum::<f64>()).sum();
            sum / (WIDTH * rows) as f64
        };
        let mut moments = vec![1.0];
        let mut before = start.clone();
        let mut current = start.clone();
        product(operator, &start, &mut current);
        moments.push(dot(&start, &current));
        // T_(2j) = 2 T_j T_j - 1 and T_(2j+1) = 2 T_j T_(j+1) - T_1 give two moments for each product.
        while moments.len() <= degree {
            watch.check()?;
            moments.push(2.0 * dot(&current, &current) - 1.0);
            step(operator, Rows::All, 2.0, &current, &mut before);
            std::mem::swap(&mut before, &mut current);
            moments.push(2.0 * dot(&before, &current) - moments[1]);
        }
        Ok(Self { rows: rows as f64, moments: damp(moments) })
    }

    /// Products with one vector it took.
    pub(super) fn applications(&self) -> u64 {
        (self.moments.len() / 2 * WIDTH) as u64
    }

    /// The width below which it cannot tell eigenvalues apart.
    pub(super) fn resolution(&self) -> f64 {
        std::f64::consts::PI / self.moments.len() as f64
    }

    fn below(&self, x: f64) -> f64 {
        let angle = x.clamp(-1.0, 1.0).acos();
        let series: f64 = self.moments[1..]
            .iter()
            .enumerate()
            .map(|(at, moment)| moment * ((at + 1) as f64 * angle).sin() / (at + 1) as f64)
            .sum();
        self.rows * (1.0 - (angle + 2.0 * series) / std::f64::consts::PI)
    }

    /// About how many eigenvalues lie within `radius` of `mu`.
    pub(super) fn within(&self, mu: f64, radius: f64) -> f64 {
        (self.below(mu + radius) - self.below(mu - radius)).max(0.0)
    }

    /// The point with as many eigenvalues of a window around `mu` below it as above: mu itself where they lie
    /// evenly, else among them.
    pub(super) fn middle(&self, mu: f64, radius: f64) -> f64 {
        let half = 0.5 * self.within(mu, radius);
        let (mut low, mut high) = (mu - radius, mu + radius);
        let start = self.below(low);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if self.below(middle) - start < half {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The radius around `mu` that holds about `count` eigenvalues, together with those known from elsewhere.
    pub(super) fn radius(&self, mu: f64, count: f64, known: impl Fn(f64) -> usize) -> f64 {
        let (mut low, mut high) = (0.0, 2.0 + mu.abs());
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if self.within(mu, middle) + (known(middle) as f64) < count {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Jackson's damping, which keeps the density positive.
fn damp(mut moments: Vec<f64>) -> Vec<f64> {
    let terms = moments.len() as f64;
    let angle = std::f64::consts::PI / (terms + 1.0);
    for (at, moment) in moments.iter_mut().enumerate() {
        let j = at as f64;
        *moment *= ((terms - j + 1.0) * (j * angle).cos() + (j * angle).sin() / angle.tan()) / (terms + 1.0);
    }
    moments
}
