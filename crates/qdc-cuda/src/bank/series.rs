//! Chebyshev series on the device, fixed and learned.

use qdc_nn::bank::BankProgram;

use super::DeviceBank;
use super::arguments::{Term, Window};
use super::channel::{Made, Map};
use crate::Error;
use crate::frame::{Frame, Place};
use crate::grid::spread_steps;
use crate::launch::Launch;
use crate::matrices::Matrices;
use crate::room::Room;
use crate::state::Address;

/// The most terms of a learned series, as `device/series.cu` has it.
const TERMS: u32 = 512;

/// What a learned window keeps from its forward pass for its backward pass.
pub(super) struct LearnedRoom {
    /// What the window acts on.
    pub(super) input: Place,
    terms: Address,
    counts: Address,
    moments: Address,
    /// Where mu and sigma lie among the parameters.
    window: usize,
}

impl LearnedRoom {
    /// Room for the learned window of a network, where it has one.
    pub(super) fn new(
        frame: &Frame<'_>,
        program: &BankProgram<f32>,
        made: &[Made],
        room: &mut Room,
    ) -> Result<Option<Self>, Error> {
        let learned = program.channels.iter().zip(made).filter_map(|(channel, made)| match &made.map {
            Map::Learned(matrix) => Some((channel.window.as_ref()?.start, *matrix)),
            _ => None,
        });
        let learned: Vec<(usize, Matrices)> = learned.collect();
        let (window, matrix) = match learned.as_slice() {
            [] => return Ok(None),
            [one] => *one,
            several => {
                let count = several.len() as u64;
                return Err(Error::TooMany { what: "learned windows of one network", count, most: 1 });
            }
        };
        let runs = u64::from(frame.runs);
        let input = frame.array(program.hidden, false, room)?;
        let blocks = blocks(frame, &matrix, input.stride);
        Ok(Some(Self {
            input,
            terms: room.reserve::<f64>(runs * 3 * u64::from(TERMS)),
            counts: room.reserve::<u32>(runs),
            moments: room.reserve::<f64>(runs * u64::from(TERMS) * u64::from(blocks)),
            window,
        }))
    }
}

/// Blocks of `term`.
fn blocks(frame: &Frame<'_>, matrix: &Matrices, stride: u32) -> u32 {
    let (grid, _) = spread_steps(stride / 4, matrix.rows, matrix.entries, frame.runs);
    grid.0 * grid.1
}

impl DeviceBank<'_> {
    /// y = sum_k c_k T_k(L) x, of `stride` columns.
    pub(super) fn series(
        &self,
        matrix: &Matrices,
        (coefficients, terms): (Address, u32),
        x: (Address, u64),
        y: (Address, u64),
        stride: u32,
        launches: &mut Vec<Launch>,
    ) {
        let term = Term { coefficients, stride, ..Term::default() };
        self.recurrence(matrix, terms, x, y, term, launches);
    }

    /// y = P(L) of what the learned window acts on, its coefficients computed first.
    pub(super) fn learned_series(&self, matrix: &Matrices, y: Place, launches: &mut Vec<Launch>) {
        let learned = self.learned.as_ref().expect("a learned window has room");
        let frame = &self.frame;
        let window = self.window(matrix);
        launches.push(frame.launch("window_series", (frame.runs, 1, 1), (TERMS, 1, 1), 0, window));
        let x = (learned.input.output, learned.input.run);
        self.recurrence(matrix, TERMS, x, (y.output, y.run), self.learned_term(), launches);
    }

    /// dx = P(L) dy, and the gradient of mu and sigma.
    pub(super) fn learned_back(&self, matrix: &Matrices, y: Place, x: Place, launches: &mut Vec<Launch>) {
        let learned = self.learned.as_ref().expect("a learned window has room");
        let term = Term {
            z: learned.input.output,
            z_run: learned.input.run,
            moments: learned.moments,
            ..self.learned_term()
        };
        self.recurrence(matrix, TERMS, (y.gradient, y.run), (x.gradient, x.run), term, launches);
        let frame = &self.frame;
        launches.push(frame.launch("window_back", (frame.runs, 1, 1), (32, 8, 1), 0, self.window(matrix)));
    }

    fn learned_term(&self) -> Term {
        let learned = self.learned.as_ref().expect("a learned window has room");
        let coefficients_run = u64::from(3 * TERMS);
        let stride = learned.input.stride;
        Term {
            coefficients: learned.terms,
            coefficients_run,
            counts: learned.counts,
            stride,
            ..Term::default()
        }
    }

    fn window(&self, matrix: &Matrices) -> Window {
        let learned = self.learned.as_ref().expect("a learned window has room");
        let frame = &self.frame;
        Window {
            runs: frame.states,
            weights: frame.weight(learned.window),
            terms: learned.terms,
            counts: learned.counts,
            moments: learned.moments,
            gradient: frame.parts_of(frame.site(learned.window)),
            weights_run: frame.weights_run,
            gradient_run: frame.parts_run,
            blocks: blocks(frame, matrix, learned.input.stride),
            pad: 0,
        }
    }

    /// The steps of T_j = 2 L T_{j-1} - T_{j-2}, for as many terms as any run can have: a run that has fewer
    /// passes over the rest.
    fn recurrence(
        &self,
        matrix: &Matrices,
        terms: u32,
        (x, x_run): (Address, u64),
        (y, y_run): (Address, u64),
        term: Term,
        launches: &mut Vec<Launch>,
    ) {
        let frame = &self.frame;
        let panels =
            self.scratch.expect("a map has room to work in").panels.map(|panel| (panel.output, panel.run));
        let (grid, block) = spread_steps(term.stride / 4, matrix.rows, matrix.entries, frame.runs);
        for j in 1..terms {
            let panel = |at: u32| panels[(at % 2) as usize];
            let (from, before) = match j {
                1 => ((x, x_run), (0, 0)),
                2 => (panel(1), (x, x_run)),
                _ => (panel(j - 1), panel(j)),
            };
            let step = Term {
                matrix: matrix.forward,
                runs: frame.states,
                x: from.0,
                x_run: from.1,
                before: before.0,
                before_run: before.1,
                out: panel(j).0,
                out_run: panel(j).1,
                y,
                y_run,
                rows: frame.nodes,
                chunks: term.stride / 4,
                term: j,
                ..term
            };
            launches.push(frame.launch("term", grid, block, block.0 * block.1 * block.2 * 16, step));
        }
    }
}
