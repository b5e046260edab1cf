// Sparse matrices and their products with dense ones, a row of which is summed by several threads.

#include "common.cuh"

// A sparse matrix by rows. `places` numbers entries in the matrix this one is the transpose of: masks are drawn by
// those numbers; null: entries stand in their own order.
struct Sparse {
    const u32 *pointers;
    const u32 *indices;
    const float *values;
    const u32 *places;
};

// The entries of a row times rows of x, of those entries that thread y of the block has: four columns.
__device__ __forceinline__ float4 row_times(const Sparse &matrix, const float4 *x, u32 stride, u32 row) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const u32 end = matrix.pointers[row + 1];
    #pragma unroll 4
    for (u32 e = matrix.pointers[row] + threadIdx.y; e < end; e += blockDim.y) {
        const float value = matrix.values[e];
        const float4 v = x[(u64)matrix.indices[e] * stride];
        sum.x += value * v.x;
        sum.y += value * v.y;
        sum.z += value * v.z;
        sum.w += value * v.w;
    }
    return sum;
}

__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// The parts of a sum, one of each thread y, added up as a tree; the sum is in the first of them. `partial` has room for
// one number of each thread of the block.
template <typename T> __device__ __forceinline__ T sum_of_parts(T sum, T *partial) {
    if (blockDim.y == 1) return sum;
    const u32 own = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    partial[own] = sum;
    for (u32 half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) {
            sum = plus(sum, partial[own + half * blockDim.x]);
            partial[own] = sum;
        }
    }
    return sum;
}
