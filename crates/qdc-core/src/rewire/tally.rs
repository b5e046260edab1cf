//! The counts of squares around an edge x~y, and what joining one end to a neighbour of the other does to
//! them.

use super::curvature::{Sides, Terms, Variant};
use super::neighbourhoods::Neighbourhoods;

/// How many vertices around an edge have each count of squares.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// The number of vertices by their count; those with none are not kept.
    vertices: Vec<u32>,
    on_squares: u32,
    most_squares: u32,
    /// What was changed for a trial, to be changed back.
    shifts: Vec<(u32, u32)>,
}

impl Tally {
    pub(super) fn new(sides: &Sides) -> Self {
        let mut tally = Self { vertices: vec![0], on_squares: 0, most_squares: 0, shifts: Vec::new() };
        sides.counts.iter().flatten().for_each(|&count| tally.shift(0, count));
        tally
    }

    /// The terms of x~y once the end on side `side` is joined to `apex`, a neighbour of the other end only.
    ///
    /// Costs a step for each neighbour of the apex, and a search for those that lie on the side of interest.
    pub(super) fn with_triangle(
        &mut self,
        neighbourhoods: &Neighbourhoods,
        sides: &Sides,
        before: Terms,
        (side, apex): (usize, u32),
        variant: Variant,
    ) -> Terms {
        let count = |side: usize, vertex: u32| sides.count(side, vertex).unwrap_or(0);
        let neighbours = |side: usize| {
            let inside = move |vertex: &u32| sides.bits[side].contains(*vertex);
            neighbourhoods.of(apex).iter().copied().filter(inside)
        };
        let own = count(1 - side, apex);
        let mut degrees = before.degrees;
        match variant {
            // The apex is now a common neighbour: it leaves its side, and takes its squares along.
            Variant::Formula => {
                degrees[side] += 1;
                self.try_shift(own, 0);
                for vertex in neighbours(side) {
                    let count = count(side, vertex);
                    self.try_shift(count, count - 1);
                }
            }
            // The program adds the edge in one direction, which the degrees it reads do not see. The apex
            // joins the near side, with its common neighbours with the far end.
            Variant::Code => {
                self.try_shift(own, own.saturating_sub(1));
                let mut common = 0u32;
                for vertex in neighbours(1 - side) {
                    let count = count(1 - side, vertex);
                    self.try_shift(count, count + 1);
                    common += 1;
                }
                self.try_shift(0, common.saturating_sub(1));
            }
        }
        let Self { on_squares, most_squares, .. } = *self;
        while let Some((from, to)) = self.shifts.pop() {
            self.shift(to, from);
        }
        Terms { degrees, triangles: before.triangles + 1, on_squares, most_squares }
    }

    fn try_shift(&mut self, from: u32, to: u32) {
        self.shifts.push((from, to));
        self.shift(from, to);
    }

    /// One vertex goes from a count to another.
    fn shift(&mut self, from: u32, to: u32) {
        if from > 0 {
            self.vertices[from as usize] -= 1;
            self.on_squares -= 1;
        }
        if to > 0 {
            let place = to as usize;
            self.vertices.resize(self.vertices.len().max(place + 1), 0);
            self.vertices[place] += 1;
            self.on_squares += 1;
            self.most_squares = self.most_squares.max(to);
        }
        while self.most_squares > 0 && self.vertices[self.most_squares as usize] == 0 {
            self.most_squares -= 1;
        }
    }
}
