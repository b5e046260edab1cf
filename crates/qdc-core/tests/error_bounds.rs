//! What reports say about errors, against kernels known to thirty digits.
//!
//! Sixty random cases in every run; all 300 by
//! `cargo test --release -p qdc-core --test error_bounds -- --ignored --nocapture`, which also counts them.

mod reference;

use std::ops::AddAssign;

use qdc_core::spectrum::{GROUP_TOLERANCE, groups};
use qdc_core::splitmix::scramble;
use qdc_core::{
    BuiltKernel, Eigensolver, Error, Filter, Normalize, Pairs, Recipe, Resources, Route, Sparsify,
    Transition, Watch,
};
use reference::{Double, Exact};

/// Random numbers fixed by the number of the case.
struct Draw(u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.0 = scramble(self.0);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    /// 10 to a random power between two.
    fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(low + (high - low) * self.unit())
    }

    /// A symmetric matrix with `diagonal` and about three other entries in a row, of eighths or of any size.
    fn weights(&mut self, nodes: usize, diagonal: f64, eighths: bool) -> Vec<Vec<f64>> {
        let mut weights = vec![vec![0.0; nodes]; nodes];
        let plain = self.below(2) == 0;
        for _ in 0..nodes * 3 / 2 {
            let (i, j) = (self.below(nodes), self.below(nodes));
            let weight = match (plain, eighths) {
                (true, _) => 1.0,
                (_, true) => (1 + self.below(16)) as f64 / 8.0,
                _ => 0.1 + self.unit(),
            };
            (weights[i][j], weights[j][i]) = (weight, weight);
        }
        (0..nodes).for_each(|i| weights[i][i] = diagonal);
        weights
    }

    /// A graph of 5 to 30 vertices, a product of 30 to 1,000 or a circulant graph of 60 to 1,000; half of
    /// those two have 500 and more.
    fn graph(&mut self) -> Exact {
        match self.below(5) {
            0 | 1 => {
                let nodes = 5 + self.below(26);
                let self_loop = [1.0, 1.0, 0.5, 2.0][self.below(4)];
                Exact::small(&self.weights(nodes, self_loop, false), self_loop)
            }
            2 | 3 => {
                let factors = if self.below(2) == 0 { [22, 23] } else { [5, 6] };
                let [one, two] = factors.map(|least| {
                    let nodes = least + self.below(9);
                    self.weights(nodes, 1.0, true)
                });
                Exact::product(&one, &two)
            }
            _ => {
                let nodes = if self.below(2) == 0 { 500 + self.below(501) } else { 60 + self.below(440) };
                // Sixty-fourths add up without rounding in any order.
                let weight = (1 + self.below(128)) as f64 / 64.0;
                Exact::circulant(nodes, [(1, 1.0), (2 + self.below(nodes / 2 - 3), weight)])
            }
        }
    }

    fn filter(&mut self) -> Filter {
        let mu = 2.0 * self.unit() - 1.0;
        match self.below(4) {
            0 => Filter::gaussian(mu, self.power(-6.0, 1.0)),
            1 => Filter::band(mu, self.unit()),
            2 => Filter::ppr(self.power(-8.0, 0.0)),
            _ => Filter::heat(self.power(-1.0, 6.0)),
        }
        .unwrap()
    }

    /// All pairs, or any number of them; every other number is moved on to where a gap of 1e-3 follows, if
    /// one does.
    fn pairs(&mut self, distances: &[f64]) -> Pairs {
        let nodes = distances.len();
        if self.below(4) == 0 {
            return Pairs::All;
        }
        let count = self.power(0.0, (nodes as f64).log10()) as usize;
        let apart = |&count: &usize| distances[count] - distances[count - 1] >= 1e-3;
        match (count..nodes).find(apart) {
            Some(next) if self.below(2) == 0 => Pairs::Nearest(next),
            _ => Pairs::Nearest(count),
        }
    }

    /// A route that can make the kernel.
    fn route(&mut self, filter: &Filter, pairs: Pairs) -> Route {
        let suited = |route: &&Route| match (pairs, route) {
            (_, Route::Local) => false, // needs an accuracy, and keeps no small entries: `tests/local.rs`
            (Pairs::Nearest(_), Route::Chebyshev | Route::Elimination) => false,
            (_, Route::Elimination) => filter.name() == "ppr",
            _ => true,
        };
        let routes: Vec<Route> = Route::ALL.iter().filter(suited).copied().collect();
        routes[self.below(routes.len())]
    }
}

/// P at an eigenvalue of thirty digits: differences are taken before anything is rounded.
fn exactly(filter: &Filter, energy: Double) -> f64 {
    let parameters = filter.parameters();
    let parameter = |name: &str| Double::of(parameters[name]);
    match filter.name() {
        "gaussian" => {
            let z = energy.minus(parameter("mu")).over(parameter("sigma"));
            z.times(z).times(Double::of(-0.5)).exponential()
        }
        "band" => {
            let distance = energy.minus(parameter("mu"));
            let logistic = |x: Double| 1.0 / (1.0 + Double::ZERO.minus(x).exponential());
            logistic(parameter("gamma").plus(distance)) * logistic(parameter("gamma").minus(distance))
        }
        "ppr" => {
            let alpha = parameter("alpha");
            let other = Double::ONE.minus(alpha).times(Double::ONE.minus(energy));
            alpha.over(alpha.plus(other)).0
        }
        "heat" => parameter("time").times(energy.minus(Double::ONE)).exponential(),
        name => panic!("{name} has no closed form"),
    }
}

/// What the cases showed.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    made: usize,
    proved: usize,
    /// Windows with a gap of at least 1e-3 beside them and a proved bound.
    apart: usize,
    /// Such windows without a proved bound.
    apart_unproved: usize,
    /// By an iterative solver on 500 vertices and more.
    iterative: usize,
    refused: usize,
    /// The largest bound, in units of 1e6 times what the error allows, of the windows that stand apart.
    loosest: f64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.proved += other.proved;
        self.apart += other.apart;
        self.apart_unproved += other.apart_unproved;
        self.iterative += other.iterative;
        self.refused += other.refused;
        self.loosest = self.loosest.max(other.loosest);
    }
}

/// The eigenvalues that a window holds: the nearest, ties and whole groups included, ascending by position.
fn window(exact: &Exact, centre: f64, pairs: Pairs) -> (Vec<usize>, f64) {
    let value = |a: usize| exact.eigenvalues[a].0;
    let mut order: Vec<usize> = (0..exact.eigenvalues.len()).collect();
    order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
    let Pairs::Nearest(count) = pairs else { return (order, f64::INFINITY) };
    let mut distances: Vec<f64> = order.iter().map(|&a| (value(a) - centre).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let radius = distances[count.min(distances.len()) - 1] + GROUP_TOLERANCE;
    let ascending: Vec<f64> = order.iter().map(|&a| value(a)).collect();
    let inside =
        |group: &std::ops::Range<usize>| group.clone().any(|at| (ascending[at] - centre).abs() <= radius);
    let (mut first, mut last) = (usize::MAX, 0);
    for group in groups(&ascending).filter(inside) {
        (first, last) = (first.min(group.start), group.end);
    }
    let below = if first > 0 { ascending[first] - ascending[first - 1] } else { f64::INFINITY };
    let above = ascending.get(last).map_or(f64::INFINITY, |next| next - ascending[last - 1]);
    (order[first..last].to_vec(), below.min(above))
}

/// The largest error of the entries in some rows, and the largest entry.
fn errors(exact: &Exact, filter: &Filter, within: &[usize], built: &BuiltKernel) -> (f64, f64) {
    let nodes = exact.eigenvalues.len();
    let weights: Vec<Double> =
        within.iter().map(|&a| Double::of(exactly(filter, exact.eigenvalues[a]))).collect();
    let rows: Vec<usize> = if nodes <= 60 { (0..nodes).collect() } else { vec![0, nodes / 3, nodes - 1] };
    let (mut error, mut largest) = (0f64, 0f64);
    for &row in &rows {
        for column in 0..nodes {
            let terms = within.iter().zip(&weights).filter(|(_, weight)| weight.0 > 0.0);
            let expected = terms.fold(Double::ZERO, |sum, (&a, weight)| {
                sum.plus(exact.projector(a, row, column).times(*weight))
            });
            let found = built.matrix.get(row, column as u32).unwrap();
            error = error.max(Double::of(found).minus(expected).0.abs());
            largest = largest.max(expected.0.abs());
        }
    }
    (error, largest)
}

/// The operations up to which a kernel takes ten seconds and less.
const TEN_SECONDS: f64 = 6e10;

fn run(case: u64, most_operations: f64) -> Tally {
    let mut draw = Draw(scramble(0x00b0_07ed ^ case));
    let exact = draw.graph();
    let nodes = exact.graph.nodes();
    let filter = draw.filter();
    let centre = Recipe::new(filter.clone()).centre();
    let mut distances: Vec<f64> = exact.eigenvalues.iter().map(|value| (value.0 - centre).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let pairs = draw.pairs(&distances);
    let route = draw.route(&filter, pairs);
    let recipe = Recipe::new(filter.clone())
        .pairs(pairs)
        .self_loop(exact.self_loop)
        .sparsify(Sparsify::None)
        .normalize(Normalize::None);
    let name = format!("case {case}: {filter}, {pairs} pairs by {route} on {nodes} vertices");
    let resources = Resources { route, ..Resources::default() };
    let refused = Tally { refused: 1, ..Tally::default() };
    let job = match recipe.prepare(&exact.graph, &resources, &Watch::silent()) {
        Ok(job) if job.plan().flops <= most_operations => job,
        Ok(_) | Err(Error::FilterTooSharp { .. }) => return refused,
        // Below 1e-8 the equations of PageRank are refused.
        Err(Error::UnsuitedRoute { route: Route::Elimination, .. }) => return refused,
        Err(error) => panic!("{name}: {error}"),
    };
    let built = job.build(&Watch::silent()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let report = &built.report;
    let (within, gap) = window(&exact, centre, pairs);
    if pairs != Pairs::All {
        assert_eq!(report.pairs, Pairs::Nearest(within.len()), "{name}: the nearest, whole groups");
    }
    let iterative = nodes >= 500 && matches!(report.solver, Route::Window | Route::Lobpcg);
    if iterative {
        nearest_are_nearest(&exact, &within, centre, pairs, route, &name);
    }
    let stated = report.error_bound.or(report.error_estimate);
    assert!(stated.is_some_and(|error| error.is_finite() && error >= 0.0), "{name}: {report:?}");
    let (error, largest) = errors(&exact, &filter, &within, &built);
    let mut tally = Tally { made: 1, iterative: usize::from(iterative), ..Tally::default() };
    let apart = pairs != Pairs::All && gap >= 1e-3 && gap.is_finite();
    let Some(bound) = report.error_bound else {
        tally.apart_unproved = usize::from(apart);
        return tally;
    };
    tally.proved = 1;
    // The reference itself is right to sixteen digits of P.
    let highest = within.iter().map(|&a| exactly(&filter, exact.eigenvalues[a])).fold(0.0, f64::max);
    assert!(
        error <= bound + 2e-16 * highest,
        "{name}: error {error:e} above the proved bound {bound:e}, gap {gap:e}"
    );
    if apart {
        tally.apart = 1;
        let allowed = 1e6 * error.max(1e-15 * largest);
        tally.loosest = bound / allowed;
        assert!(bound <= allowed, "{name}: bound {bound:e} above {allowed:e}, error {error:e}, gap {gap:e}");
    }
    tally
}

/// Compares the eigenvalues of an iterative solver with the exact ones of the window.
fn nearest_are_nearest(exact: &Exact, within: &[usize], centre: f64, pairs: Pairs, route: Route, name: &str) {
    let transition = Transition::with_self_loop(&exact.graph, exact.self_loop).unwrap();
    let solver = Eigensolver::new().pairs(pairs).around(centre).solver(route);
    let spectrum = solver.solve(&transition, &Watch::silent()).unwrap();
    assert_eq!(spectrum.pairs(), within.len(), "{name}");
    for (found, &a) in spectrum.eigenvalues().iter().zip(within) {
        let expected = exact.eigenvalues[a].0;
        assert!((found - expected).abs() < 1e-9, "{name}: {found} for {expected}");
    }
}

fn all(cases: std::ops::Range<u64>, most_operations: f64) -> Tally {
    let mut sum = Tally::default();
    cases.for_each(|case| sum += run(case, most_operations));
    sum
}

#[test]
fn no_error_exceeds_its_proved_bound_in_sixty_cases() {
    let tally = all(0..80, TEN_SECONDS / 20.0);
    assert!(tally.made >= 60 && tally.proved >= 45, "{tally:?}");
    assert!(tally.apart >= 10 && tally.iterative >= 5, "{tally:?}");
}

#[test]
#[ignore = "minutes; run with --ignored"]
#[allow(clippy::print_stdout)] // a run on demand shows its counts
fn no_error_exceeds_its_proved_bound_and_none_is_idle_where_the_window_stands_apart() {
    let tally = all(0..360, TEN_SECONDS);
    println!("{tally:?}");
    assert!(tally.made >= 300 && tally.proved >= 250, "{tally:?}");
    assert!(tally.apart >= 50 && tally.iterative >= 40, "{tally:?}");
}
