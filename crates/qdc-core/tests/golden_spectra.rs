//! Eigenvalues against the golden numbers of NumPy (`kernels_*.npz`), and the routes against each other on
//! real graphs.

use std::path::Path;

use qdc_core::spectrum::{Eigensolver, Pairs, Spectrum};
use qdc_core::{EdgeRule, Graph, Route, Transition, Watch};
use qdc_data::DataDir;
use qdc_data::npz::Npz;
use serde_json::Value;

fn solve(transition: &Transition, solver: Route, pairs: Pairs, mu: f64) -> Spectrum {
    Eigensolver::new().pairs(pairs).around(mu).solver(solver).solve(transition, &Watch::silent()).unwrap()
}

fn assert_close(ours: &[f64], theirs: &[f64], tolerance: f64, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() < tolerance, "{what}: {a} against {b}");
    }
}

fn check(name: &str, file: &Path) {
    let index: Value =
        serde_json::from_slice(&std::fs::read(qdc_testing::golden("kernels.json")).unwrap()).unwrap();
    let entry = &index["graphs"][name];
    let npz = Npz::open(file).unwrap();
    let (_, _, pairs) = npz.matrix::<i32>("edges").unwrap();
    let weights = npz.vector::<f64>("weights").unwrap();
    let edges = pairs.chunks(2).zip(&weights).map(|(pair, &weight)| (pair[0] as u64, pair[1] as u64, weight));
    let nodes = entry["n"].as_u64().unwrap() as usize;
    let graph = Graph::from_weighted_edges(nodes, edges, EdgeRule::Undirected).unwrap();
    let transition = Transition::new(&graph);

    let all = solve(&transition, Route::Dense, Pairs::All, 0.5);
    assert_close(all.eigenvalues(), &npz.vector::<f64>("eigenvalues").unwrap(), 1e-12, name);
    assert!(all.report().residual_max < 1e-13 && all.report().orthogonality < 1e-12, "{:?}", all.report());

    let mut windows = 0;
    for kernel in entry["kernels"].as_array().unwrap().iter().filter(|kernel| kernel["kind"] == "nearest") {
        let (count, mu) = (kernel["k"].as_u64().unwrap() as usize, kernel["mu"].as_f64().unwrap());
        let key = format!("{}.eigenvalues", kernel["name"].as_str().unwrap());
        let mut expected = npz.vector::<f64>(&key).unwrap();
        expected.sort_by(f64::total_cmp);
        for solver in [Route::Dense, Route::Window, Route::Lobpcg] {
            let found = solve(&transition, solver, Pairs::Nearest(count), mu);
            assert_close(found.eigenvalues(), &expected, 1e-12, &format!("{name}, {key}, {solver}"));
        }
        windows += 1;
    }
    assert!(windows > 0, "{name} has windows");
}

#[test]
fn eigenvalues_and_windows_are_those_of_numpy() {
    for name in ["karate", "barbell", "weighted", "pieces"] {
        check(name, &qdc_testing::golden(&format!("kernels_{name}.npz")));
    }
    if let Some(file) = qdc_testing::large_golden("kernels_cornell.npz") {
        check("cornell", &file);
    }
}

#[test]
fn windows_of_real_graphs_miss_no_pair() {
    let Some(folder) = qdc_testing::data_dir() else { return };
    let data = DataDir::new(folder);
    for (name, count, mu) in
        [("cornell", 50, 0.5), ("texas", 60, 0.0), ("wisconsin", 40, -0.5), ("cora", 512, 0.5)]
    {
        let transition = Transition::new(&data.load(name).unwrap().graph);
        let window = solve(&transition, Route::Window, Pairs::Nearest(count), mu);
        assert!(window.report().residual_max < 1e-8, "{name}: {:?}", window.report());
        assert!(window.report().count_exact && window.report().counted == Some(window.pairs()), "{name}");
        let dense = solve(&transition, Route::Dense, Pairs::Nearest(count), mu);
        assert_close(window.eigenvalues(), dense.eigenvalues(), 1e-11, name);
    }
}
