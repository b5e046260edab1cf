//! One split on several threads: loops over rows are cut into parts, where threads would otherwise be idle.
//!
//! Splits are trained side by side first, as that needs no waiting. Only while fewer of them are in training
//! than there are threads are the loops within a split shared. **Nothing here changes a result**: a part has
//! whole rows of a result that are computed independently of the others, and sums over rows are taken in blocks of
//! [`BLOCK`] rows that are added in their order, whatever the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::Real;
use crate::sparse::ranges;

/// The rows that are summed one after the other. Graphs with no more vertices have one block.
pub(crate) const BLOCK: usize = 1 << 16;

/// Multiplications from which on a loop is worth sharing, four milliseconds or more of one thread. Below, waking the
/// others, cold caches and smaller parts cost more than they save (bench/train/RESULTS.md).
const WORTH_SHARING: usize = 1 << 25;

/// Parts for each thread: rows differ in length, so some parts take longer than others.
const PARTS: usize = 4;

/// Splits in training in this process.
static IN_TRAINING: AtomicUsize = AtomicUsize::new(0);

/// Counts a split as being in training, until it is dropped: then its thread may help the others.
pub(crate) struct InTraining;

impl InTraining {
    pub(crate) fn begin() -> Self {
        IN_TRAINING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for InTraining {
    fn drop(&mut self) {
        IN_TRAINING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The threads that a loop of so many multiplications is shared by.
fn threads(work: usize) -> usize {
    if work < WORTH_SHARING {
        return 1;
    }
    let all = rayon::current_num_threads();
    if IN_TRAINING.load(Ordering::Relaxed) < all { all } else { 1 }
}

/// The size of the parts that `count` rows are shared in; `None` where one thread does them all. Parts are
/// multiples of `unit`, and at least `least`.
pub(crate) fn part(count: usize, (unit, least): (usize, usize), work: usize) -> Option<usize> {
    let threads = threads(work);
    let size = count.div_ceil(PARTS * threads).max(least).next_multiple_of(unit);
    (threads > 1 && 2 * size <= count).then_some(size)
}

/// Calls `compute(first, part)` for parts of `values` that hold whole rows of `width` numbers, from row `first`
/// on; together they are all of it. `sizes` are the unit and the least of [`part`], and `work` is the number of
/// multiplications of all.
pub(crate) fn for_rows<T: Send>(
    values: &mut [T],
    width: usize,
    sizes: (usize, usize),
    work: usize,
    compute: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = values.len() / width.max(1);
    let Some(size) = part(rows, sizes, work) else { return compute(0, values) };
    // What is left over joins the last part, so that no part has fewer rows than `least`.
    let parts = rows / size;
    let (whole, last) = values.split_at_mut((parts - 1) * size * width);
    rayon::join(
        || compute((parts - 1) * size, last),
        || {
            let parts = whole.par_chunks_mut(size * width).enumerate();
            parts.for_each(|(part, values)| compute(part * size, values));
        },
    );
}

/// Calls `compute` for each of some pieces of work, on several threads where `work` multiplications are worth it.
pub(crate) fn for_each<P: Send>(pieces: Vec<P>, work: usize, compute: impl Fn(P) + Sync + Send) {
    if threads(work) == 1 {
        pieces.into_iter().for_each(compute);
    } else {
        pieces.into_par_iter().with_max_len(1).for_each(compute);
    }
}

/// `sum` is set to the sum of `parts`, which lie one after the other, added in their order.
pub(crate) fn add_in_order<T: Real>(sum: &mut [T], parts: &[T]) {
    sum.fill(T::ZERO);
    for part in parts.chunks_exact(sum.len().max(1)) {
        sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum += part);
    }
}

/// `sum` is set to the sum over the blocks of 0..`count` of what `compute(block, sum)` leaves in a sum of that
/// block alone; blocks are added in their order. `work` as in [`for_rows`].
pub(crate) fn sum_over_blocks<T: Real>(
    sum: &mut [T],
    count: usize,
    work: usize,
    compute: impl Fn(Range<usize>, &mut [T]) + Sync + Send,
) {
    if count <= BLOCK || sum.is_empty() {
        return compute(0..count, sum);
    }
    let mut sums = vec![T::ZERO; count.div_ceil(BLOCK) * sum.len()];
    let pieces = sums.chunks_exact_mut(sum.len()).zip(ranges(count, BLOCK)).collect();
    for_each(pieces, work, |(sum, block)| compute(block, sum));
    add_in_order(sum, &sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    #[test]
    fn every_row_is_in_one_part_and_parts_are_as_large_as_asked_for() {
        for (rows, unit, least) in [(0, 1, 1), (1, 1, 1), (1000, 8, 16), (1003, 8, 128), (77, 1, 50)] {
            let mut values = vec![0u32; 3 * rows];
            with_threads(3, || {
                for_rows(&mut values, 3, (unit, least), WORTH_SHARING, |first, part| {
                    assert!(
                        first.is_multiple_of(unit) && (part.len() >= 3 * least || part.len() == 3 * rows)
                    );
                    for (at, value) in part.iter_mut().enumerate() {
                        *value += (3 * first + at) as u32 + 1;
                    }
                });
            });
            assert!(values.iter().enumerate().all(|(at, &value)| value == at as u32 + 1), "{rows} rows");
        }
    }

    #[test]
    fn sums_over_blocks_do_not_depend_on_the_number_of_threads_and_one_block_is_summed_as_it_is() {
        let term = |at: usize| 1.0 / (at + 1) as f32;
        let summed = |count: usize, threads: usize| {
            with_threads(threads, || {
                let mut sum = [7.0f32; 2];
                sum_over_blocks(&mut sum, count, WORTH_SHARING, |block, sum| {
                    sum[0] = block.clone().fold(0.0, |sum, at| sum + term(at));
                    sum[1] = block.len() as f32;
                });
                sum
            })
        };
        let count = 3 * BLOCK + 5;
        let expected = summed(count, 1);
        assert_eq!(expected[1], count as f32);
        for threads in [2, 3, 8] {
            assert_eq!(summed(count, threads), expected);
        }
        assert_eq!(summed(BLOCK, 2)[0], (0..BLOCK).fold(0.0, |sum, at| sum + term(at)));
    }

    #[test]
    fn threads_are_shared_only_while_fewer_splits_are_in_training_than_there_are_threads() {
        // Far more threads than the other tests of this process train splits.
        with_threads(64, || {
            assert_eq!((threads(WORTH_SHARING), threads(WORTH_SHARING - 1)), (64, 1));
            let mut all: Vec<InTraining> = (0..64).map(|_| InTraining::begin()).collect();
            assert_eq!(threads(WORTH_SHARING), 1);
            all.truncate(4);
            assert_eq!(threads(WORTH_SHARING), 64);
        });
    }
}
