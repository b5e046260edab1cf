//! The polynomial route against full eigendecompositions of real graphs, from the folder `QDC_DATA`.

use qdc_core::{Eigensolver, Filter, Normalize, Recipe, Resources, Route, Sparsify, Transition, Watch};
use qdc_data::DataDir;

/// Everything kept, nothing divided: the error is that of the kernel itself.
fn recipe(mu: f64, sigma: f64) -> Recipe {
    Recipe::new(Filter::gaussian(mu, sigma).unwrap()).sparsify(Sparsify::None).normalize(Normalize::None)
}

fn check(name: &str) {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let graph = DataDir::new(folder).load(name).unwrap().graph;
    let watch = Watch::silent();
    let spectrum = Eigensolver::new().solver(Route::Dense).solve(&Transition::new(&graph), &watch).unwrap();
    for mu in [-0.9, -0.5, 0.0, 0.5, 1.0] {
        for sigma in [0.1, 0.3, 1.0] {
            // Some rows are enough: a row is computed like every other.
            let resources = Resources { route: Route::Chebyshev, ..Resources::default() };
            let job = recipe(mu, sigma).prepare(&graph, &resources, &watch).unwrap();
            let rows = job.rows(0..48, &watch).unwrap();
            let report = &rows.manifest.report;
            let bound = report.error_bound.or(report.error_estimate).unwrap();
            assert!(bound <= 1e-10, "{name} mu {mu} sigma {sigma}: bound {bound:e}");
            let mut largest = 0f64;
            for row in 0..rows.matrix.rows() {
                let expected = exact_row(&spectrum, mu, sigma, row);
                let found = rows.matrix.row(row).1;
                let errors = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                largest = errors.fold(largest, f64::max);
            }
            assert!(largest <= bound, "{name} mu {mu} sigma {sigma}: {largest:e} above {bound:e}");
        }
    }
}

fn exact_row(spectrum: &qdc_core::Spectrum, mu: f64, sigma: f64, row: usize) -> Vec<f64> {
    let filter = Filter::gaussian(mu, sigma).unwrap();
    let mut out = vec![0.0; spectrum.nodes()];
    for (a, &energy) in spectrum.eigenvalues().iter().enumerate() {
        let weight = filter.evaluate(energy) * spectrum.vector(a)[row];
        if weight.abs() > 1e-18 {
            out.iter_mut().zip(spectrum.vector(a)).for_each(|(sum, &entry)| *sum += weight * entry);
        }
    }
    out
}

#[test]
fn chebyshev_equals_the_eigendecomposition_of_cora() {
    check("cora");
}

#[test]
fn chebyshev_equals_the_eigendecomposition_of_chameleon() {
    check("chameleon");
}

#[test]
#[ignore = "half a minute and a gigabyte; run with --ignored"]
fn chebyshev_equals_the_eigendecomposition_of_squirrel() {
    check("squirrel");
}
