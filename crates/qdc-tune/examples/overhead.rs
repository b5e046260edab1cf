//! How long a suggestion takes after 10,000 trials of the published space (GCN+QDC, eight parameters).
//!
//! `cargo run --release -p qdc-tune --example overhead [TRIALS]` prints microseconds of CPU per suggestion of
//! one parameter, the mean of 100 rounds; the values of earlier trials crowd around an optimum, as after a
//! search.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use qdc_tune::sampler::{History, Sampler, Streams};
use qdc_tune::{Direction, Distribution, Error, RandomState, Space, State, Trial};

fn main() -> Result<(), Error> {
    let trials: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let space = Space::new([
        ("layers", Distribution::categorical([1, 2])?),
        ("hidden", Distribution::categorical([2, 4, 8, 16, 32, 64, 128])?),
        ("dropout", Distribution::uniform(0.0, 0.99)?),
        ("mu", Distribution::uniform(-1.0, 1.0)?),
        ("sigma", Distribution::uniform(0.1, 1.0)?),
        ("epsilon", Distribution::log_uniform(1e-7, 1e-1)?),
        ("learning_rate", Distribution::log_uniform(1e-4, 1e-1)?),
        ("weight_decay", Distribution::uniform(0.0, 0.9)?),
    ])?;
    let mut stream = RandomState::new(1);
    for sampler in [Sampler::Tpe, Sampler::TpeMultivariate] {
        let mut history = History::new(&space, Direction::Maximize);
        let mut draw = |number: u64| Trial {
            id: number as i64,
            number,
            state: State::Complete,
            value: Some(stream.next_double()),
            parameters: space
                .iter()
                .map(|(name, distribution)| {
                    let u = 0.5 + 0.5 * (stream.next_double() - 0.5) * stream.next_double();
                    let value = match distribution {
                        Distribution::Categorical { choices } => (u * choices.len() as f64).floor(),
                        Distribution::Float { low, high, log: true, .. } => low * (high / low).powf(u),
                        Distribution::Float { low, high, .. } => low + (high - low) * u,
                        _ => f64::NAN,
                    };
                    (name.to_owned(), (distribution.clone(), value))
                })
                .collect(),
            intermediate: BTreeMap::new(),
            user_attributes: BTreeMap::new(),
            system_attributes: BTreeMap::new(),
            times: (None, None),
        };
        for number in 0..trials {
            history.insert(&draw(number));
        }
        let rounds = 100;
        let mut spent = 0.0;
        for round in 0..rounds {
            history.insert(&draw(trials + round)); // a new trial each time, as in a search
            let mut streams = Streams::of_trial(0, trials + round);
            let start = cpu_seconds();
            sampler.suggest(&space, &mut history, &[], &mut streams);
            spent += cpu_seconds() - start;
        }
        let each = spent / (rounds * space.len() as u64) as f64;
        println!("{sampler:?}: {:.0} microseconds a suggestion after {trials} trials", each * 1e6);
    }
    Ok(())
}

/// CPU time of this thread: the machine may be busy with other things.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(f64::NAN)
        * 1e-9
}
