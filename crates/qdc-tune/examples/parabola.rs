//! Searches a small space with an analytic objective, for tests of storage and samplers.
//!
//! `parabola STORAGE STUDY TRIALS [--seed S] [--batch B] [--jobs J] [--pause MILLISECONDS] [--sampler
//! tpe|joint|random] [--objective parabola|ridge|steps] [--list yes]`; prints one line of JSON, or lists the
//! finished trials. Asking again for the same study resumes it.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use qdc_tune::{Asked, Direction, Distribution, Outcome, Sampler, Space, Study, storage};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, name, trials, options @ ..] = arguments.as_slice() else {
        return Err("usage: parabola STORAGE STUDY TRIALS [--option value]...".into());
    };
    let options: BTreeMap<&str, &str> =
        options.chunks_exact(2).map(|pair| (pair[0].trim_start_matches("--"), pair[1].as_str())).collect();
    let option =
        |key: &str, default: &str| options.get(key).map_or(default.to_owned(), |value| (*value).to_owned());
    let trials: usize = trials.parse()?;
    let jobs: usize = option("jobs", "1").parse()?;
    let pause = Duration::from_millis(option("pause", "0").parse()?);
    let objective = option("objective", "parabola");
    let sampler = match option("sampler", "tpe").as_str() {
        "joint" => Sampler::TpeMultivariate,
        "random" => Sampler::Random,
        _ => Sampler::Tpe,
    };

    let mut study = Study::open_boxed(open(address)?, name, Direction::Maximize, published_space()?)?
        .sampler(sampler)
        .seed(option("seed", "0").parse()?)
        .batch(option("batch", "1").parse()?);
    if options.contains_key("list") {
        for trial in study.trials().filter(|trial| trial.state.is_finished()) {
            println!("{:06} {:?} {}", trial.number, trial.value, json!(trial.parameters()));
        }
        return Ok(());
    }
    study.set_attribute("objective", objective.as_str())?;
    let (sender, receiver) = mpsc::channel::<(Asked, f64)>();
    let mut under_way = 0;
    loop {
        while under_way < jobs {
            let asked = match study.ask_again()? {
                Some(asked) => asked,
                None if study.len() < trials && study.may_ask() => match study.try_ask_new()? {
                    Some(asked) => asked,
                    None => continue, // another process was faster
                },
                None => break,
            };
            under_way += 1;
            let (sender, objective) = (sender.clone(), objective.clone());
            std::thread::spawn(move || {
                std::thread::sleep(pause);
                let value = evaluate(&objective, &asked);
                sender.send((asked, value)).ok();
            });
        }
        if under_way == 0 {
            if study.len() >= trials {
                break;
            }
            std::thread::sleep(Duration::from_millis(20)); // others work on the last trials
            study.synchronise()?;
            continue;
        }
        let (asked, value) = receiver.recv()?;
        under_way -= 1;
        study.tell(&asked, Outcome::complete(value).with("test", json!([value, asked.trial])))?;
    }
    let best = study.best().expect("at least one trial");
    println!(
        "{}",
        json!({ "trials": study.len(), "best": best.number, "value": best.value, "parameters": best.parameters() })
    );
    Ok(())
}

fn open(address: &str) -> Result<Box<dyn storage::Storage>, qdc_tune::Error> {
    if address == "memory" { Ok(Box::new(storage::Memory::new())) } else { storage::open(address, u64::MAX) }
}

/// The published space of GCN+QDC.
fn published_space() -> Result<Space, qdc_tune::Error> {
    Space::new([
        ("layers", Distribution::categorical([1, 2])?),
        ("hidden", Distribution::categorical([2, 4, 8, 16, 32, 64, 128])?),
        ("dropout", Distribution::uniform(0.0, 0.99)?),
        ("mu", Distribution::uniform(-1.0, 1.0)?),
        ("sigma", Distribution::uniform(0.1, 1.0)?),
        ("epsilon", Distribution::log_uniform(1e-7, 1e-1)?),
        ("learning_rate", Distribution::log_uniform(1e-4, 1e-1)?),
        ("weight_decay", Distribution::uniform(0.0, 0.9)?),
    ])
}

/// Three objectives on the published space; `bench/tune/quality.py` has the same in Python.
fn evaluate(objective: &str, asked: &Asked) -> f64 {
    let get = |name: &str| asked.number(name).unwrap_or(f64::NAN);
    let (epsilon, rate) = ((get("epsilon").log10() + 7.0) / 6.0, (get("learning_rate").log10() + 4.0) / 3.0);
    let width = get("hidden").log2() / 7.0;
    let square = |x: f64| x * x;
    match objective {
        // one narrow valley across mu and sigma, decay near 0
        "ridge" => {
            -square(get("mu") - 1.5 * get("sigma") + 0.4)
                - 0.1 * square(get("sigma") - 0.6)
                - 2.0 * get("weight_decay")
                - 0.3 * square(rate - 0.7)
                - 0.2 * square(width - 0.8)
        }
        // plateaus: accuracies are multiples of one over the number of vertices
        "steps" => {
            let smooth = 1.0
                - square(get("mu") - 0.3)
                - square(epsilon - 0.5)
                - square(rate - 0.6)
                - square(get("weight_decay"))
                - 0.2 * square(get("dropout") - 0.5)
                - 0.1 * (2.0 - get("layers"));
            (smooth * 59.0).floor() / 59.0
        }
        _ => {
            -square(get("mu") - 0.2)
                - square(get("sigma") - 0.3)
                - square(epsilon - 0.4)
                - square(rate - 0.66)
                - square(get("weight_decay") - 0.05)
                - square(get("dropout") - 0.4)
                - square(width - 0.7)
                - 0.1 * (2.0 - get("layers"))
        }
    }
}
