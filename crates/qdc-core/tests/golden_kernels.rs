//! Kernels against the golden numbers of NumPy and SciPy (`kernels_*.npz`) and of PyTorch Geometric
//! (`gdc_*.npz`).

use std::path::{Path, PathBuf};

use qdc_core::{
    BuiltKernel, Csr, EdgeRule, Filter, Graph, Normalize, Pairs, Recipe, Resources, Route, Sign, Sparsify,
    Transition, Watch,
};
use qdc_data::npz::Npz;
use serde_json::Value;

/// The kernels of `kernels.json` on one graph, with a name for messages.
struct Golden {
    npz: Npz,
    graph: Graph,
    kernels: Vec<Value>,
}

fn edges(npz: &Npz, weights: Option<&[f64]>) -> Vec<(u64, u64, f64)> {
    let (_, _, pairs) = npz.matrix::<i32>("edges").unwrap();
    let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
    pairs.chunks(2).enumerate().map(|(at, pair)| (pair[0] as u64, pair[1] as u64, weight(at))).collect()
}

fn load(name: &str, file: &Path) -> Golden {
    let index: Value =
        serde_json::from_slice(&std::fs::read(qdc_testing::golden("kernels.json")).unwrap()).unwrap();
    let entry = &index["graphs"][name];
    let npz = Npz::open(file).unwrap();
    let weights = npz.vector::<f64>("weights").unwrap();
    let nodes = entry["n"].as_u64().unwrap() as usize;
    let graph = Graph::from_weighted_edges(nodes, edges(&npz, Some(&weights)), EdgeRule::Undirected).unwrap();
    Golden { npz, graph, kernels: entry["kernels"].as_array().unwrap().clone() }
}

fn graphs() -> Vec<(&'static str, PathBuf)> {
    let mut files: Vec<(&str, PathBuf)> = ["karate", "barbell", "weighted", "pieces"]
        .map(|name| (name, qdc_testing::golden(&format!("kernels_{name}.npz"))))
        .to_vec();
    files.extend(qdc_testing::large_golden("kernels_cornell.npz").map(|path| ("cornell", path)));
    files
}

fn filter(kernel: &Value) -> Filter {
    let number = |key: &str| kernel[key].as_f64().unwrap();
    match kernel["kind"].as_str().unwrap() {
        "qdc" | "nearest" => Filter::gaussian(number("mu"), number("sigma")),
        "bpdc" => Filter::band(number("mu"), number("gamma")),
        "ppr" => Filter::ppr(number("alpha")),
        "heat" => Filter::heat(number("t")),
        kind => panic!("unknown kind {kind}"),
    }
    .unwrap()
}

fn build(recipe: &Recipe, route: Route, graph: &Graph) -> BuiltKernel {
    let resources = Resources { route, ..Resources::default() };
    recipe.prepare(graph, &resources, &Watch::silent()).unwrap().build(&Watch::silent()).unwrap()
}

/// The recipe and the routes that must agree on it.
fn recipe(kernel: &Value) -> (Recipe, Vec<Route>) {
    let recipe = Recipe::new(filter(kernel));
    if kernel["kind"] == "nearest" {
        let pairs = Pairs::Nearest(kernel["k"].as_u64().unwrap() as usize);
        (recipe.pairs(pairs), vec![Route::Auto, Route::Dense])
    } else {
        (recipe, vec![Route::Auto, Route::Chebyshev, Route::Dense])
    }
}

fn rule(case: &Value) -> (Sparsify, Sign) {
    match case["rule"].as_str().unwrap() {
        "threshold" => (Sparsify::epsilon(case["eps"].as_f64().unwrap()).unwrap(), Sign::Positive),
        "absolute" => (Sparsify::epsilon(case["eps"].as_f64().unwrap()).unwrap(), Sign::Absolute),
        "topk" => (Sparsify::top_k(case["k"].as_u64().unwrap() as usize).unwrap(), Sign::Positive),
        rule => panic!("unknown rule {rule}"),
    }
}

fn farthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

fn assert_pattern(what: &str, matrix: &Csr<f64>, npz: &Npz, key: &str) {
    let pointers: Vec<usize> =
        npz.vector::<i32>(&format!("{key}.indptr")).unwrap().into_iter().map(|p| p as usize).collect();
    let indices: Vec<u32> =
        npz.vector::<i32>(&format!("{key}.indices")).unwrap().into_iter().map(|j| j as u32).collect();
    assert_eq!(matrix.pointers(), pointers, "{what} {key}: row pointers");
    assert_eq!(matrix.indices(), indices, "{what} {key}: columns");
}

#[test]
fn transition_matrices_agree_to_1e_14() {
    for (name, file) in graphs() {
        let Golden { npz, graph, .. } = load(name, &file);
        let (_, _, expected) = npz.matrix::<f64>("laplacian").unwrap();
        assert!(farthest(&Transition::new(&graph).matrix().to_dense(), &expected) < 1e-14, "{name}");
    }
}

#[test]
fn dense_kernels_agree_to_1e_10_by_every_route() {
    for (name, file) in graphs() {
        let Golden { npz, graph, kernels } = load(name, &file);
        for kernel in &kernels {
            let key = kernel["name"].as_str().unwrap();
            let (_, _, expected) = npz.matrix::<f64>(&format!("{key}.dense")).unwrap();
            let (recipe, solvers) = recipe(kernel);
            for solver in solvers {
                let whole = recipe.clone().sparsify(Sparsify::None).normalize(Normalize::None);
                let built = build(&whole, solver, &graph);
                let error = farthest(&built.matrix.to_dense(), &expected);
                let bound = built.report.error_bound.or(built.report.error_estimate).unwrap();
                assert!(error < 1e-10, "{name} {key} by {solver}: {error:e}");
                assert!(
                    error < bound + 1e-12,
                    "{name} {key} by {solver}: {error:e} above the bound {bound:e}"
                );
            }
        }
    }
}

#[test]
fn kept_entries_and_normalised_weights_agree_by_every_route() {
    for (name, file) in graphs() {
        let Golden { npz, graph, kernels } = load(name, &file);
        for kernel in &kernels {
            let (recipe, solvers) = recipe(kernel);
            for case in kernel["sparse"].as_array().unwrap() {
                let key = format!("{}.{}", kernel["name"].as_str().unwrap(), case["name"].as_str().unwrap());
                let expected = npz.vector::<f64>(&format!("{key}.normalised")).unwrap();
                let (sparsify, sign) = rule(case);
                for &solver in &solvers {
                    let built = build(&recipe.clone().sparsify(sparsify).sign(sign), solver, &graph);
                    assert_pattern(&format!("{name} by {solver}"), &built.matrix, &npz, &key);
                    let error = farthest(built.matrix.values(), &expected);
                    // Dividing by a small degree enlarges the polynomial's absolute error.
                    let smallest = npz
                        .vector::<f64>(&format!("{key}.kept"))
                        .unwrap()
                        .iter()
                        .fold(1.0, |a: f64, b| a.min(b.abs()));
                    let bound = built.report.error_bound.or(built.report.error_estimate).unwrap();
                    let enlarged = if solver == Route::Chebyshev { 34.0 * bound / smallest } else { 0.0 };
                    assert!(error < 1e-10 + enlarged, "{name} {key} by {solver}: {error:e}");
                    assert_eq!(built.report.empty_rows as u64, case["empty_rows"].as_u64().unwrap());
                }
            }
        }
    }
}

#[test]
fn sparsifying_the_golden_dense_matrices_is_exact() {
    for (name, file) in graphs() {
        let Golden { npz, graph, kernels } = load(name, &file);
        for kernel in &kernels {
            let (_, _, dense) =
                npz.matrix::<f64>(&format!("{}.dense", kernel["name"].as_str().unwrap())).unwrap();
            for case in kernel["sparse"].as_array().unwrap() {
                let key = format!("{}.{}", kernel["name"].as_str().unwrap(), case["name"].as_str().unwrap());
                let (sparsify, sign) = rule(case);
                let kept = sparsify.apply(sign, graph.nodes(), &dense);
                assert_pattern(name, &kept, &npz, &key);
                assert_eq!(kept.values(), npz.vector::<f64>(&format!("{key}.kept")).unwrap(), "{name} {key}");
            }
        }
    }
}

#[test]
fn nearest_pairs_are_those_of_the_golden_files() {
    for (name, file) in graphs() {
        let Golden { npz, graph, kernels } = load(name, &file);
        for kernel in kernels.iter().filter(|kernel| kernel["kind"] == "nearest") {
            let expected =
                npz.vector::<f64>(&format!("{}.eigenvalues", kernel["name"].as_str().unwrap())).unwrap();
            let built = build(&recipe(kernel).0, Route::Auto, &graph);
            assert_eq!(built.report.pairs, Pairs::Nearest(expected.len()), "{name} {}", kernel["name"]);
        }
    }
}

#[test]
fn diffusion_of_pytorch_geometric_agrees_under_a_threshold() {
    // Its top-k works by columns, does not symmetrise and breaks ties by chance: no counterpart here.
    let mut files = vec![("karate", 34, qdc_testing::golden("gdc_karate.npz"))];
    files.extend(qdc_testing::large_golden("gdc_cornell.npz").map(|path| ("cornell", 183, path)));
    for (name, nodes, file) in files {
        let npz = Npz::open(&file).unwrap();
        let graph = Graph::from_weighted_edges(nodes, edges(&npz, None), EdgeRule::Undirected).unwrap();
        for (method, filter) in [("ppr", Filter::ppr(0.15).unwrap()), ("heat", Filter::heat(3.0).unwrap())] {
            let sums = npz.vector::<f64>(&format!("{method}.dense_row_sums")).unwrap();
            let kernel = Recipe::new(filter);
            let whole = kernel.clone().sparsify(Sparsify::None).normalize(Normalize::None);
            let built = build(&whole, Route::Auto, &graph);
            assert!(farthest(&built.matrix.row_sums(), &sums) < 1e-10, "{name} {method}");
            let key = format!("{method}.threshold"); // at 0.001, gdc.json
            let built = build(&kernel.sparsify(Sparsify::epsilon(1e-3).unwrap()), Route::Auto, &graph);
            let (_, _, expected) = npz.matrix::<i32>(&format!("{key}.edge_index")).unwrap();
            let rows = built.matrix.iter().map(|entry| entry.0 as i32);
            let columns = built.matrix.iter().map(|entry| entry.1 as i32);
            assert_eq!(rows.chain(columns).collect::<Vec<_>>(), expected, "{name} {key}");
            let weight = npz.vector::<f64>(&format!("{key}.weight")).unwrap();
            assert!(farthest(built.matrix.values(), &weight) < 1e-10, "{name} {key}");
        }
    }
}
