//! The doors to the machine: loops compiled for the CPU at hand, the dense products of `gemm`, large pages.
//!
//! [`Loops`] and [`dispatch`] are the core's. Vector instructions by name, the call into the `gemm` crate and
//! the one that asks for large pages need `unsafe`.

#![allow(unsafe_code)]

pub(crate) use qdc_core::cpu::{Loops, dispatch};

use crate::Real;
use crate::dense::View;

/// Asks the system for large pages under an array that has not been written to yet. Rows gathered from all
/// over it then find their addresses without a walk through the page tables. A refusal costs nothing.
pub(crate) fn prefer_large_pages<T>(array: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const SMALL: usize = 1 << 12;
        const LARGE: usize = 1 << 21;
        let start = (array.as_mut_ptr() as usize).next_multiple_of(SMALL);
        let end = array.as_mut_ptr_range().end as usize / SMALL * SMALL;
        if end >= start + LARGE {
            // SAFETY: the range lies within the array, and the advice changes how it is mapped, not what it holds.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = array; // other systems decide for themselves
}

/// `a * b + c`, fused where that is one instruction.
#[inline(always)]
pub(crate) fn multiply_add<T: Real, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// `sum += factor * row` on eight lanes.
#[inline(always)]
pub(crate) fn add_scaled_f32<const FUSED: bool>(sum: &mut [f32; 8], factor: f32, row: &[f32; 8]) {
    #[cfg(target_arch = "x86_64")]
    if FUSED {
        use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps};
        // SAFETY: on x86-64 only `dispatch` sets FUSED, after it has detected AVX2 and FMA; the arrays hold eight
        // numbers each, and unaligned loads and stores ask for no alignment.
        unsafe {
            let (old, row) = (_mm256_loadu_ps(sum.as_ptr()), _mm256_loadu_ps(row.as_ptr()));
            _mm256_storeu_ps(sum.as_mut_ptr(), _mm256_fmadd_ps(_mm256_set1_ps(factor), row, old));
        }
        return;
    }
    for lane in 0..8 {
        sum[lane] = multiply_add::<f32, FUSED>(factor, row[lane], sum[lane]);
    }
}

/// The scalar product of two slices, as eight partial sums; what exceeds a multiple of eight is not looked at.
#[inline(always)]
pub(crate) fn dot_lanes_f32<const FUSED: bool>(a: &[f32], b: &[f32]) -> [f32; 8] {
    let chunks = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut lanes = [0.0; 8];
    #[cfg(target_arch = "x86_64")]
    if FUSED {
        use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps};
        // SAFETY: as in `add_scaled_f32`; the sum stays in a register.
        unsafe {
            let mut sum = _mm256_setzero_ps();
            for (a, b) in chunks {
                sum = _mm256_fmadd_ps(_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr()), sum);
            }
            _mm256_storeu_ps(lanes.as_mut_ptr(), sum);
        }
        return lanes;
    }
    for (a, b) in chunks {
        for lane in 0..8 {
            lanes[lane] = multiply_add::<f32, FUSED>(a[lane], b[lane], lanes[lane]);
        }
    }
    lanes
}

/// `out = left * right` by the `gemm` crate; `dense::product` is what to call.
pub(crate) fn gemm<T: Real>(left: View<'_, T>, right: View<'_, T>, out: &mut [T]) {
    assert_eq!(left.columns, right.rows, "inner sizes of a product");
    assert_eq!(out.len(), left.rows * right.columns, "size of a product");
    if out.is_empty() {
        return;
    }
    if left.columns == 0 {
        return out.fill(T::ZERO);
    }
    for view in [left, right] {
        let last = (view.rows - 1) * view.row_step + (view.columns - 1) * view.column_step;
        assert!(last < view.values.len(), "the last entry of a factor lies within its values");
    }
    // SAFETY: all entries of both views lie within their values, as was just checked; `out` holds left.rows *
    // right.columns values and, being `&mut`, overlaps neither; `read_dst` is false, so `out` is only written.
    unsafe {
        gemm::gemm(
            left.rows,
            right.columns,
            left.columns,
            out.as_mut_ptr(),
            1,
            right.columns as isize,
            false,
            left.values.as_ptr(),
            left.column_step as isize,
            left.row_step as isize,
            right.values.as_ptr(),
            right.column_step as isize,
            right.row_step as isize,
            T::ZERO,
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
