//! Suggestion by suggestion against Optuna, by teacher forcing: for trial n the sampler is given trials 0..n-1 from the
//! file, and must suggest what the file has for n.
//!
//! `tpe_gcn_qdc` and `tpe_multiscale`: Optuna 3.6.1, univariate. `tpe_integers`: the same with whole numbers
//! and steps. `tpe_multivariate_*`: Optuna 5.0.0, multivariate with constant liar
//! (`bench/tune/record_fixtures.py`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use qdc_tune::sampler::{History, Sampler, Streams};
use qdc_tune::{Direction, Distribution, Space, State, Trial};
use serde_json::Value;

struct Fixture {
    space: Space,
    sampler: Sampler,
    seed: u32,
    batch: usize,
    trials: Vec<Value>,
}

fn read(name: &str) -> Fixture {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap();
    let parameters = file["space"].as_array().unwrap().iter().map(|entry| {
        let distribution = match entry.get("distribution") {
            Some(distribution) => Distribution::from_json(&distribution.to_string()),
            None if entry["type"] == "categorical" => {
                Distribution::categorical(entry["choices"].as_array().unwrap().clone())
            }
            None => {
                let (low, high) = (entry["low"].as_f64().unwrap(), entry["high"].as_f64().unwrap());
                if entry["log"] == true {
                    Distribution::log_uniform(low, high)
                } else {
                    Distribution::uniform(low, high)
                }
            }
        };
        (entry["name"].as_str().unwrap().to_owned(), distribution.unwrap())
    });
    Fixture {
        space: Space::new(parameters).unwrap(),
        sampler: if file["multivariate"] == true { Sampler::TpeMultivariate } else { Sampler::Tpe },
        seed: file["sampler_seed"].as_u64().unwrap() as u32,
        batch: file["batch"].as_u64().unwrap_or(1) as usize,
        trials: file["trials"].as_array().unwrap().clone(),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1e-300) || found == expected
}

/// Whether a suggestion is one of the candidates that tied with Optuna's choice.
fn is_tied(space: &Space, row: &Value, index: usize, found: &[f64]) -> bool {
    match &row["tied"][index] {
        Value::Array(values) => values.iter().any(|value| close(found[index], value.as_f64().unwrap())),
        _ => {
            row["tied"].as_array().unwrap().iter().any(|point| {
                point[space.name(index)].as_f64().is_some_and(|value| close(found[index], value))
            })
        }
    }
}

fn replay(name: &str) {
    let Fixture { space, sampler, seed, batch, trials } = read(name);
    let mut history = History::new(&space, Direction::Maximize);
    let mut streams = Streams::new(seed);
    let mut running: Vec<(Vec<f64>, Trial)> = Vec::new();
    let mut ties = 0;
    for (number, row) in trials.iter().enumerate() {
        let points: Vec<Vec<f64>> = running.iter().map(|(point, _)| point.clone()).collect();
        let found = sampler.suggest(&space, &mut history, &points, &mut streams);
        let expected = numbers(&row["params"]);
        for index in 0..space.len() {
            if !close(found[index], expected[index]) {
                let tied = is_tied(&space, row, index, &found);
                assert!(
                    tied,
                    "{name}, trial {number}: {} {} instead of {}",
                    space.name(index),
                    found[index],
                    expected[index]
                );
                ties += 1;
            }
        }
        let next = |stream: &qdc_tune::RandomState| stream.clone().next_double();
        assert_eq!(
            next(&streams.startup),
            row["next_startup"].as_f64().unwrap(),
            "{name}, start-up stream, trial {number}"
        );
        assert_eq!(
            next(&streams.main),
            row["next_main"].as_f64().unwrap(),
            "{name}, main stream, trial {number}"
        );
        let trial = Trial {
            id: number as i64,
            number: number as u64,
            state: State::Complete,
            value: row["value"].as_f64(),
            parameters: space
                .iter()
                .zip(&expected)
                .map(|((name, distribution), value)| (name.to_owned(), (distribution.clone(), *value)))
                .collect(),
            intermediate: BTreeMap::new(),
            user_attributes: BTreeMap::new(),
            system_attributes: BTreeMap::new(),
            times: (None, None),
        };
        running.push((expected, trial));
        if running.len() == batch {
            running.drain(..).for_each(|(_, trial)| history.insert(&trial));
        }
    }
    assert!(ties * 20 < trials.len() * space.len(), "{name}: {ties} suggestions settled by a tie");
}

#[test]
fn univariate_suggestions_are_those_of_optuna_3_6() {
    replay("tpe_gcn_qdc.json");
    replay("tpe_multiscale.json");
}

#[test]
fn whole_numbers_and_steps_are_those_of_optuna_3_6() {
    replay("tpe_integers.json");
}

#[test]
fn multivariate_suggestions_are_those_of_optuna_5() {
    replay("tpe_multivariate_qdc.json");
    replay("tpe_multivariate_integers.json");
}

#[test]
fn trials_under_way_count_as_bad_as_in_optuna_5() {
    replay("tpe_multivariate_batch.json");
}
