//! Arrays that begin at a cache line, the large ones in large pages where the system gives them.
//!
//! A vector of 64 bytes that straddles two lines costs two accesses; the allocator promises 16 bytes only,
//! and gives large arrays no more than that.

use std::ops::{Deref, DerefMut};

use crate::Real;
use crate::hardware::prefer_large_pages;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Numbers whose first one lies at the beginning of a cache line; used as a slice.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    /// Longer than needed by a line.
    room: Vec<T>,
    first: usize,
    length: usize,
}

impl<T: Real> Aligned<T> {
    /// `length` zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let spare = if length == 0 { 0 } else { LINE / size_of::<T>() };
        let mut room = vec![T::ZERO; length + spare];
        prefer_large_pages(&mut room);
        Self { first: first_of_line(&room, spare), room, length }
    }
}

impl<T: Real> From<&[T]> for Aligned<T> {
    fn from(values: &[T]) -> Self {
        let mut array = Self::zeros(values.len());
        array.copy_from_slice(values);
        array
    }
}

/// Where a line begins within the first `spare` numbers of `room`. It may not be known (the documentation of
/// `align_offset` allows that): then the array just is not aligned.
fn first_of_line<T>(room: &[T], spare: usize) -> usize {
    room.as_ptr().align_offset(LINE).min(spare)
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.room[self.first..][..self.length]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.room[self.first..][..self.length]
    }
}

impl<T: Clone> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        let mut room = self.room.clone();
        let first = first_of_line(&room, room.len() - self.length);
        room[first..][..self.length].clone_from_slice(self);
        Self { room, first, length: self.length }
    }
}

impl<T: PartialEq> PartialEq for Aligned<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_their_copies_begin_at_a_line_and_hold_the_same() {
        for length in [1, 100, 100_000] {
            let mut array = Aligned::<f32>::zeros(length);
            array.iter_mut().enumerate().for_each(|(at, value)| *value = at as f32);
            let copy = array.clone();
            assert_eq!((copy.len(), &copy), (length, &array));
            assert!([array.as_ptr(), copy.as_ptr()].iter().all(|start| start.align_offset(LINE) == 0));
        }
    }
}
