//! What a bank network takes in memory, counted before it is built.
//!
//! The counts follow the constructors ([`super::BankNetwork`], its channels and layers, [`crate::Adam`])
//! array by array; a test with a counting allocator keeps them in step.

use qdc_core::Features;
use qdc_core::bank::{Channels, Made, Map, Source};

use super::inputs::{ChannelInput, ChannelMap, ChannelSource, is_kept};
use super::{BankArchitecture, BankInputs, Readout, Way};
use crate::{Footprint, Real, Width};

/// Bytes of a column index.
const INDEX: u64 = 4;
/// Bytes of a row pointer.
const POINTER: u64 = 8;
/// Columns that a recurrence takes at a time, in three panels.
const PANELS: u64 = 3 * 32;
/// Series of a learned window: cosines, values and three lists of coefficients, of 8 bytes each.
const SERIES: u64 = (4 + 3 + 3 + 1) * 1024 * 8;

impl Footprint {
    /// Counts what a bank network takes over these inputs: what its runs share, and each run besides.
    pub fn of_bank<T: Real>(architecture: &BankArchitecture, inputs: &BankInputs<T>) -> Self {
        let number = size_of::<T>() as u64;
        let nodes = inputs.nodes as u64;
        let hidden = Width::single(architecture.hidden).stride() as u64;
        let classes = Width::single(architecture.classes).stride() as u64;
        let joined = if architecture.readout == Readout::Linear { classes } else { hidden };
        let channels = inputs.channels.len() as u64;
        let (mut numbers, mut parameters, mut bytes) =
            (0, Width::single(channels as usize).stride() as u64, 0);
        for ChannelInput { source, map, .. } in &inputs.channels {
            let (rows, dropped) = match source {
                ChannelSource::Sparse(matrix) => {
                    let entries = matrix.entries() as u64;
                    bytes += (nodes + 1) * POINTER;
                    (matrix.columns() as u64, entries * (INDEX + number + 1))
                }
                ChannelSource::Dense(matrix) => {
                    (matrix.stride() as u64, number * nodes * matrix.stride() as u64)
                }
            };
            bytes += if architecture.input_dropout > 0.0 { dropped } else { 0 };
            parameters += (rows + 1) * hidden + hidden * joined;
            numbers += nodes * (hidden + 1); // the output, and what its rows were divided by
            match map {
                ChannelMap::Identity | ChannelMap::Series { .. } => {}
                ChannelMap::Projection(vectors) => numbers += vectors.stride() as u64 * hidden,
                ChannelMap::Learned { .. } => {
                    numbers += nodes * hidden;
                    parameters += Width::single(2).stride() as u64;
                    bytes += SERIES;
                }
            }
        }
        parameters += joined; // the bias
        numbers += nodes * (PANELS + 3 * hidden + 3 * joined) + channels;
        if architecture.readout == Readout::Layers {
            parameters += joined * classes + classes;
            numbers += 2 * nodes * classes;
        }
        // Weights, gradient, two moments.
        let run = number * (numbers + 4 * parameters) + bytes;
        let shared = inputs.bytes();
        Self { preparing: shared, shared, passing: 0, run, weights: number * parameters }
    }
}

impl<T: Real> BankInputs<T> {
    /// Bytes that [`BankInputs::new`] holds at most while it makes these channels: what stays, and the double
    /// precision of the channel that is being made.
    pub fn needed(channels: &Channels, way: Way) -> u64 {
        let number = size_of::<T>() as u64;
        let cells = channels.nodes() as u64 * channels.features().columns() as u64;
        let size = |features: &Features| match features {
            Features::Sparse(matrix) => matrix.entries() as u64 * (INDEX + number),
            Features::Dense { values, .. } => number * values.len() as u64,
        };
        let (mut stays, mut passing) = (size(channels.features()), 0);
        for made in channels.made() {
            let Made { source, map, .. } = made;
            if is_kept(channels, map, way) {
                stays += number * cells;
                passing = 20 * cells; // X and P(L) X in double precision, and the latter in single
                continue;
            }
            stays += match (source, map) {
                (Source::Own(own), _) => size(own),
                (_, Map::Window(range)) => number * (channels.nodes() * range.len()) as u64,
                _ => 0,
            };
        }
        stays + passing
    }

    /// Bytes of what is held here; features that channels share count once.
    fn bytes(&self) -> u64 {
        let number = size_of::<T>() as u64;
        let mut seen: Vec<*const u8> = Vec::new();
        let mut once = |at: *const u8, bytes: u64| {
            let new = !seen.contains(&at);
            seen.push(at);
            if new { bytes } else { 0 }
        };
        let mut total = 0;
        for ChannelInput { source, map, .. } in &self.channels {
            total += match source {
                ChannelSource::Sparse(matrix) => once(
                    std::sync::Arc::as_ptr(matrix).cast(),
                    matrix.entries() as u64 * (INDEX + number) + (self.nodes as u64 + 1) * POINTER,
                ),
                ChannelSource::Dense(matrix) => {
                    once(std::sync::Arc::as_ptr(matrix).cast(), number * matrix.values().len() as u64)
                }
            };
            total += match map {
                ChannelMap::Identity => 0,
                ChannelMap::Series { operator, .. } | ChannelMap::Learned { operator, .. } => {
                    let rows = self.nodes as u64 * (POINTER + 2 * INDEX);
                    let entries = operator.entries() as u64 * (INDEX + number);
                    once(std::sync::Arc::as_ptr(operator).cast(), rows + entries)
                }
                ChannelMap::Projection(vectors) => number * vectors.values().len() as u64,
            };
        }
        total
    }
}
