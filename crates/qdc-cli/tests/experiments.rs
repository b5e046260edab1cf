//! Experiments one can trust: studies with an identity, trials trained again, seeds, towers.

mod support;

use qdc_tune::storage::{Sqlite, Storage};
use serde_json::{Value, json};
use support::{json, qdc, refused, text};

const GRAPH: &str = "csbm:n=60";
const QUICK: &str = "--max-steps 15 --splits 0-2";

fn tune(folder: &std::path::Path, more: &str) -> Value {
    json(folder, &format!("tune {GRAPH} --model gcn --trials 3 --study s.db {QUICK} {more}"))
}

#[test]
fn a_study_is_continued_only_as_it_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let first = tune(place, "");
    let begun = format!("tune {GRAPH} --model gcn --trials 3 --study s.db {QUICK}");
    for (other, message) in [
        ("--seed 1", "was begun with"),
        ("--batch 1", "was begun with search.batch 4, and this is search.batch 1"),
        ("--sampler random", "was begun with search.sampler tpe, and this is search.sampler random"),
        ("--prune", "was begun with search.pruning"),
        ("--start defaults", "was begun with search.start nothing, and this is search.start"),
        ("--split 60/20/20", "was begun with dataset.splits"),
        ("--metric f1", "was begun with metric accuracy, and this is metric f1"),
        ("--patience 7", "was begun with schedule.stopping.patience 50, and this is"),
    ] {
        refused(place, &format!("{begun} {other}"), 1, message);
        refused(place, &format!("{begun} {other}"), 1, "hint: --study-name NAME");
    }
    let again = tune(place, "");
    assert_eq!((&again["best"], &again["experiment"]), (&first["best"], &first["experiment"]));

    let other = tune(place, "--seed 1 --batch 1 --sampler random --study-name other");
    assert_eq!(other["trials"], 3);
    assert_ne!(other["experiment"], first["experiment"]);
    let listing = json(place, "study list s.db");
    assert_eq!(listing["studies"].as_array().unwrap().len(), 2);
    let attributes = Sqlite::open(place.join("s.db")).unwrap().studies().unwrap()[0].attributes.clone();
    assert_eq!(attributes["seed"], 0, "the first study says what it was");
}

#[test]
fn a_fixed_value_belongs_to_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let space = |layers: u32| {
        let text = format!("[fixed]\nlayers = {layers}\n[search]\nhidden = [4, 8]\n");
        std::fs::write(place.join("own.toml"), text).unwrap();
    };
    space(1);
    let command = format!("tune {GRAPH} --model gcn --space own.toml --trials 1 --study s.db {QUICK}");
    text(place, &command);
    space(2);
    refused(place, &command, 1, "hyperparameters.layers 1, and this is hyperparameters.layers 2");
}

#[test]
fn every_trial_carries_the_hash_of_its_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let report = tune(folder.path(), "");
    let mut storage = Sqlite::open(folder.path().join("s.db")).unwrap();
    let study = storage.studies().unwrap().remove(0);
    assert_eq!(study.attributes["experiment_hash"], report["experiment"]);
    for trial in storage.trials(study.id, 0, &[]).unwrap() {
        assert_eq!(trial.user_attributes["experiment_hash"], report["experiment"]);
        assert_eq!(trial.user_attributes["scores"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn splits_and_steps_of_a_search_are_those_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    tune(folder.path(), "");
    let mut storage = Sqlite::open(folder.path().join("s.db")).unwrap();
    let trials = storage.trials(1, 0, &[]).unwrap();
    let scores = trials[0].user_attributes["scores"].as_array().unwrap();
    let splits: Vec<u64> = scores.iter().map(|one| one["split"].as_u64().unwrap()).collect();
    assert_eq!(splits, [0, 1, 2]);
    assert!(scores.iter().all(|one| one["steps"].as_u64().unwrap() <= 15));
}

/// Scores without the time they took.
fn timeless(scores: &Value) -> Vec<Value> {
    let mut scores = scores.as_array().unwrap().clone();
    scores.iter_mut().for_each(|one| one["seconds"] = Value::Null);
    scores
}

#[test]
fn a_trial_trained_again_gives_the_same_scores_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let command =
        format!("tune {GRAPH} --model gcn+multiscale --trials 3 --study s.db --seed 5 --split 50/25/25");
    let report = json(place, &format!("{command} {QUICK}"));
    let mut storage = Sqlite::open(place.join("s.db")).unwrap();
    let trials = storage.trials(1, 0, &[]).unwrap();
    let best = json(place, "train --from s.db");
    let number = report["best"]["number"].as_u64().unwrap() as usize;
    assert_eq!(timeless(&best["splits"]), timeless(&trials[number].user_attributes["scores"]));
    for number in 0..3 {
        let again = json(place, &format!("train --from s.db --trial {number}"));
        assert_eq!(timeless(&again["splits"]), timeless(&trials[number].user_attributes["scores"]));
        assert_eq!(again["validation_mean"], json!(trials[number].value));
    }
    refused(place, "train --from s.db --trial 9", 1, "has no trial 9");
    refused(place, "train --from s.db --study-name nonsense", 1, "holds no such study");
    refused(place, "train --from nowhere.db", 1, "there is no study file");
}

#[test]
fn several_seeds_are_averaged_within_splits() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let run =
        json(place, &format!("train {GRAPH} --model gcn {QUICK} --seed 3 --seeds 2 --scores scores.csv"));
    let scores = run["splits"].as_array().unwrap();
    let of = |split: u64, seed: u64| {
        let one = scores.iter().find(|one| one["split"] == split && one["seed"] == seed).unwrap();
        one["test"].as_f64().unwrap()
    };
    let means: Vec<f64> = (0..3).map(|split| 0.5 * (of(split, 3) + of(split, 4))).collect();
    let mean = means.iter().sum::<f64>() / 3.0;
    let deviation = (means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    assert!((run["test_mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!((run["test_std"].as_f64().unwrap() - deviation).abs() < 1e-12);
    let alone = json(place, &format!("train {GRAPH} --model gcn {QUICK} --seed 3"));
    assert_eq!(
        timeless(&alone["splits"])[..],
        timeless(&run["splits"])[..3],
        "a seed does not see the others"
    );
    let csv = std::fs::read_to_string(place.join("scores.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("split,seed,train,validation,test,steps,seconds", 7));
    assert!(lines[4].starts_with("0,4,"), "{}", lines[4]);
}

#[test]
fn the_best_trial_is_scored_with_every_seed() {
    let folder = tempfile::tempdir().unwrap();
    let once = tune(folder.path(), "");
    assert_eq!(once["best"]["seeds"], 1);
    let thrice = tune(folder.path(), "--seeds 3");
    assert_eq!(thrice["best"]["seeds"], 3);
    let again = json(folder.path(), "train --from s.db --seeds 3");
    assert_eq!(again["test_mean"], thrice["best"]["test_mean"]);
    assert_eq!(again["test_std"], thrice["best"]["test_std"]);
}

#[test]
fn a_search_begins_at_given_points_and_the_table_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    tune(place, "--start defaults --start hidden=16,weight_decay=0.01 --seeds 2 --finalists 2");
    let trials = Sqlite::open(place.join("s.db")).unwrap().trials(1, 0, &[]).unwrap();
    let points: Vec<_> = trials.iter().map(qdc_tune::Trial::parameters).collect();
    assert_eq!(points.len(), 3);
    assert_eq!((&points[0]["hidden"], &points[0]["weight_decay"]), (&json!(64), &json!(5e-4)));
    assert_eq!((&points[1]["hidden"], &points[1]["weight_decay"]), (&json!(16), &json!(0.01)));
    let cell = json(place, "table s.db --format json")["cells"][0].clone();
    assert_eq!((&cell["started"], &cell["finalists"], &cell["seeds"]), (&json!(2), &json!(2), &json!(2)));
    assert!(text(place, "table s.db").contains('‡'));
    let begin =
        |start: &str| format!("tune {GRAPH} --model gcn --study t.db --trials 1 {QUICK} --start {start}");
    refused(place, &begin("defaults --finalists 2"), 2, "--finalists needs --seeds 2 or more");
    refused(place, &begin("hidden"), 2, "write defaults, or mu=0.9");
    refused(place, &begin("hidden=15"), 2, "hidden = 15 is not in {2, 4, 8");
    refused(place, &begin("hidden=15"), 2, "hint: qdc space show paper");
    refused(place, &begin("mu=0.5"), 2, "mu");
}

/// The journal of a study that the first version (commit 24195e0) made and exported:
/// `qdc tune csbm:n=30 --model gcn --trials 2 --seed 3`.
const FIRST_VERSION: &str = include_str!("first_version.log");

#[test]
fn a_study_of_the_first_version_is_shown_trained_from_and_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    std::fs::write(place.join("first.log"), FIRST_VERSION).unwrap();
    text(place, "study import first.log --study s.db");
    assert!(text(place, "study list s.db").contains("2/2 trials"));
    assert!(text(place, "table s.db").contains("93.33"));
    let again = "tune csbm:n=30 --model gcn --trials 3 --seed 3 --study s.db";
    refused(place, again, 1, "does not say what it was begun with");
    refused(place, again, 1, "hint: --study-name NAME");
    let trained = json(place, "train --from s.db --trial 0 --max-steps 5");
    assert_eq!((&trained["hyperparameters"]["hidden"], &trained["seed"]), (&json!(128), &json!(3)));
}

#[test]
fn a_dataset_that_has_changed_since_the_study_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    tune(place, "");
    let file = rusqlite::Connection::open(place.join("s.db")).unwrap();
    let rows = "UPDATE study_user_attributes SET value_json = replace(value_json, '\"graph\":\"', \
                '\"graph\":\"0') WHERE key = 'experiment'";
    assert_eq!(file.execute(rows, []).unwrap(), 1);
    refused(place, "train --from s.db", 1, "the edges of csbm:n=60 are not those the study was made with");
}

const THREE: &str = "dataset = 'csbm:n=60'\nseed = 2\n[[tower]]\nnetwork = 'gcn'\n[[tower]]\nnetwork = 'gcn'\n\
    rewiring = 'qdc'\nmu = 0.9\n[[tower]]\nnetwork = 'gcn'\nrewiring = 'qdc'\nmu = -0.5\n\
    [hyperparameters]\nhidden = 8\n[schedule]\nmax_steps = 15\n[result]\ntest_mean = 1.0\n";

#[test]
fn three_towers_train_save_predict_and_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    std::fs::write(place.join("three.toml"), THREE).unwrap();
    let run = json(place, "train --config three.toml --save model.safetensors");
    assert_eq!(run["model"], "gcn/gcn+qdc/gcn+qdc");
    assert_eq!(
        (&run["hyperparameters"]["qdc_mu"], &run["hyperparameters"]["tower3_mu"]),
        (&json!(0.9), &json!(-0.5))
    );
    let name = "train csbm:n=60 --model gcn/gcn+qdc/gcn+qdc --set mu=0.9 --set tower3_mu=-0.5 --set hidden=8";
    let named = json(place, &format!("{name} --seed 2 --max-steps 15"));
    assert_eq!(timeless(&named["splits"]), timeless(&run["splits"]));
    let predicted = json(place, "predict model.safetensors");
    assert_eq!(predicted["nodes"], 60);
    let space = "[fixed]\nmu = 0.9\n[search]\ntower3_mu = { low = -1.0, high = 0.0 }\nqdc_hidden = [4, 8]\n";
    std::fs::write(place.join("space.toml"), space).unwrap();
    let model = "--model gcn/gcn+qdc/gcn+qdc --space space.toml";
    let found = json(place, &format!("tune {GRAPH} {model} --trials 3 --study s.db {QUICK}"));
    assert!(found["best"]["parameters"]["tower3_mu"].as_f64().unwrap() < 0.0, "{found}");
    let again = json(place, "train --from s.db");
    assert_eq!(again["test_mean"], found["best"]["test_mean"]);
}

#[test]
fn the_route_and_the_device_of_a_trial_are_written_down_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let model = "--model gcn+multiscale --device cpu --trials 1 --space wide";
    json(place, &format!("tune {GRAPH} {model} --study s.db {QUICK}"));
    let trial = Sqlite::open(place.join("s.db")).unwrap().trials(1, 0, &[]).unwrap().remove(0);
    let towers = trial.user_attributes["towers"].as_array().unwrap().clone();
    assert_eq!((&trial.user_attributes["device"], &towers[0]["route"]), (&json!("cpu"), &Value::Null));
    assert_eq!(towers[1]["recipe"]["filter"]["name"], "gaussian");
    let again = json(place, "train --from s.db");
    assert_eq!((&again["towers"], &again["device"]), (&json!(towers), &json!("cpu")));

    // A graph this small is decomposed; the file says otherwise, and the record is that of the same experiment.
    let run = |routes: &str| {
        let file =
            format!("dataset = '{GRAPH}'\nmodel = 'gcn+multiscale'\ndevice = 'cpu'\nroutes = [{routes}]\n");
        std::fs::write(place.join("run.toml"), file).unwrap();
        json(place, "train --config run.toml --splits 0 --max-steps 2")
    };
    let (by_itself, by_series) = (run(""), run("'auto', 'chebyshev'"));
    assert_eq!(by_itself["towers"][1]["route"], "dense");
    assert_eq!(by_series["towers"][1]["route"], "chebyshev");
    assert_eq!(by_itself["experiment"], by_series["experiment"]);
    std::fs::write(
        place.join("run.toml"),
        format!("dataset = '{GRAPH}'\nmodel = 'gcn'\ndevice = 'abacus'\n"),
    )
    .unwrap();
    refused(place, "train --config run.toml", 2, "'abacus' is none of auto, cpu and cuda");
}

#[test]
fn a_run_tells_what_each_tower_sees() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!("train {GRAPH} --model gcn+multiscale --splits 0 --max-steps 2");
    let run = json(folder.path(), &command);
    let [plain, kernel] = run["towers"].as_array().unwrap().as_slice() else { panic!("{}", run["towers"]) };
    assert_eq!((&plain["rewiring"], &kernel["rewiring"]), (&json!("plain"), &json!("qdc")));
    assert_eq!(plain["homophily_after"], plain["homophily_before"], "L joins what the graph joins");
    assert_ne!(kernel["homophily_after"], kernel["homophily_before"]);
    let share = kernel["diagonal_share"].as_f64().unwrap();
    assert_eq!(kernel["entries_per_row"], run["kernel"]["entries_per_row"]);
    let told = text(folder.path(), &command);
    let line = told.lines().find(|line| line.starts_with("tower 2 by ")).expect("a line for the kernel");
    for part in [format!("{:.1} % of its mass on the diagonal", 100.0 * share), "homophily 0.".to_owned()] {
        assert!(line.contains(&part), "{line}");
    }

    let dropped = json(folder.path(), &format!("{command} --set diagonal=drop"));
    let without = &dropped["towers"][1];
    assert_eq!(
        (&without["diagonal_share"], &without["homophily_after"]),
        (&json!(0.0), &kernel["homophily_after"])
    );
    assert_eq!(
        without["entries_per_row"].as_f64(),
        kernel["entries_per_row"].as_f64().map(|entries| entries - 1.0)
    );
    assert_ne!(dropped["splits"][0]["validation_loss"], run["splits"][0]["validation_loss"]);
}

#[test]
fn a_configuration_that_is_wrong_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    std::fs::write(place.join("wrong.toml"), "dataset = 'csbm:n=60'\nmodel = 'gcn'\nsteps = 3\n").unwrap();
    refused(place, "train --config wrong.toml", 1, "wrong.toml");
    refused(place, "train --config missing.toml", 1, "missing.toml");
    let output = qdc(place, "train --config wrong.toml --from s.db");
    assert_eq!(output.status.code(), Some(2));
    refused(place, "train --model gcn", 2, "DATASET");
}

#[test]
fn random_splits_in_place_of_a_datasets_own_are_remarked_on() {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), &format!("train {GRAPH} --model mlp --max-steps 2 --split 60/20/20"));
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("in place of"), "a generator has no splits");
}

#[test]
fn the_results_of_studies_are_a_folder_whose_cells_train_again_to_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for model in ["mlp", "gcn+qdc"] {
        let search = format!(
            "tune csbm:n=80,homophily=0.2,seed=0 --model {model} --trials 2 --max-steps 5 --splits 0-1 --seeds 2"
        );
        json(here, &format!("{search} --space wide --study study.db"));
    }
    text(here, "table study.db --write results");
    let csv = std::fs::read_to_string(here.join("results/table.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(
        lines[0].starts_with("dataset,model,space,trials,seeds,test_mean,test_std,validation_mean"),
        "{csv}"
    );
    assert!(lines[0].ends_with("published_mean,published_std,diagonal_share,config"), "{csv}");
    assert!(std::fs::read_to_string(here.join("results/table.md")).unwrap().contains("gcn+qdc"));
    // A folder grows by the cells of another study file, and keeps those it has.
    let other = "tune csbm:n=80,homophily=0.2,seed=0 --model gcn --trials 1 --max-steps 5 --splits 0-1";
    json(here, &format!("{other} --space wide --study other.db"));
    let (alone, both) = (text(here, "table study.db"), text(here, "table results"));
    assert_eq!(alone, both, "a folder is read as the studies it was made from");
    text(here, "table results other.db --write results");
    let grown = std::fs::read_to_string(here.join("results/table.csv")).unwrap();
    assert_eq!(grown.lines().count(), 4, "{grown}");
    text(here, "table other.db study.db --write whole");
    for file in ["table.csv", "table.md"] {
        let read = |folder: &str| std::fs::read_to_string(here.join(folder).join(file)).unwrap();
        assert_eq!(read("results"), read("whole").replace("whole/", "results/"));
    }
    // Of two copies of a study the longer one stays with its own trials, here the folder's.
    std::fs::copy(here.join("other.db"), here.join("shorter.db")).unwrap();
    json(here, &format!("{} --space wide --study other.db", other.replace("--trials 1", "--trials 2")));
    text(here, "table results other.db --write results");
    text(here, "table results shorter.db --write results");
    let cells = std::fs::read_dir(here.join("results/cells")).unwrap();
    let texts = cells.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let longer: toml::Table =
        texts.filter(|text| text.contains("model = \"gcn\"")).last().unwrap().parse().unwrap();
    assert_eq!(longer["result"]["search"]["validation"].as_array().unwrap().len(), 2);
    refused(here, "table results --space paper", 1, "holds no finished trial");
    for line in &lines[1..] {
        let file = line.rsplit(',').next().unwrap();
        let cell: toml::Table = std::fs::read_to_string(here.join(file)).unwrap().parse().unwrap();
        let result = cell["result"].as_table().unwrap();
        assert_eq!((result["trials"].as_integer(), result["failed"].as_integer()), (Some(2), Some(0)));
        assert!(result["command"].as_str().unwrap().ends_with(file));
        let again = json(here, &format!("train --config {file}"));
        assert_eq!(again["test_mean"].as_f64(), result["test_mean"].as_float(), "{file}");
        assert_eq!(again["test_std"].as_f64(), result["test_std"].as_float(), "{file}");
        let splits = result["splits"].as_array().unwrap();
        assert_eq!(splits.len(), 4);
        for (then, now) in splits.iter().zip(again["splits"].as_array().unwrap()) {
            assert_eq!(then["test"].as_float(), now["test"].as_f64(), "{file}");
        }
    }
}
