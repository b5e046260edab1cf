//! What the rows of a panel keep: a panel holds, for each class of vertices that L cannot tell apart, the
//! values of up to W rows.
//!
//! Twins have the same row of f(L), but for the places of their own class: with m the value of the panel
//! there, t the size of the class and f(l) the filter at its eigenvalue, f(L)_uv = m - f(l) / t and f(L)_uu =
//! m + (1 - 1 / t) f(l).

use super::keeper::Keeper;
use super::{Row, Rule};
use crate::Scalar;
use crate::simd::Line;

/// The rows that one column of a panel speaks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<'a> {
    /// The rows wanted of a class, ascending; at least one.
    pub(crate) rows: &'a [u32],
    /// All vertices of the class, ascending.
    pub(crate) class: &'a [u32],
    /// P(lambda), lambda the eigenvalue of the differences of the class's twins, where it has two vertices or
    /// more.
    pub(crate) apart: f64,
}

impl Rule {
    /// What each row of each lane keeps; `positions` finds the line of a vertex's class in the panel.
    ///
    /// Overwrites the panel: the own entries of a class of twins become NaN.
    pub(crate) fn keep_panel<T: Scalar, const W: usize>(
        &self,
        lanes: &[Lane<'_>],
        positions: &[u32],
        panel: &mut [Line<T, W>],
    ) -> Vec<Row> {
        let mut keepers: Vec<Keeper<'_>> = lanes.iter().map(|lane| Keeper::new(self, lane.rows[0])).collect();
        let own: Vec<f64> = lanes
            .iter()
            .enumerate()
            .map(|(at, lane)| {
                let place = &mut panel[positions[lane.class[0] as usize] as usize][at];
                let own = place.to_f64();
                if lane.class.len() > 1 {
                    *place = T::from_f64(f64::NAN); // never kept
                }
                own
            })
            .collect();
        self.scan(&mut keepers, positions, panel);
        let mut rows = Vec::with_capacity(lanes.iter().map(|lane| lane.rows.len()).sum());
        for ((lane, keeper), own) in lanes.iter().zip(keepers).zip(own) {
            rows.extend(self.finish_lane(lane, own, keeper));
        }
        rows
    }

    /// What each row of a lane keeps of a column given as its large entries, columns ascending. Those of a
    /// class of several are not among them; `own` is the panel's number there.
    pub(crate) fn keep_column(&self, lane: &Lane<'_>, own: f64, entries: &[(u32, f64)]) -> Vec<Row> {
        self.finish_lane(lane, own, self.gather(lane.rows[0], entries.iter().copied()))
    }

    fn finish_lane(&self, lane: &Lane<'_>, own: f64, keeper: Keeper<'_>) -> Vec<Row> {
        if lane.class.len() == 1 {
            vec![keeper.finish()]
        } else {
            lane.rows.iter().map(|&row| self.keep_twin(lane, row, own, &keeper)).collect()
        }
    }

    /// Offers every place of the panel to its row's keeper, columns ascending.
    fn scan<T: Scalar, const W: usize>(
        &self,
        keepers: &mut [Keeper<'_>],
        positions: &[u32],
        panel: &[Line<T, W>],
    ) {
        // A lane begins to look at its row's first column.
        let mut begins: Vec<(usize, usize)> =
            keepers.iter().enumerate().map(|(lane, keeper)| (keeper.first_column as usize, lane)).collect();
        begins.sort_unstable();
        let mut begins = begins.into_iter().peekable();
        let mut floors = [T::from_f64(f64::INFINITY); W];
        let first = begins.peek().map_or(positions.len(), |begin| begin.0);
        for (column, &position) in positions.iter().enumerate().skip(first) {
            while let Some((_, lane)) = begins.next_if(|begin| begin.0 <= column) {
                floors[lane] = T::from_f64(keepers[lane].floor);
            }
            let line = &panel[position as usize];
            let mut any = false;
            for lane in 0..W {
                any |= self.sign.size(line[lane]) >= floors[lane];
            }
            if !any {
                continue;
            }
            for (lane, keeper) in keepers.iter_mut().enumerate() {
                if self.sign.size(line[lane]) >= floors[lane] {
                    let value = line[lane].to_f64();
                    if self.sign.size(value) >= keeper.floor {
                        keeper.offer(column as u32, value);
                        floors[lane] = T::from_f64(keeper.floor);
                    }
                }
            }
        }
    }

    /// What one of several twins keeps: what they share, and the places of their class.
    fn keep_twin(&self, lane: &Lane<'_>, row: u32, own: f64, shared: &Keeper<'_>) -> Row {
        let mut keeper = Keeper::new(self, row);
        keeper.floor = shared.floor;
        let first = keeper.first_column;
        let share = lane.apart / lane.class.len() as f64;
        let mut twins = lane.class.iter().copied().filter(|&twin| twin >= first).peekable();
        let mut offer_twins_before = |column: Option<u32>, keeper: &mut Keeper<'_>| {
            while let Some(twin) = twins.next_if(|&twin| column.is_none_or(|column| twin < column)) {
                let value = if twin == row { own - share + lane.apart } else { own - share };
                if self.sign.size(value) >= keeper.floor {
                    keeper.offer(twin, value);
                }
            }
        };
        let from = shared.row.columns.partition_point(|&column| column < first);
        for (&column, &value) in shared.row.columns.iter().zip(&shared.row.values).skip(from) {
            offer_twins_before(Some(column), &mut keeper);
            keeper.offer(column, value);
        }
        offer_twins_before(None, &mut keeper);
        keeper.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sign, Sparsify};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn panels_and_rows_keep_the_same_and_the_result_is_symmetric(
            cells in proptest::collection::vec(-1.0f64..1.0, 36), k in 1usize..9, absolute: bool, which in 0usize..3,
            apart in -1.0f64..1.0, order in Just([0u32, 1, 2, 3, 4, 5]).prop_shuffle(), upper: bool,
        ) {
            // Six classes, symmetric up to noise like a rounded kernel; class 1 is the vertices 1, 4 and 7.
            let classes: [&[u32]; 6] = [&[0], &[1, 4, 7], &[2], &[3], &[5], &[6]];
            let class_of = |vertex: u32| classes.iter().position(|class| class.contains(&vertex)).unwrap();
            let at = |i: usize, j: usize| cells[i.min(j) * 6 + i.max(j)] * (1.0 + 1e-13 * (i as f64));
            let entry = |u: u32, v: u32| {
                let (c, d) = (class_of(u), class_of(v));
                at(c, d) + match () {
                    () if c != 1 || d != 1 => 0.0,
                    () if u == v => apart - apart / 3.0,
                    () => -(apart / 3.0),
                }
            };
            let sparsify = [Sparsify::TopK(k), Sparsify::Epsilon(0.3), Sparsify::None][which];
            let rule = Rule { sparsify, sign: if absolute { Sign::Absolute } else { Sign::Positive }, upper };
            let by_row: Vec<Row> = (0..8)
                .map(|u| rule.keep_row(u, 0, &(0..8).map(|v| entry(u, v)).collect::<Vec<_>>()))
                .collect();
            let positions: Vec<u32> = (0..8).map(|vertex| order[class_of(vertex)]).collect();
            let mut panel = [Line([0.0; 8]); 6];
            for i in 0..6 { for j in 0..6 { panel[order[j] as usize][i] = at(i, j); } }
            let lanes: Vec<Lane<'_>> =
                classes.iter().map(|class| Lane { rows: class, class, apart }).collect();
            let kept = rule.keep_panel(&lanes, &positions, &mut panel);
            for (row, kept) in classes.concat().into_iter().zip(kept) {
                let expected = &by_row[row as usize];
                prop_assert_eq!(&kept.columns, &expected.columns, "row {}", row);
                let close = kept.values.iter().zip(&expected.values).all(|(a, b)| (a - b).abs() < 1e-15);
                prop_assert!(close, "row {}", row);
            }
            let matrix = rule.assemble(by_row);
            prop_assert_eq!(&matrix, &matrix.transpose());
        }
    }
}
