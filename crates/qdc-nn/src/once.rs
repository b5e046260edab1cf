//! What is compiled once, in this crate.
//!
//! Generic code is compiled in every crate that calls it, and the loops of a network are compiled for three
//! instruction sets each. The functions here are compiled in this crate for `f32`, so that a crate that trains or
//! predicts does not compile all layers again. For `f64`, which only tests and checks use, they are compiled
//! where they are called.

use crate::bank::{BankArchitecture, BankInputs, BankNetwork};
use crate::layers::Pass;
use crate::{Adam, Architecture, Error, Inputs, Matrix, Network, Propagation};

/// Each calls the function that its comment names.
pub trait Once: Sized {
    /// [`Network::new`].
    fn network(architecture: &Architecture, inputs: &Inputs<Self>, seed: u64)
    -> Result<Network<Self>, Error>;
    /// [`crate::Learner::loss_and_gradient`] of a network.
    fn network_gradient(network: &mut Network<Self>, labels: &[u32], vertices: &[u32], pass: Pass) -> f64;
    /// [`BankNetwork::new`].
    fn bank(
        architecture: &BankArchitecture,
        inputs: &BankInputs<Self>,
        seed: u64,
    ) -> Result<BankNetwork<Self>, Error>;
    /// [`crate::Learner::forward`] of a bank.
    fn bank_forward(network: &mut BankNetwork<Self>, pass: Pass) -> &Matrix<Self>;
    /// [`crate::Learner::loss_and_gradient`] of a bank.
    fn bank_gradient(network: &mut BankNetwork<Self>, labels: &[u32], vertices: &[u32], pass: Pass) -> f64;
    /// [`Propagation::apply`].
    fn propagate(propagation: &Propagation<Self>, x: &Matrix<Self>, y: &mut Matrix<Self>);
    /// [`Adam::step`].
    fn adam_step(adam: &mut Adam<Self>, weights: &mut [Self], gradient: &[Self]);
}

macro_rules! once {
    ($type:ty, $inline:meta) => {
        impl Once for $type {
            #[$inline]
            fn network(
                architecture: &Architecture,
                inputs: &Inputs<Self>,
                seed: u64,
            ) -> Result<Network<Self>, Error> {
                Network::compiled_new(architecture, inputs, seed)
            }
            #[$inline]
            fn network_gradient(
                network: &mut Network<Self>,
                labels: &[u32],
                vertices: &[u32],
                pass: Pass,
            ) -> f64 {
                network.compiled_gradient(labels, vertices, pass)
            }
            #[$inline]
            fn bank(
                architecture: &BankArchitecture,
                inputs: &BankInputs<Self>,
                seed: u64,
            ) -> Result<BankNetwork<Self>, Error> {
                BankNetwork::compiled_new(architecture, inputs, seed)
            }
            #[$inline]
            fn bank_forward(network: &mut BankNetwork<Self>, pass: Pass) -> &Matrix<Self> {
                network.compiled_forward(pass)
            }
            #[$inline]
            fn bank_gradient(
                network: &mut BankNetwork<Self>,
                labels: &[u32],
                vertices: &[u32],
                pass: Pass,
            ) -> f64 {
                network.compiled_gradient(labels, vertices, pass)
            }
            #[$inline]
            fn propagate(propagation: &Propagation<Self>, x: &Matrix<Self>, y: &mut Matrix<Self>) {
                propagation.compiled_apply(x, y);
            }
            #[$inline]
            fn adam_step(adam: &mut Adam<Self>, weights: &mut [Self], gradient: &[Self]) {
                adam.compiled_step(weights, gradient);
            }
        }
    };
}

once!(f32, inline(never));
once!(f64, inline);
