//! One channel on the device: its linear map, its map of the graph, and the way back.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use qdc_core::chebyshev::Operator;
use qdc_nn::bank::{BankProgram, ChannelMap, ChannelSource, ChannelStage};
use qdc_nn::{Matrix, Width};

use super::{DeviceBank, NONE};
use crate::Error;
use crate::frame::{Frame, Place};
use crate::grid::matrix_parts;
use crate::launch::Launch;
use crate::matrices::{Matrices, counted};
use crate::room::Room;
use crate::state::{Address, Finish, Gather, Mask, Product};

/// What a channel has on the device.
pub(super) struct Made {
    source: Source,
    pub(super) map: Map,
    /// Where P(L) drop(S) lies, where S has fewer columns than the channel: the map then acts on those.
    narrow: Option<Place>,
}

enum Source {
    /// The matrix, and the identity by which it is written out where the map acts on its columns.
    Sparse(Matrices, Address),
    /// The same for all runs.
    Dense(Place),
}

pub(super) enum Map {
    Identity,
    /// L, the coefficients and their number.
    Series(Matrices, Address, u32),
    /// Vectors, the same for all runs, and room for the coordinates of each run.
    Projection(Place, Place),
    /// L.
    Learned(Matrices),
}

/// What channels with a map share: what the map acts on or gives, and two panels of the recurrence.
#[derive(Clone, Copy)]
pub(super) struct Scratch {
    pub(super) hidden: Place,
    pub(super) panels: [Place; 2],
}

impl Scratch {
    pub(super) fn new(frame: &Frame<'_>, width: Width, room: &mut Room) -> Result<Self, Error> {
        let mut array = || frame.array(width, false, room);
        Ok(Self { hidden: array()?, panels: [array()?, array()?] })
    }
}

impl Made {
    /// The channels of a network; what several of them have in common is placed once.
    pub(super) fn all(
        frame: &Frame<'_>,
        program: &BankProgram<f32>,
        room: &mut Room,
    ) -> Result<Vec<Self>, Error> {
        let mut shared = Shared::default();
        let made = |channel: &ChannelStage<f32>| {
            let source = match &channel.source {
                ChannelSource::Sparse(matrix) => {
                    let placed = shared.place(Arc::as_ptr(matrix) as usize, || Matrices::of(matrix, room))?;
                    let (rows, stride) = (matrix.columns(), source_width(channel).stride());
                    let cells = if is_narrow(channel, program.hidden) { rows * stride } else { 0 };
                    let diagonal = |at: usize| f32::from(u8::from(at / stride == at % stride));
                    let identity = room.upload(cells as u64, || (0..cells).map(diagonal).collect())?;
                    Source::Sparse(placed, identity)
                }
                ChannelSource::Dense(matrix) => Source::Dense(dense(matrix, room)?),
            };
            let map = match &channel.map {
                ChannelMap::Identity => Map::Identity,
                ChannelMap::Series { operator, coefficients } => {
                    let matrix = shared.operator(operator, room)?;
                    // The recurrence always takes its first step.
                    let count = coefficients.len().max(2);
                    let padded = || (0..count).map(|k| coefficients.get(k).copied().unwrap_or(0.0)).collect();
                    Map::Series(matrix, room.upload(count as u64, padded)?, count as u32)
                }
                ChannelMap::Projection(vectors) => {
                    let vectors = dense(vectors, room)?;
                    let run = u64::from(vectors.stride) * program.hidden.stride() as u64;
                    let output = room.reserve::<f32>(u64::from(frame.runs) * run);
                    let stride = program.hidden.stride() as u32;
                    Map::Projection(vectors, Place { output, gradient: output, run, stride })
                }
                ChannelMap::Learned { operator, .. } => Map::Learned(shared.operator(operator, room)?),
            };
            let narrow = match is_narrow(channel, program.hidden) {
                true => Some(frame.array(source_width(channel), false, room)?),
                false => None,
            };
            Ok(Self { source, map, narrow })
        };
        program.channels.iter().map(made).collect()
    }

    /// Whether the graph is looked at.
    pub(super) fn maps(&self) -> bool {
        !matches!(self.map, Map::Identity)
    }
}

/// Matrices that are on the device already, by their addresses on the host.
#[derive(Default)]
struct Shared(HashMap<usize, Matrices>);

impl Shared {
    fn place(
        &mut self,
        identity: usize,
        make: impl FnOnce() -> Result<Matrices, Error>,
    ) -> Result<Matrices, Error> {
        Ok(match self.0.entry(identity) {
            Entry::Occupied(there) => *there.get(),
            Entry::Vacant(place) => *place.insert(make()?),
        })
    }

    fn operator(&mut self, operator: &Arc<Operator<f32>>, room: &mut Room) -> Result<Matrices, Error> {
        self.place(Arc::as_ptr(operator) as usize, || {
            let matrix = OnceCell::new(); // a dry room does not ask for it
            let matrix = || matrix.get_or_init(|| operator.matrix());
            Matrices::symmetric(operator.nodes(), operator.entries(), matrix, room)
        })
    }
}

/// A dense matrix that all runs share.
fn dense(matrix: &Arc<Matrix<f32>>, room: &mut Room) -> Result<Place, Error> {
    let values = matrix.values();
    let count = u64::from(counted("numbers of a dense matrix", values.len() as u64)?);
    let output = room.upload(count, || values.to_vec())?;
    Ok(Place { output, gradient: 0, run: 0, stride: matrix.width().stride() as u32 })
}

/// The columns of what a channel acts on.
fn source_width(channel: &ChannelStage<f32>) -> Width {
    match &channel.source {
        ChannelSource::Sparse(matrix) => Width::single(matrix.columns()),
        ChannelSource::Dense(matrix) => matrix.width(),
    }
}

/// Whether (P(L) drop(S)) W is cheaper than P(L) (drop(S) W): the series then acts on fewer columns, and not at
/// all on the way back.
fn is_narrow(channel: &ChannelStage<f32>, hidden: Width) -> bool {
    matches!(channel.map, ChannelMap::Series { .. }) && source_width(channel).stride() < hidden.stride()
}

/// Parts of the gradient of a channel's matrix.
pub(super) fn weight_parts(channel: &ChannelStage<f32>, hidden: Width, rows: u32) -> u32 {
    match channel.source {
        ChannelSource::Sparse(_) if !is_narrow(channel, hidden) => 1,
        _ => matrix_parts(rows),
    }
}

impl DeviceBank<'_> {
    /// The kernels of all channels.
    pub(super) fn channels(&self, training: bool, launches: &mut Vec<Launch>) {
        for number in 0..self.made.len() {
            self.channel(number, training, launches);
        }
        let (frame, work) = (&self.frame, self.work(training));
        let grid = (work.rows.div_ceil(8), work.channels, frame.runs);
        launches.push(frame.launch("channel_finish", grid, (32, 8, 1), 0, work));
    }

    /// Where channel `number` lies: its output and, later, its gradient.
    fn place(&self, number: usize) -> Place {
        let stride = self.program.hidden.stride() as u32;
        let own = self.y + 4 * number as u64 * u64::from(self.frame.nodes) * u64::from(stride);
        Place { output: own, gradient: own, run: self.active.run, stride }
    }

    fn scratch(&self) -> Scratch {
        self.scratch.expect("a map has room to work in")
    }

    /// h = P(L) (drop(S) W).
    fn channel(&self, number: usize, training: bool, launches: &mut Vec<Launch>) {
        let (stage, made, y) = (&self.program.channels[number], &self.made[number], self.place(number));
        let (mask, theta) = (Mask::of(stage.input_dropout, training), stage.weight.start);
        if let (Some(narrow), Map::Series(matrix, coefficients, terms)) = (made.narrow, &made.map) {
            let dropped = Place { stride: narrow.stride, ..self.scratch().hidden };
            launches.push(self.dropped(stage, &made.source, mask, dropped));
            let (from, to) = ((dropped.output, dropped.run), (narrow.output, narrow.run));
            self.series(matrix, (*coefficients, *terms), from, to, narrow.stride, launches);
            launches.push(self.frame.linear(narrow, Mask::default(), theta, y));
            return;
        }
        let x = match &made.map {
            Map::Identity => y,
            Map::Learned(_) => self.learned.as_ref().expect("a learned window has room").input,
            _ => self.scratch().hidden,
        };
        launches.push(match &made.source {
            Source::Sparse(matrix, _) => {
                self.frame.features(matrix, mask, theta, x, self.program.hidden, Finish::default())
            }
            Source::Dense(matrix) => self.frame.linear(*matrix, mask, theta, x),
        });
        match &made.map {
            Map::Identity => {}
            Map::Series(matrix, coefficients, terms) => {
                self.series(
                    matrix,
                    (*coefficients, *terms),
                    (x.output, x.run),
                    (y.output, y.run),
                    y.stride,
                    launches,
                );
            }
            Map::Projection(vectors, coordinates) => {
                self.project(*vectors, *coordinates, (x.output, x.run), (y.output, y.run), launches);
            }
            Map::Learned(matrix) => self.learned_series(matrix, y, launches),
        }
    }

    /// drop(S), written out.
    fn dropped(&self, stage: &ChannelStage<f32>, source: &Source, mask: Mask, to: Place) -> Launch {
        match source {
            Source::Sparse(matrix, identity) => {
                let gather = Gather {
                    matrix: matrix.forward,
                    x: *identity,
                    y: to.output,
                    y_run: to.run,
                    mask,
                    rows: matrix.rows,
                    ..Gather::default()
                };
                self.frame.gather(gather, source_width(stage), matrix.entries)
            }
            Source::Dense(matrix) => self.frame.drop(matrix.output, mask, to),
        }
    }

    /// From dh, which lies where the output did, to the parts of the gradients of the parameters.
    pub(super) fn channel_back(&self, number: usize, launches: &mut Vec<Launch>) {
        let (stage, made, y) = (&self.program.channels[number], &self.made[number], self.place(number));
        launches.push(self.frame.bias_back(y, stage.bias.start));
        let (dropout, theta) = (stage.input_dropout, stage.weight.start);
        if let Some(narrow) = made.narrow {
            launches.push(self.frame.weight_back(narrow, NONE, theta, y));
            return;
        }
        let dy = (y.gradient, y.run);
        let mapped = || {
            let hidden = self.scratch().hidden;
            Place { gradient: hidden.output, ..hidden }
        };
        // P(L) is symmetric: what maps x to y maps dy to dx.
        let x = match &made.map {
            Map::Identity => y,
            Map::Series(matrix, coefficients, terms) => {
                let x = mapped();
                self.series(matrix, (*coefficients, *terms), dy, (x.gradient, x.run), x.stride, launches);
                x
            }
            Map::Projection(vectors, coordinates) => {
                let x = mapped();
                self.project(*vectors, *coordinates, dy, (x.gradient, x.run), launches);
                x
            }
            Map::Learned(matrix) => {
                let x = mapped();
                self.learned_back(matrix, y, x, launches);
                x
            }
        };
        launches.push(match &made.source {
            Source::Sparse(matrix, _) => {
                self.frame.features_back(matrix, dropout, theta, x, self.program.hidden)
            }
            Source::Dense(matrix) => self.frame.weight_back(*matrix, dropout, theta, x),
        });
    }

    /// out = V V^T x.
    fn project(
        &self,
        vectors: Place,
        coordinates: Place,
        (x, x_run): (Address, u64),
        (out, out_run): (Address, u64),
        launches: &mut Vec<Launch>,
    ) {
        let (frame, stride) = (&self.frame, coordinates.stride);
        let inner = Product {
            a: vectors.output,
            b: x,
            b_run: x_run,
            c: coordinates.output,
            c_run: coordinates.run,
            rows: vectors.stride,
            columns: stride,
            inner: frame.nodes,
            a_stride: vectors.stride,
            b_stride: stride,
            c_stride: stride,
            ..Product::default()
        };
        launches.push(frame.product("product_a_transposed", inner, 1));
        let outer = Product {
            b: coordinates.output,
            b_run: coordinates.run,
            c: out,
            c_run: out_run,
            rows: frame.nodes,
            inner: vectors.stride,
            ..inner
        };
        launches.push(frame.product("product", outer, 1));
    }
}
