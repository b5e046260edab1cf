//! Kernels whose columns are made by a device: here one that is only pretended, and may fail.

use std::sync::Arc;

use qdc_core::kernel::{
    Accelerator, Candidates, ColumnPart, ColumnSource, ColumnWork, Resident, RowSums, WholeWork,
};
use qdc_core::{
    Csr, EdgeRule, Eigensolver, Error, Filter, Graph, Normalize, Pairs, Precision, Recipe, Remedy, Resources,
    Route, Shard, Sign, Sparsify, Transition, Watch,
};

/// Does on the CPU, column by column, what a device is asked to do.
#[derive(Clone, Copy, Debug)]
struct Pretended {
    /// The columns after which it fails.
    lasts: usize,
    yields: bool,
    /// The least work that it takes.
    least: f64,
    /// Whether it makes whole kernels and keeps them.
    keeps: bool,
}

const SOUND: Pretended = Pretended { lasts: usize::MAX, yields: false, least: 0.0, keeps: false };

impl Accelerator for Pretended {
    fn name(&self) -> &str {
        "a pretended device"
    }

    fn takes(&self, operations: f64) -> bool {
        operations >= self.least
    }

    fn yields(&self) -> bool {
        self.yields
    }

    fn decomposes(&self, rows: usize) -> bool {
        rows > 1
    }

    fn decompose(&self, rows: usize, matrix: &mut [f64]) -> Result<Vec<f64>, Error> {
        if self.lasts == 0 {
            matrix.fill(f64::NAN);
            return Err(Error::Device { problem: "the device is lost".into() });
        }
        Ok(jacobi(rows, matrix))
    }

    fn columns(
        &self,
        work: &ColumnWork<'_>,
        take: &mut dyn FnMut(Candidates<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = work.last.len();
        assert_eq!(work.first.len(), work.units.len());
        for (number, &(unit, share)) in work.units.iter().enumerate() {
            if number >= self.lasts {
                return Err(Error::Device { problem: "the device is lost".into() });
            }
            let column = column(work, unit, share);
            let size = |value: f64| if work.sign == Sign::Absolute { value.abs() } else { value };
            let floor = match work.wanted {
                ColumnPart::AtLeast(floor) => floor,
                ColumnPart::Largest(most) => {
                    let mut sizes: Vec<f64> = column.iter().map(|&value| size(value)).collect();
                    sizes.sort_by(|a, b| b.total_cmp(a));
                    (sizes[most.min(rows) - 1] - 2e-9).max(1e-9)
                }
            };
            let wanted = |&row: &u32| {
                size(column[row as usize]) >= floor && work.last[row as usize] >= work.first[number]
            };
            let rows: Vec<u32> = (0..rows as u32).filter(wanted).collect();
            let values: Vec<f64> = rows.iter().map(|&row| column[row as usize]).collect();
            let (columns, offsets, own) = (number..number + 1, [0, rows.len()], [column[unit as usize]]);
            take(Candidates { columns, offsets: &offsets, rows: &rows, values: &values, own: &own })?;
        }
        Ok(())
    }

    fn whole(&self, work: &WholeWork<'_>) -> Result<Option<Box<dyn Resident>>, Error> {
        let ColumnPart::AtLeast(floor) = work.columns.wanted else { panic!("only thresholds are asked for") };
        if !self.keeps {
            return Ok(None);
        }
        if self.lasts < work.columns.units.len() {
            return Err(Error::Device { problem: "the device is lost".into() });
        }
        let units = work.columns.units.iter();
        let columns: Vec<Vec<f64>> = units.map(|&(unit, share)| column(&work.columns, unit, share)).collect();
        let size = |value: f64| if work.columns.sign == Sign::Absolute { value.abs() } else { value };
        let mut held = Held { pointers: vec![0], ..Held::default() };
        let vertices = work.class_of.len();
        for row in 0..vertices {
            let (mut degree, mut magnitude, mut diagonal) = (0.0, 0.0, 0.0);
            for column in 0..vertices {
                let (upper, lower) = (work.class_of[row.min(column)], work.class_of[row.max(column)]);
                let mut value = columns[upper as usize][lower as usize];
                if upper == lower {
                    value -= work.shares[upper as usize];
                    value += if row == column { work.apart[upper as usize] } else { 0.0 };
                }
                if size(value) >= floor {
                    held.columns.push(column as u32);
                    held.values.push(value);
                    degree += size(value);
                    magnitude += value.abs();
                    diagonal += if row == column { value.abs() } else { 0.0 };
                }
            }
            held.pointers.push(held.columns.len());
            held.sums.degrees.push(degree);
            held.sums.magnitudes.push(magnitude);
            held.sums.diagonal.push(diagonal);
        }
        Ok(Some(Box::new(held)))
    }
}

/// A kernel as a device would keep it.
#[derive(Debug, Default)]
struct Held {
    pointers: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    sums: RowSums,
}

impl Resident for Held {
    fn pointers(&self) -> &[usize] {
        &self.pointers
    }

    fn sums(&self) -> &RowSums {
        &self.sums
    }

    fn scale(&mut self, left: &[f64], right: &[f64]) -> Result<(), Error> {
        for row in 0..self.pointers.len() - 1 {
            for at in self.pointers[row]..self.pointers[row + 1] {
                self.values[at] *= left[row] * right[self.columns[at] as usize];
            }
        }
        Ok(())
    }

    fn read(&self) -> Result<(Vec<u32>, Vec<f64>), Error> {
        Ok((self.columns.clone(), self.values.clone()))
    }
}

/// One column of what is asked for.
fn column(work: &ColumnWork<'_>, unit: u32, share: f64) -> Vec<f64> {
    let rows = work.last.len();
    match work.source {
        _ if unit as usize >= rows => vec![0.0; rows],
        ColumnSource::Series { matrix, coefficients } => {
            assert_eq!(matrix.rows(), rows);
            polynomial(matrix, coefficients, unit, share)
        }
        ColumnSource::Pairs { vectors, weights } => product(vectors, weights, unit, share),
    }
}

/// V diag(w) V^T x, term by term.
fn product(vectors: &[f64], weights: &[f64], unit: u32, share: f64) -> Vec<f64> {
    let nodes = vectors.len() / weights.len();
    let mut sum = vec![0.0; nodes];
    for (vector, weight) in vectors.chunks(nodes).zip(weights) {
        let factor = weight * share * vector[unit as usize];
        sum.iter_mut().zip(vector).for_each(|(sum, entry)| *sum += factor * entry);
    }
    sum
}

/// sum_k c_k T_k(M) x by the three-term recurrence.
fn polynomial(matrix: &Csr<f64>, coefficients: &[f64], unit: u32, share: f64) -> Vec<f64> {
    let multiply = |x: &[f64]| -> Vec<f64> {
        let row = |row: usize| {
            let (columns, values) = matrix.row(row);
            columns.iter().zip(values).map(|(&column, value)| value * x[column as usize]).sum()
        };
        (0..x.len()).map(row).collect()
    };
    let mut now = vec![0.0; matrix.rows()];
    now[unit as usize] = share;
    let mut next = multiply(&now);
    let mut sum = vec![0.0; now.len()];
    for &coefficient in coefficients {
        sum.iter_mut().zip(&now).for_each(|(sum, x)| *sum += coefficient * x);
        let after = multiply(&next).iter().zip(&now).map(|(a, b)| 2.0 * a - b).collect();
        (now, next) = (next, after);
    }
    sum
}

/// The eigenvalues, ascending, of a symmetric matrix that becomes the eigenvectors: Jacobi's rotations.
fn jacobi(n: usize, matrix: &mut [f64]) -> Vec<f64> {
    let mut a: Vec<f64> =
        (0..n * n).map(|at| matrix[(at / n).min(at % n) * n + (at / n).max(at % n)]).collect();
    let mut vectors: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                let angle = 0.5 * (2.0 * a[p * n + q]).atan2(a[q * n + q] - a[p * n + p]);
                let (sine, cosine) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (cosine * x - sine * y, sine * x + cosine * y);
                    let (x, y) = (vectors[p * n + k], vectors[q * n + k]);
                    (vectors[p * n + k], vectors[q * n + k]) = (cosine * x - sine * y, sine * x + cosine * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (cosine * x - sine * y, sine * x + cosine * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[i * n + i].total_cmp(&a[j * n + j]));
    for (at, &from) in order.iter().enumerate() {
        matrix[at * n..(at + 1) * n].copy_from_slice(&vectors[from * n..(from + 1) * n]);
    }
    order.iter().map(|&i| a[i * n + i]).collect()
}

/// A graph with twins of both kinds, leaves, and two vertices without edges.
fn graph() -> Graph {
    let ring = (0..40u64).map(|i| (i, (i + 1) % 40));
    let leaves = (40..52).map(|leaf| (leaf, leaf % 3));
    let clique = [(52, 53), (52, 54), (53, 54), (52, 7), (53, 7), (54, 7)];
    let chords = (0..40).step_by(5).map(|i| (i, (i * 7 + 3) % 40));
    Graph::from_edges(57, ring.chain(leaves).chain(clique).chain(chords), EdgeRule::Undirected).unwrap()
}

fn with(device: Pretended) -> Resources {
    Resources { route: Route::Chebyshev, accelerator: Some(Arc::new(device)), ..Resources::default() }
}

fn recipes() -> Vec<Recipe> {
    let filters = [Filter::gaussian(0.2, 0.3).unwrap(), Filter::heat(4.0).unwrap()];
    let kept = [Sparsify::Epsilon(1e-3), Sparsify::TopK(5), Sparsify::TopK(400), Sparsify::None];
    let of = |filter: &Filter, kept, sign| Recipe::new(filter.clone()).sparsify(kept).sign(sign);
    filters
        .iter()
        .flat_map(|filter| kept.map(|kept| (filter, kept)))
        .flat_map(|(filter, kept)| [Sign::Positive, Sign::Absolute].map(|sign| of(filter, kept, sign)))
        .collect()
}

/// The kernels of a device are those of the CPU, whole and in parts, and say who made them.
fn agrees_with_the_cpu(recipe: &Recipe, cpu: &Resources, said: &str) {
    for keeps in [false, true] {
        agrees_with(Pretended { keeps, ..SOUND }, recipe, cpu, said);
    }
}

fn agrees_with(device: Pretended, recipe: &Recipe, cpu: &Resources, said: &str) {
    let (graph, watch) = (graph(), Watch::silent());
    let device = Resources { accelerator: Some(Arc::new(device)), ..cpu.clone() };
    let ours = recipe.prepare(&graph, cpu, &watch).unwrap().build(&watch).unwrap();
    let job = recipe.prepare(&graph, &device, &watch).unwrap();
    let theirs = job.build(&watch).unwrap();
    assert_eq!(ours.matrix.indices(), theirs.matrix.indices(), "{recipe:?}");
    assert_eq!(ours.matrix.pointers(), theirs.matrix.pointers(), "{recipe:?}");
    for (a, b) in ours.matrix.values().iter().zip(theirs.matrix.values()) {
        assert!((a - b).abs() < 1e-11 * a.abs().max(1.0), "{a} and {b}: {recipe:?}");
    }
    assert!(theirs.report.reason.ends_with(said), "{}", theirs.report.reason);
    assert!(!ours.report.reason.contains("pretended"), "{}", ours.report.reason);
    assert_eq!(ours.report.error_bound, theirs.report.error_bound);
    assert_eq!(ours.report.entries, theirs.report.entries);
    assert_eq!(ours.report.empty_rows, theirs.report.empty_rows);
    assert_eq!(ours.report.warnings, theirs.report.warnings);
    let shares = ours.report.diagonal_share.unwrap() - theirs.report.diagonal_share.unwrap();
    assert!(shares.abs() < 1e-11, "{shares}");
    let parts = vec![job.rows(0..20, &watch).unwrap(), job.rows(20..57, &watch).unwrap()];
    assert_eq!(Shard::merge(parts).unwrap().matrix, theirs.matrix, "{recipe:?}");
}

#[test]
fn columns_of_a_device_become_the_same_kernel() {
    let cpu = Resources { route: Route::Chebyshev, ..Resources::default() };
    for recipe in recipes() {
        agrees_with_the_cpu(&recipe, &cpu, ", on a pretended device");
    }
}

#[test]
fn a_device_makes_the_same_rows_of_eigenpairs() {
    let spectrum = Eigensolver::new().solve(&Transition::new(&graph()), &Watch::silent()).unwrap();
    let cpu = Resources::given(spectrum);
    for recipe in recipes() {
        for pairs in [Pairs::All, Pairs::Nearest(57), Pairs::Nearest(13), Pairs::Nearest(1)] {
            let said = "from a spectrum computed before, rows on a pretended device";
            agrees_with_the_cpu(&recipe.clone().pairs(pairs), &cpu, said);
        }
    }
}

#[test]
fn a_kernel_that_stays_on_its_device_is_the_one_that_is_built() {
    let (graph, watch) = (graph(), Watch::silent());
    let prepared = |recipe: &Recipe, device| recipe.prepare(&graph, &with(device), &watch).unwrap();
    let keeping = Pretended { keeps: true, ..SOUND };
    for normalize in [Normalize::Sym, Normalize::Row, Normalize::Col, Normalize::None] {
        let recipe = Recipe::new(Filter::gaussian(0.2, 0.3).unwrap()).normalize(normalize);
        let built = prepared(&recipe, SOUND).build(&watch).unwrap();
        let resident = prepared(&recipe, keeping).build_resident(&watch).unwrap().unwrap();
        assert_eq!(resident.matrix.pointers(), built.matrix.pointers());
        let read = resident.read().unwrap();
        assert_eq!(read.matrix, built.matrix, "{normalize:?}");
        assert_eq!(read.report, built.report);
        assert!(prepared(&recipe, SOUND).build_resident(&watch).unwrap().is_none());
        let largest = recipe.clone().sparsify(Sparsify::TopK(3));
        assert!(prepared(&largest, keeping).build_resident(&watch).unwrap().is_none());
        // What keeps nothing is explained by the CPU.
        let nothing = recipe.sparsify(Sparsify::Epsilon(9.0));
        assert!(prepared(&nothing, keeping).build_resident(&watch).unwrap().is_none());
        let warnings = prepared(&nothing, keeping).build(&watch).unwrap().report.warnings;
        assert!(warnings[0].contains("keeps nothing; about"), "{warnings:?}");
    }
}

#[test]
fn a_device_that_loses_a_whole_kernel_yields_or_says_so() {
    let (graph, watch) = (graph(), Watch::silent());
    let recipe = Recipe::new(Filter::gaussian(0.2, 0.3).unwrap());
    let lost = Pretended { keeps: true, lasts: 3, ..SOUND };
    let error = recipe.prepare(&graph, &with(lost), &watch).unwrap().build(&watch).unwrap_err();
    assert!(matches!(&error, Error::Device { problem } if problem == "the device is lost"));
    let yielding = with(Pretended { yields: true, ..lost });
    let rest = recipe.prepare(&graph, &yielding, &watch).unwrap().build(&watch).unwrap();
    let whole = recipe.prepare(&graph, &with(SOUND), &watch).unwrap().build(&watch).unwrap();
    assert_eq!(rest.matrix.indices(), whole.matrix.indices());
}

#[test]
fn the_cpu_makes_the_rows_that_a_lost_device_did_not() {
    let (graph, watch) = (graph(), Watch::silent());
    let recipe = Recipe::new(Filter::gaussian(0.2, 0.3).unwrap()).normalize(Normalize::None);
    let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &watch).unwrap();
    let by_pairs = |device| Resources {
        spectra: qdc_core::kernel::Spectra::Given(spectrum.clone()),
        route: Route::Auto,
        ..with(device)
    };
    let routes: [&dyn Fn(Pretended) -> Resources; 2] = [&with, &by_pairs];
    for with in routes {
        let whole = recipe.prepare(&graph, &with(SOUND), &watch).unwrap().build(&watch).unwrap();
        for lasts in [0, 1, 17] {
            let failing = Pretended { lasts, ..SOUND };
            let error = recipe.prepare(&graph, &with(failing), &watch).unwrap().build(&watch).unwrap_err();
            assert!(matches!(&error, Error::Device { problem } if problem == "the device is lost"));
            assert_eq!(error.remedy(), Some(Remedy::OnTheCpu));
            let yielding = with(Pretended { yields: true, ..failing });
            let rest = recipe.prepare(&graph, &yielding, &watch).unwrap().build(&watch).unwrap();
            assert_eq!(rest.matrix.indices(), whole.matrix.indices(), "{lasts}");
            let mut values = rest.matrix.values().iter().zip(whole.matrix.values());
            assert!(values.all(|(a, b)| (a - b).abs() < 1e-12), "{lasts}");
        }
    }
}

#[test]
fn small_work_stays_on_the_cpu() {
    let (graph, watch) = (graph(), Watch::silent());
    let recipe = Recipe::new(Filter::heat(2.0).unwrap()).precision(Precision::F32);
    let choosy = with(Pretended { least: 1e12, lasts: 0, ..SOUND });
    let built = recipe.prepare(&graph, &choosy, &watch).unwrap().build(&watch).unwrap();
    assert!(built.report.reason.ends_with("without eigenpairs"), "{}", built.report.reason);
    let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &watch).unwrap();
    let choosy = Resources { accelerator: choosy.accelerator, ..Resources::given(spectrum) };
    let built =
        recipe.pairs(Pairs::Nearest(9)).prepare(&graph, &choosy, &watch).unwrap().build(&watch).unwrap();
    assert!(!built.report.reason.contains("rows on"), "{}", built.report.reason);
}

#[test]
fn eigenpairs_of_a_device_are_checked_and_named_like_those_of_the_cpu() {
    let (transition, watch) = (Transition::new(&graph()), Watch::silent());
    let by = |device: Pretended| Eigensolver::new().accelerator(Arc::new(device) as Arc<dyn Accelerator>);
    let ours = Eigensolver::new().solve(&transition, &watch).unwrap();
    let theirs = by(SOUND).solve(&transition, &watch).unwrap();
    assert!(theirs.is_complete() && theirs.report().reason.ends_with(", on a pretended device"));
    assert!(theirs.report().residual_max < 1e-12 && theirs.report().orthogonality < 1e-10);
    for (a, b) in ours.eigenvalues().iter().zip(theirs.eigenvalues()) {
        assert!((a - b).abs() < 1e-12, "{a} and {b}");
    }
    let lost = Pretended { lasts: 0, yields: true, ..SOUND };
    assert_eq!(by(lost).solve(&transition, &watch).unwrap().vectors(), ours.vectors());
    let error = by(Pretended { yields: false, ..lost }).solve(&transition, &watch).unwrap_err();
    assert!(matches!(error, Error::Device { .. }), "{error}");
}
