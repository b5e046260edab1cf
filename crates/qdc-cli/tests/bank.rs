//! The bank and the learned window as a user runs them: filters handed on, ensembles, other graphs, figures.

mod support;

use std::path::Path;

use qdc_data::{DataDir, Dataset, EdgeReading, Shares};
use support::{json, refused, text};

const DATASET: &str = "csbm:n=60,homophily=0.8,seed=1";
const SHORT: &str = "--set hidden=8 --max-steps 8 --splits 0-1";

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_learned_window_is_saved_and_makes_a_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let record = json(folder, &format!("train {DATASET} --model window {SHORT} --save-filter f.toml"));
    assert_eq!(record["saved_filter"], "f.toml");
    let learned = record["learned"].as_array().unwrap();
    assert_eq!(learned.len(), 2);
    let validation = |at: usize| record["splits"][at]["validation"].as_f64().unwrap();
    let best = &learned[usize::from(validation(1) > validation(0))]["window"];
    let file = read(folder, "f.toml");
    assert!(file.contains("\n[filter]\nname = \"gaussian\"\n"), "{file}");
    let written = |name: &str| -> Option<f64> {
        file.lines().find_map(|line| line.strip_prefix(&format!("{name} = "))?.parse().ok())
    };
    let kernel = json(folder, &format!("kernel {DATASET} --filter f.toml -o k.npz"));
    assert_eq!(kernel["filter"], "gaussian");
    for name in ["mu", "sigma"] {
        assert_eq!(written(name), best[name].as_f64());
        assert_eq!(kernel["parameters"][name], best[name]);
    }
    let same =
        json(folder, &format!("kernel {DATASET} --mu {} --sigma {} -o s.npz", best["mu"], best["sigma"]));
    assert_eq!(same["entries"], kernel["entries"]);
    assert_eq!(std::fs::read(folder.join("k.npz")).unwrap(), std::fs::read(folder.join("s.npz")).unwrap());
    let told = text(folder, &format!("train {DATASET} --model window {SHORT} --quiet"));
    assert!(told.contains("learned windows (mu, sigma): "), "{told}");
}

#[test]
fn a_sum_of_filters_makes_the_sum_of_their_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sum = "[filter]\nname = 'sum'\n[[filter.terms]]\nweight = 2\nfilter = { name = 'heat', time = 3 }\n\
        [[filter.terms]]\nweight = -0.5\nfilter = { name = 'gaussian', mu = -0.5, sigma = 0.4 }\n";
    std::fs::write(folder.join("sum.toml"), sum).unwrap();
    let plain = "--sparsify none --normalize none";
    let made = json(folder, &format!("kernel karate --filter sum.toml {plain} -o sum.csv"));
    assert_eq!((&made["filter"], &made["parameters"]["weight_2"]), (&"sum".into(), &(-0.5).into()));
    assert!(made["error_bound"].as_f64().unwrap() < 1e-9, "{made}");
    json(folder, &format!("kernel karate --filter heat --time 3 {plain} -o heat.csv"));
    json(folder, &format!("kernel karate --mu -0.5 --sigma 0.4 {plain} -o gaussian.csv"));
    let values = |name: &str| -> Vec<f64> {
        read(folder, name).lines().filter_map(|line| line.rsplit(',').next()?.trim().parse().ok()).collect()
    };
    let (sum, heat, gaussian) = (values("sum.csv"), values("heat.csv"), values("gaussian.csv"));
    assert_eq!((sum.len(), heat.len(), gaussian.len()), (34 * 34, 34 * 34, 34 * 34));
    for at in 0..sum.len() {
        assert!((sum[at] - (2.0 * heat[at] - 0.5 * gaussian[at])).abs() < 1e-9, "{at}");
    }
    for solver in ["dense", "chebyshev"] {
        let again = json(
            folder,
            &format!("kernel karate --filter sum.toml --solver {solver} {plain} -o {solver}.csv"),
        );
        let largest =
            values(&format!("{solver}.csv")).iter().zip(&sum).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(largest <= again["error_bound"].as_f64().unwrap() + made["error_bound"].as_f64().unwrap());
    }
}

#[test]
fn filters_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("bad.toml"), "[filter]\nname = 'heat'\ntime = -1").unwrap();
    refused(folder, "kernel karate --filter bad.toml -o k.npz", 1, "bad.toml holds no filter");
    refused(folder, "kernel karate --filter none.toml -o k.npz", 1, "none.toml holds no filter");
    refused(folder, "kernel karate --filter gauss -o k.npz", 2, "'gauss' is no filter");
    std::fs::write(folder.join("good.toml"), "[filter]\nname = 'heat'\ntime = 1").unwrap();
    refused(
        folder,
        "kernel karate --filter good.toml --mu 0.3 -o k.npz",
        2,
        "--mu does not belong to --filter good.toml",
    );
    for model in ["gcn", "bank"] {
        let command = format!("train {DATASET} --model {model} --save-filter f.toml");
        refused(folder, &command, 2, "learns no single filter");
    }
}

#[test]
fn ensembles_stand_beside_the_single_network() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for model in ["bank", "window", "gcn"] {
        let alone = json(folder, &format!("train {DATASET} --model {model} {SHORT} --seeds 3"));
        let record = json(folder, &format!("train {DATASET} --model {model} {SHORT} --ensemble 3"));
        assert_eq!(record["ensemble_members"], 3);
        assert_eq!((&record["test_mean"], &record["seeds"]), (&alone["test_mean"], &alone["seeds"]));
        assert!((0.0..=1.0).contains(&record["ensemble_test_mean"].as_f64().unwrap()));
        assert_eq!(record["ensemble_test"].as_array().unwrap().len(), 2);
        assert!(alone.get("ensemble_test_mean").is_none());
    }
    let told = text(folder, &format!("train {DATASET} --model bank {SHORT} --ensemble 2 --quiet"));
    assert!(told.contains("2 seeds together: test ") && told.contains("shares of the channels"), "{told}");
    refused(folder, &format!("train {DATASET} --model bank --ensemble 3 --seeds 2"), 2, "not --seeds 2");
    refused(folder, &format!("train {DATASET} --model bank --ensemble 1"), 2, "1");
    let tune = format!("tune {DATASET} --model bank --space presets --max-steps 3 --splits 0-1 --study s.db");
    let first = json(folder, &tune);
    assert!(first.get("ensemble_test_mean").is_none());
    let report = json(folder, &format!("{tune} --ensemble 2"));
    assert_eq!(report["best"], first["best"]);
    assert_eq!(report["ensemble_trials"].as_array().unwrap().len(), 2);
    assert_eq!(report["ensemble_trials"][0], report["best"]["number"]);
    assert_eq!(json(folder, &format!("{tune} --ensemble 2"))["ensemble_test"], report["ensemble_test"]);
    assert!(text(folder, &format!("{tune} --ensemble 2")).contains("together: trials "));
}

#[test]
fn a_bank_predicts_on_another_graph_unless_it_knows_vertices_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = qdc_data::open(DATASET, &DataDir::new(folder), EdgeReading::default()).unwrap();
    let dataset: Dataset = source.into_dataset().unwrap().with_random_splits(Shares::default(), 0);
    qdc_data::write_dataset(&folder.join("here.npz"), &dataset).unwrap();
    for (model, preset) in [("bank", "--preset ends-knn"), ("window", "")] {
        json(folder, &format!("train here.npz --model {model} {preset} {SHORT} --save m"));
        // The same graph under another name: what is predicted is the same.
        let own = json(folder, "predict m");
        let other = json(folder, "predict m --graph here.npz");
        assert_eq!(own["predictions"], other["predictions"], "{model}");
        let elsewhere = json(folder, "predict m --graph csbm:n=80,homophily=0.8,seed=2");
        assert_eq!(elsewhere["predictions"].as_array().unwrap().len(), 80);
    }
    json(folder, &format!("train here.npz --model bank --preset ranks {SHORT} --save ranks"));
    json(folder, "predict ranks");
    let words = "learnt from adjacency rows, which mean something only for the vertices it was trained on";
    refused(folder, "predict ranks --graph here.npz", 1, words);
    refused(folder, "predict ranks --graph here.npz", 1, "hint: train with --preset ends");
}

#[test]
fn the_shares_of_channels_are_drawn_for_each_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    json(folder, &format!("figure shares {DATASET} csbm:n=50,homophily=0.2,seed=2 -o shares.svg"));
    let csv = read(folder, "shares.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 8, "{csv}");
    assert!(csv.contains(",L X,") && csv.contains("\"gaussian, μ = 1, σ = 0.5\""), "{csv}");
    let shares: Vec<f64> =
        csv.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse().ok()).collect();
    assert!((shares[..8].iter().sum::<f64>() - 8.0).abs() < 1e-4, "their mean is 1: {shares:?}");
}
