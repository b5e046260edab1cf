//! Dynamics, homophily, figures and the report as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

use qdc_tune::{Direction, Distribution, Outcome, Space, Study};

/// A labelled graph that needs no data.
const GRAPH: &str = "csbm:n=60,homophily=0.2,seed=1";

fn qdc(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("QDC_DATA")
        .env("QDC_CACHE", folder.join("cache"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("the binary runs")
}

fn json(folder: &Path, arguments: &str) -> serde_json::Value {
    let output = qdc(folder, &format!("{arguments} --json --quiet"));
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str, status: i32, message: &str) {
    let output = qdc(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {stderr}");
    assert!(stderr.contains(message), "{arguments}: {stderr}");
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn what_needs_labels_says_so_for_a_graph_without() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        "homophily grid:4x5",
        "homophily grid:4x5 --spectral",
        "homophily grid:4x5 --spectral --sigma 0.1",
        "suggest grid:4x5",
        "figure homophily grid:4x5 -o h.svg",
    ] {
        refused(folder.path(), command, 2, "grid:4x5 has no labels");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_vertex_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for equation in ["heat", "schrodinger"] {
        let command = format!("dynamics karate --equation {equation} --from 34 --times 1,2 -o d.csv");
        refused(folder.path(), &command, 2, "34");
    }
    refused(folder.path(), "dynamics karate --equation heat --from 0 --times -1", 2, "-1");
    assert!(!folder.path().join("d.csv").exists());
}

#[test]
fn a_study_without_test_attributes_draws_nothing_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let storage = qdc_tune::storage::Sqlite::open(folder.path().join("bare.db")).unwrap();
    let space = Space::new([("mu", Distribution::uniform(-1.0, 1.0).unwrap())]).unwrap();
    let mut study = Study::open(storage, "cornell/gcn+qdc", Direction::Maximize, space).unwrap();
    let asked = study.ask().unwrap();
    study.tell(&asked, Outcome::complete(0.5)).unwrap();
    for command in ["figure violin bare.db -o v.svg", "figure all bare.db -o all", "report bare.db -o r.html"]
    {
        refused(folder.path(), command, 1, "bare.db holds no finished trial with a test score");
    }
    refused(folder.path(), "figure violin -o v.svg", 2, "needs a study");
    refused(folder.path(), "figure scatter none.db -o v.svg", 1, "there is no study file none.db");
    assert!(!folder.path().join("v.svg").exists() && !folder.path().join("r.html").exists());
}

#[test]
fn what_cannot_be_written_is_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["report karate", "demo"] {
        refused(folder.path(), &format!("{command} -o missing/r.html"), 1, "missing");
        refused(folder.path(), &format!("{command} -o r.txt"), 2, "a report ends in .html");
    }
    let endings =
        if cfg!(feature = "png") { "a figure ends in .svg or .png" } else { "a figure ends in .svg" };
    refused(folder.path(), "figure barbell -o b.docx", 2, endings);
    refused(folder.path(), "figure animation -o b.svg", 2, "the animation ends in .html");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn one_command_draws_every_figure_of_a_study_and_another_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["gcn", "gcn+qdc", "gcn+multiscale"] {
        json(folder.path(), &format!("tune {GRAPH} --model {model} --trials 3 --study s.db"));
    }
    let drawn = json(folder.path(), "figure all s.db -o all");
    assert_eq!(drawn["skipped"], serde_json::json!([]));
    for name in ["barbell", "homophily", "comparison", "violin", "scatter", "sparsity", "filter", "bank"] {
        let svg = read(folder.path(), &format!("all/{name}.svg"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(read(folder.path(), &format!("all/{name}.csv")).lines().count() > 2, "{name}");
    }
    assert!(read(folder.path(), "all/animation.html").contains("quantum particle"));
    let homophily = read(folder.path(), "all/homophily.svg");
    assert!(
        homophily.contains(">best μ of the study<"),
        "the study's best mu is marked, and the legend says so"
    );
    assert!(
        read(folder.path(), "all/filter.svg").contains(&format!(">{GRAPH}: gaussian")),
        "the title names the graph"
    );
    let bank = read(folder.path(), "all/bank.svg");
    assert!(bank.contains(">gaussian, μ = 1, σ = 0.125<") && bank.contains(": the windows of the bank<"));
    assert!(!folder.path().join("all/shares.svg").exists(), "shares need a training of their own");
    assert!(read(folder.path(), "all/sparsity.svg").contains(">entries in a cell:<"), "shades have a legend");
    assert!(read(folder.path(), "all/barbell.svg").contains("≥ 0."), "a scale that clips says so");
    assert_eq!(read(folder.path(), "all/violin.csv").lines().count(), 1 + 9, "every trial is written down");

    json(folder.path(), "report s.db -o r.html");
    let page = read(folder.path(), "r.html");
    for words in [
        "In numbers",
        "The kernel in words",
        "Before and after",
        "Where like is joined to like",
        "Networks compared",
        "The window that was learned",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for words in
        ["The kernel, by hand", "Training curves", "Models compared", "Studies", "All trials", "Why quantum"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org").count()
    );
}

#[test]
fn a_folder_of_results_stands_for_the_studies_it_was_made_from() {
    let folder = tempfile::tempdir().unwrap();
    for (model, space) in [("mlp", "paper"), ("gcn+qdc", "paper"), ("gcn+qdc", "wide")] {
        let command =
            format!("tune {GRAPH} --model {model} --space {space} --trials 3 --seeds 2 --study s.db");
        json(folder.path(), &command);
    }
    let table = json(folder.path(), "table s.db --write kept");
    assert_eq!(table["cells"].as_array().unwrap().len(), 3);
    for figure in ["violin", "comparison"] {
        let [from_study, from_results] = [("s.db", "study"), ("kept", "results")].map(|(input, output)| {
            json(folder.path(), &format!("figure {figure} {input} -o {output}.svg"));
            let mut lines: Vec<String> =
                read(folder.path(), &format!("{output}.csv")).lines().map(str::to_owned).collect();
            lines.sort();
            lines
        });
        assert!(from_study.len() > 3);
        assert_eq!(from_results, from_study, "{figure}");
    }
    json(folder.path(), "report kept -o r.html");
    let page = read(folder.path(), "r.html");
    assert!(page.contains("Models compared") && page.contains("gcn+qdc (wide)"), "spaces are told apart");
    assert!(!page.contains("Training curves"), "results are shown, nothing is trained");
    for figure in ["filter", "sparsity", "bank", "homophily", "shares"] {
        refused(folder.path(), &format!("figure {figure} kept -o f.svg"), 2, "this figure needs a graph");
    }
    let drawn = json(folder.path(), "figure all kept -o all");
    assert_eq!(drawn["skipped"].as_array().unwrap().len(), 4, "{drawn}");
    json(folder.path(), &format!("figure filter {GRAPH} kept -o f.svg"));
    std::fs::write(folder.path().join("kept/cells/bad.toml"), "model = 'gcn'").unwrap();
    refused(folder.path(), "report kept -o r.html", 1, "it has no [result]");
}

#[test]
fn learned_filters_are_drawn_over_the_eigenvalues() {
    let folder = tempfile::tempdir().unwrap();
    let training =
        format!("train {GRAPH} --model window --splits 0 --max-steps 5 --save-filter learned.toml");
    json(folder.path(), &training);
    std::fs::write(folder.path().join("heat.toml"), "[filter]\nname = \"heat\"\ntime = 3.0\n").unwrap();
    let figure = |files: &str| {
        json(folder.path(), &format!("figure filter {GRAPH} {files} -o f.svg"));
        read(folder.path(), "f.svg")
    };
    let one = figure("--filter learned.toml");
    assert!(one.contains(": gaussian, μ = "), "the title names a single filter");
    let two = figure("--filter learned.toml --filter heat.toml");
    assert!(two.contains(">gaussian, μ = ") && two.contains(">heat, t = 3<"), "the legend names both");
    refused(folder.path(), &format!("figure filter {GRAPH} --filter no.toml -o f.svg"), 1, "no.toml");
    refused(folder.path(), &format!("figure bank {GRAPH} --filter heat.toml -o f.svg"), 2, "does not belong");
    refused(folder.path(), &format!("figure filter {GRAPH} --filter heat.toml --mu 1 -o f.svg"), 2, "--mu");
}

#[test]
fn help_offers_png_only_where_this_build_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let help = String::from_utf8(qdc(folder.path(), "figure --help").stdout).unwrap();
    assert_eq!(help.contains(".png"), cfg!(feature = "png"), "{help}");
    if !cfg!(feature = "png") {
        refused(folder.path(), "figure barbell -o b.png", 2, "--features png");
    }
}

/// The notice; the sliders have one of their own, hidden until it is true.
const IDENTITY: &str = "Nearly the identity: this network is an MLP.";

#[test]
fn the_page_tells_the_kernels_own_numbers_and_warns_of_the_identity() {
    let folder = tempfile::tempdir().unwrap();
    json(folder.path(), "report karate --no-training -o wide.html");
    let page = read(folder.path(), "wide.html");
    for words in
        ["Its diagonal carries", "of its weight", "in the graph and", "in the kernel.", "of the exact one"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches(IDENTITY).count(), 1, "only the sliders' own, hidden");
    assert!(!page.contains("<dt>splits</dt>"), "karate has no splits, and the page does not count them");
    // A filter that is level over the spectrum gives the identity.
    json(folder.path(), "report karate --sigma 20 --epsilon 0.01 --no-training -o identity.html");
    let page = read(folder.path(), "identity.html");
    assert_eq!(page.matches(IDENTITY).count(), 2);
    assert!(page.contains("34 vertices have no neighbour in the kernel and count 0"));
    json(folder.path(), "report karate --epsilon 0.99 --sigma 0.01 --no-training -o empty.html");
    assert!(read(folder.path(), "empty.html").contains("The kernel is empty."));
}

#[test]
fn a_study_whose_best_kernel_is_the_identity_is_called_an_mlp() {
    let folder = tempfile::tempdir().unwrap();
    for (model, share) in [("gcn+qdc", 0.999), ("gcn+bpdc", 0.9), ("gcn+multiscale", 0.999)] {
        let storage = qdc_tune::storage::Sqlite::open(folder.path().join("s.db")).unwrap();
        let space = Space::new([("mu", Distribution::uniform(-1.0, 1.0).unwrap())]).unwrap();
        let mut study = Study::open(storage, model, Direction::Maximize, space).unwrap();
        for (key, value) in [("dataset", "elsewhere"), ("model", model)] {
            study.set_attribute(key, serde_json::json!(value)).unwrap();
        }
        let asked = study.ask().unwrap();
        let outcome = Outcome::complete(0.5)
            .with("test", serde_json::json!([0.4, 0.6]))
            .with("test_mean", 0.5)
            .with("test_std", 0.1)
            .with("kernel", serde_json::json!({ "diagonal_share": share }));
        study.tell(&asked, outcome).unwrap();
    }
    json(folder.path(), "report s.db -o r.html");
    let page = read(folder.path(), "r.html");
    assert_eq!(page.matches(IDENTITY).count(), 1);
    assert!(
        page.contains("less than 1 % of its weight) for gcn+qdc on elsewhere."),
        "a second tower sees the graph"
    );
    json(folder.path(), "figure comparison s.db -o c.svg");
    let svg = read(folder.path(), "c.svg");
    assert!(svg.contains(">gcn+qdc *<") && !svg.contains("bpdc *") && !svg.contains("multiscale *"));
}

#[test]
fn a_report_trains_every_split_of_a_small_dataset_and_its_page_lets_one_be_picked() {
    let folder = tempfile::tempdir().unwrap();
    json(folder.path(), &format!("report {GRAPH} -o r.html"));
    let page = read(folder.path(), "r.html");
    assert_eq!(page.matches("type=\"radio\"").count(), 10);
    assert_eq!(page.matches("<g data-layer=").count(), 2 * 10, "wide and narrow");
    assert!(page.contains("The dataset has no splits: 48 % of the vertices"));
    assert!(page.contains("mlp on csbm") && page.contains("split 9:"), "each split can be read");
    assert!(page.len() < 2_000_000);
}

#[test]
fn a_graph_too_large_for_the_sliders_says_so_and_shows_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    json(folder.path(), "report grid:21x20 -o r.html");
    let page = read(folder.path(), "r.html");
    assert!(page.contains("This graph has 420 vertices") && page.contains("up to 400"));
    assert!(page.contains("Before and after") && page.contains("The spectrum and the filter"));
    assert!(!page.contains("class=\"by-hand\""));
}

#[test]
fn the_barbell_shows_what_the_method_claims() {
    let folder = tempfile::tempdir().unwrap();
    json(folder.path(), "figure barbell -o b.svg");
    let csv = read(folder.path(), "b.csv");
    let at_50: Vec<Vec<f64>> = csv
        .lines()
        .filter(|line| line.starts_with("50,"))
        .map(|line| line.split(',').map(|number| number.parse().unwrap()).collect())
        .collect();
    let across = |column: usize| at_50[21..].iter().map(|row| row[column]).sum::<f64>();
    assert!(
        (across(2) - 0.074).abs() < 5e-4 && (across(3) - 0.765).abs() < 5e-4,
        "{} {}",
        across(2),
        across(3)
    );
    let heat = at_50[..20].iter().map(|row| row[2]);
    let (least, most) = (heat.clone().fold(1.0, f64::min), heat.fold(0.0, f64::max));
    assert!(most < 1.01 * least, "heat is even within the clique to 1 %: {least} to {most}");
}

#[test]
fn a_start_deep_inside_a_clique_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let moved = json(folder.path(), "dynamics barbell:20,1 --equation schrodinger --from 0 --times 50");
    let state: Vec<f64> = serde_json::from_value(moved["states"][0].clone()).unwrap();
    let across: f64 = state[21..].iter().sum();
    assert!((across - 0.002).abs() < 5e-4, "{across}");
}

#[test]
fn homophily_of_windows_needs_no_eigenvectors() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), &format!("homophily {GRAPH} --spectral --sigma 0.1"));
    let windows = found["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 20);
    assert!(windows.iter().all(|window| (0.0..=1.0).contains(&window["homophily"].as_f64().unwrap())));
    refused(folder.path(), &format!("homophily {GRAPH} --sigma 0.1"), 2, "--spectral");
}
