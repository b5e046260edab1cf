// Products of a sparse matrix with a dense one, sums of matrices, and the way back through bias and activation.

#include "sparse.cuh"

struct Gather {
    Sparse matrix;
    const Run *runs;
    const float *x;
    float *y;
    u64 x_run;
    u64 y_run;
    Mask mask; // of the entries
    Finish finish;
    u32 rows;
    u32 stride; // of x and y
    u32 chunks; // groups of four columns that hold something
    u32 pad;
};

// y = drop(S) x, then `finish`. Threads: x a group of four columns, y a part of the row's entries, z a row.
extern "C" __global__ void __launch_bounds__(256) gather(const Gather a) {
    extern __shared__ float4 partial[];
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    if (run.stopped) return;
    const u32 row = blockIdx.x * blockDim.z + threadIdx.z;
    const u32 chunk = blockIdx.y * blockDim.x + threadIdx.x;
    const bool inside = row < a.rows && chunk < a.chunks;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) {
        const u64 key = mask_key(run, a.mask);
        const float4 *x = (const float4 *)(a.x + r * a.x_run) + chunk;
        const u32 stride = a.stride / 4;
        const u32 end = a.matrix.pointers[row + 1];
        #pragma unroll 4
        for (u32 e = a.matrix.pointers[row] + threadIdx.y; e < end; e += blockDim.y) {
            float value = a.matrix.values[e];
            if (a.mask.scale != 0.0f) {
                const u32 place = a.matrix.places ? a.matrix.places[e] : e;
                if (!stays(key, a.mask, place)) continue;
                value *= a.mask.scale;
            }
            const float4 v = x[(u64)a.matrix.indices[e] * stride];
            sum.x += value * v.x;
            sum.y += value * v.y;
            sum.z += value * v.z;
            sum.w += value * v.w;
        }
    }
    sum = sum_of_parts(sum, partial);
    if (inside && threadIdx.y == 0) {
        const u32 index = row * a.stride + 4 * chunk;
        const float *bias = bias_of(a.finish, r);
        sum = finished4(sum, a.finish, bias, mask_key(run, a.finish.mask), 4 * chunk, index);
        *(float4 *)(a.y + r * a.y_run + (u64)row * a.stride + 4 * chunk) = sum;
    }
}

struct Drop {
    const Run *runs;
    const float *x; // shared by all runs
    float *y;
    u64 y_run;
    Mask mask;
    u32 length;
    u32 pad;
};

// y = drop(x), entry by entry: dense features.
extern "C" __global__ void drop(const Drop a) {
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (run.stopped || at >= a.length) return;
    float x = a.x[at];
    if (a.mask.scale != 0.0f) x = stays(mask_key(run, a.mask), a.mask, at) ? x * a.mask.scale : 0.0f;
    a.y[r * a.y_run + at] = x;
}

struct Add {
    const Run *runs;
    const float *x; // null: nothing is added
    float *y;
    u64 x_run;
    u64 y_run;
    Finish finish;
    u32 length;
    u32 stride;
    u32 fresh; // y begins at 0
    u32 pad;
};

// y += x, then `finish`: how towers meet, and what follows a dense product.
extern "C" __global__ void add(const Add a) {
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (run.stopped || at >= a.length) return;
    float *y = a.y + r * a.y_run + at;
    const float sum = (a.fresh ? 0.0f : *y) + (a.x ? a.x[r * a.x_run + at] : 0.0f);
    *y = finished(sum, a.finish, bias_of(a.finish, r), mask_key(run, a.finish.mask), at % a.stride, at);
}

struct Back {
    const Run *runs;
    const float *y;
    float *dy;
    float *parts; // column sums, one row for each block of rows; null: no bias
    u64 y_run;
    u64 parts_run;
    Mask mask;
    u32 activation;
    u32 rows;
    u32 stride;
    u32 per_block; // rows
};

// dx = dy act'(a) k in place, k the mask, and the sums of dx over blocks of rows: the gradient of the bias.
extern "C" __global__ void back(const Back a) {
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    const u32 column = blockIdx.y * blockDim.x + threadIdx.x;
    if (run.stopped) return;
    extern __shared__ float sums[];
    const u64 key = mask_key(run, a.mask);
    const u32 first = blockIdx.x * a.per_block;
    const u32 end = min(first + a.per_block, a.rows);
    const float share = a.mask.scale == 0.0f ? 1.0f : 1.0f / a.mask.scale;
    const bool changes = a.activation != 0 || a.mask.scale != 0.0f;
    float sum = 0.0f;
    if (column < a.stride) {
        for (u32 row = first + threadIdx.y; row < end; row += blockDim.y) {
            const u32 at = row * a.stride + column;
            const u64 place = r * a.y_run + (u64)row * a.stride + column;
            float d = a.dy[place];
            if (changes) {
                const float y = a.y[place] * share; // y carries the factor of the mask
                if (a.activation == 1) d *= y > 0.0f ? 1.0f : 0.0f;
                if (a.activation == 2) d *= y > 0.0f ? 1.0f : y + 1.0f;
                if (a.mask.scale != 0.0f) d = stays(key, a.mask, at) ? d * a.mask.scale : 0.0f;
                a.dy[place] = d;
            }
            sum += d;
        }
    }
    if (!a.parts) return;
    sum = sum_of_parts(sum, sums);
    if (threadIdx.y == 0 && column < a.stride) {
        a.parts[r * a.parts_run + blockIdx.x * a.stride + column] = sum;
    }
}
