//! The time of one training step with its evaluation of the bank `ends`, on one thread: the measurement behind
//! bench/train/bank.py.
//!
//! `bank_steps DATASET [STEPS]` (a dataset of the folder QDC_DATA) prints one JSON object. Time is the CPU
//! time of the thread; the least of the steps but the first is given, as for the peer.

#![allow(clippy::print_stdout)]

use qdc_core::bank::{Channel, Channels, View};
use qdc_core::{Filter, Resources, Transition, Watch, lanczos};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, Readout, Way};
use qdc_nn::loss::cross_entropy;
use qdc_nn::{Adam, Learner, Pass};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: bank_steps DATASET [STEPS]")?;
    let steps: u64 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let dataset = qdc_data::load(&name)?;
    let watch = Watch::silent();
    let lowest = lanczos::lowest_eigenvalue(&Transition::new(&dataset.graph), &watch)?;
    let mut channels = vec![Channel::new(View::Features), Channel::new(View::Step)];
    for (mu, sigma) in [(1.0, 1.0), (1.0, 0.5), (1.0, 0.25), (1.0, 0.125), (lowest, 1.0), (lowest, 0.5)] {
        channels.push(Channel::new(View::Filter(Filter::gaussian(mu, sigma)?)));
    }
    let channels =
        Channels::new(&channels, &dataset.graph, dataset.features.clone(), &Resources::default(), &watch)?;
    let inputs = BankInputs::<f32>::new(&channels, Way::default(), &watch)?;
    let architecture = BankArchitecture {
        hidden: 64,
        norm: true,
        readout: Readout::Linear,
        dropout: 0.5,
        input_dropout: 0.0,
        readout_decay: 1e-4,
        classes: dataset.classes,
    };
    let mut network = BankNetwork::new(&architecture, &inputs, 0)?;
    let mut adam = Adam::grouped(network.groups(0.01, 3e-3), network.weights().len());
    let split = &dataset.splits[0];
    let (mut least, mut loss) = (f64::INFINITY, 0.0);
    for step in 0..steps {
        let start = cpu_milliseconds();
        network.loss_and_gradient(&dataset.labels, split.train(), Pass::Train { seed: step });
        network.update(&mut adam);
        loss = cross_entropy(network.forward(Pass::Evaluate), &dataset.labels, split.validation());
        if step > 0 {
            least = least.min(cpu_milliseconds() - start);
        }
    }
    let kept = inputs.kept().0;
    println!(
        "{{\"dataset\": \"{name}\", \"kept\": {kept}, \"step_ms\": {least:.3}, \"validation_loss\": {loss:.4}}}"
    );
    Ok(())
}

/// CPU time of this thread; where the system does not tell, the time of a clock.
fn cpu_milliseconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    }
    #[cfg(not(unix))]
    {
        thread_local!(static START: std::time::Instant = std::time::Instant::now());
        START.with(|start| start.elapsed().as_secs_f64() * 1e3)
    }
}
