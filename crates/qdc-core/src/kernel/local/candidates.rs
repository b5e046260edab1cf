//! The largest of the entries that a walk has left, before they are settled.

use std::cmp::Ordering;

use super::field::Field;

/// Entries by size, and their positions.
///
/// A walk leaves tens of thousands of entries, of which dozens are wanted. They are looked at without a branch, as a
/// wrongly predicted one would wait for its cell; whenever the list is full, all but the largest are dropped, and what
/// is smaller than those is not taken any more.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    list: Vec<(f32, u32)>,
    count: usize,
}

impl Candidates {
    /// Finds the `most` largest entries of at least `floor`, of equal ones those at lower positions.
    #[inline(always)]
    pub(super) fn choose(
        &mut self,
        field: &mut Field,
        most: usize,
        mut floor: f32,
        size: impl Fn(f32) -> f32,
    ) {
        let room = most.saturating_mul(4).min(field.count()) + 1;
        self.list.clear();
        self.list.resize(room, (0.0, 0));
        let (mut count, list) = (0, &mut self.list[..]);
        field.for_touched(|position, cell| {
            let size = size(cell.sum);
            list[count] = (size, position);
            count += usize::from(size >= floor);
            if count == room {
                count = keep_largest(list, count, most);
                floor = list[..count].iter().fold(f32::INFINITY, |least, found| least.min(found.0));
            }
        });
        self.count = keep_largest(list, count, most);
    }

    /// What was found, in no order.
    pub(super) fn found(&self) -> &[(f32, u32)] {
        &self.list[..self.count]
    }
}

/// Moves the `most` largest of the first `count` to the front, and gives their number.
fn keep_largest(list: &mut [(f32, u32)], count: usize, most: usize) -> usize {
    let larger = |a: &(f32, u32), b: &(f32, u32)| -> Ordering { b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)) };
    if count > most {
        list[..count].select_nth_unstable_by(most - 1, larger);
    }
    count.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::local::field::Links;
    use crate::splitmix::scramble;
    use crate::{EdgeRule, Graph, Transition};

    #[test]
    fn the_largest_entries_are_found_whatever_their_order_and_ties_go_to_lower_positions() {
        let star = Graph::from_edges(900, (1..900).map(|leaf| (0, leaf)), EdgeRule::Undirected).unwrap();
        let links = Links::of(Transition::new(&star).matrix());
        let mut field = Field::new(&links);
        for round in 0..20 {
            field.start(0, 0.0);
            field.spread(&links, &[0], |_| 1.0);
            let mut all = Vec::new();
            field.for_touched(|position, cell| {
                cell.sum = (scramble(u64::from(position) + 1000 * round) % 300) as f32 - 150.0;
                all.push((cell.sum, position));
            });
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for most in [1, 7, 64, 400, usize::MAX] {
                let mut candidates = Candidates::default();
                candidates.choose(&mut field, most, 0.5, |value| value);
                let mut found = candidates.found().to_vec();
                found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                let expected: Vec<_> = all.iter().copied().filter(|one| one.0 >= 0.5).take(most).collect();
                assert_eq!(found, expected, "the {most} largest");
            }
        }
    }
}
