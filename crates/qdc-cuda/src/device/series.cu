// Polynomials of L in training: the terms of a Chebyshev series, and the window that is learned.

#include "sparse.cuh"

constexpr u32 POINTS = 1024;       // the most that a series is interpolated in
constexpr u32 TERMS = POINTS / 2;  // the most there can be
constexpr double TOLERANCE = 1e-7; // what is dropped of a series sums up to less
constexpr double PI = 3.14159265358979323846;

struct Term {
    Sparse matrix;
    const Run *runs;
    const float *x;      // T_{j-1}
    const float *before; // T_{j-2}; null for j = 1
    float *out;          // T_j
    float *y;            // the sum of c_j T_j so far
    const float *z;      // null: no moments are wanted
    double *moments;     // of each run, term and block: parts of <z, T_j>
    const double *coefficients; // of the first run
    const u32 *counts;          // terms of each run; null: all
    u64 x_run;
    u64 before_run;
    u64 out_run;
    u64 y_run;
    u64 z_run;
    u64 coefficients_run;
    u32 rows;
    u32 stride;
    u32 chunks;
    u32 term; // j
};

__device__ __forceinline__ double dot(float4 a, float4 b) {
    return (double)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}

// The sum over a block, in the first thread; `sums` has room for a number of each thread.
__device__ __forceinline__ double block_sum(double own, double *sums) {
    const u32 threads = blockDim.x * blockDim.y * blockDim.z;
    const u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    __syncthreads();
    sums[thread] = own;
    __syncthreads();
    u32 count = threads;
    while (count > 1) {
        const u32 half = (count + 1) / 2;
        if (thread < count / 2) sums[thread] += sums[thread + half];
        count = half;
        __syncthreads();
    }
    return sums[0];
}

// T_j = 2 L T_{j-1} - T_{j-2} (T_1 = L T_0) and y += c_j T_j; for j = 1 y begins with c_0 T_0. Threads as in `gather`.
extern "C" __global__ void __launch_bounds__(256) term(const Term a) {
    extern __shared__ float4 partial[];
    const u32 r = blockIdx.z;
    if (a.runs[r].stopped) return;
    const u32 count = a.counts ? a.counts[r] : TERMS;
    if (a.term > 1 && a.term >= count) return;
    const u32 row = blockIdx.x * blockDim.z + threadIdx.z;
    const u32 chunk = blockIdx.y * blockDim.x + threadIdx.x;
    const bool inside = row < a.rows && chunk < a.chunks;
    float4 t = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) {
        t = row_times(a.matrix, (const float4 *)(a.x + r * a.x_run) + chunk, a.stride / 4, row);
    }
    t = sum_of_parts(t, partial);
    double moment = 0.0, first = 0.0;
    if (inside && threadIdx.y == 0) {
        const u64 place = (u64)row * a.stride + 4 * chunk;
        const double *c = a.coefficients + r * a.coefficients_run;
        const float own = a.term < count ? (float)c[a.term] : 0.0f;
        float4 *y = (float4 *)(a.y + r * a.y_run + place);
        float4 sum, x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (a.term == 1) {
            const float c0 = (float)c[0];
            x = *(const float4 *)(a.x + r * a.x_run + place);
            sum = make_float4(c0 * x.x, c0 * x.y, c0 * x.z, c0 * x.w);
        } else {
            const float4 b = *(const float4 *)(a.before + r * a.before_run + place);
            t = make_float4(2.0f * t.x - b.x, 2.0f * t.y - b.y, 2.0f * t.z - b.z, 2.0f * t.w - b.w);
            sum = *y;
        }
        *y = make_float4(sum.x + own * t.x, sum.y + own * t.y, sum.z + own * t.z, sum.w + own * t.w);
        *(float4 *)(a.out + r * a.out_run + place) = t;
        if (a.z) {
            const float4 z = *(const float4 *)(a.z + r * a.z_run + place);
            moment = dot(z, t);
            if (a.term == 1) first = dot(z, x);
        }
    }
    if (!a.z) return;
    double *sums = (double *)partial;
    const u32 blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
    moment = block_sum(moment, sums);
    if (a.term == 1) first = block_sum(first, sums);
    if (threadIdx.x + threadIdx.y + threadIdx.z > 0) return;
    double *moments = a.moments + (u64)r * TERMS * blocks;
    moments[(u64)a.term * blocks + block] = moment;
    if (a.term == 1) moments[block] = first;
}

struct Window {
    const Run *runs;
    float *weights;   // mu and sigma, of the first run
    double *terms;    // of each run: c_k, d c_k / d mu and d c_k / d sigma, TERMS of each
    u32 *counts;      // of each run: how many of them matter
    const double *moments; // of each run, term and block
    float *gradient;       // of mu and sigma
    u64 weights_run;
    u64 gradient_run;
    u32 blocks;
    u32 pad;
};

__device__ __forceinline__ double cosine(const double *table, u32 points, u32 at) { // cos(pi at / (2 points))
    at %= 4 * points;
    if (at > 2 * points) at = 4 * points - at;
    return at > points ? -table[2 * points - at] : table[at];
}

// The Chebyshev coefficients of the Gaussian and its derivatives by interpolation in Chebyshev nodes, as
// `WindowSeries` of the CPU code; mu and sigma are moved into their bounds first. A block for each run.
extern "C" __global__ void __launch_bounds__(512) window_series(const Window a) {
    __shared__ double table[POINTS + 1];
    __shared__ double values[3][POINTS];
    const u32 r = blockIdx.x, thread = threadIdx.x;
    if (a.runs[r].stopped) return;
    float *window = a.weights + r * a.weights_run;
    const double mu = fmin(fmax((double)window[0], -1.5), 1.5);
    const double sigma = fmin(fmax((double)window[1], 0.02), 4.0);
    __syncthreads();
    if (thread == 0) {
        window[0] = (float)mu;
        window[1] = (float)sigma;
    }
    u32 points = 1;
    const u32 wanted = (u32)(16.0 / sigma) + 32;
    while (points < wanted) points *= 2;
    points = min(points, POINTS);
    for (u32 at = thread; at <= points; at += blockDim.x) table[at] = cos((double)at * PI / (2 * points));
    __syncthreads();
    for (u32 node = thread; node < points; node += blockDim.x) {
        const double distance = (cosine(table, points, 2 * node + 1) - mu) / sigma;
        const double value = exp(-0.5 * distance * distance);
        values[0][node] = value;
        values[1][node] = value * distance / sigma;
        values[2][node] = value * distance * distance / sigma;
    }
    __syncthreads();
    double *terms = a.terms + (u64)r * 3 * TERMS;
    const u32 k = thread;
    if (k < points / 2) {
        double sums[3] = {0.0, 0.0, 0.0};
        for (u32 j = 0; j < points; j++) {
            const double c = cosine(table, points, k * (2 * j + 1));
            for (u32 which = 0; which < 3; which++) sums[which] += values[which][j] * c;
        }
        const double factor = (k == 0 ? 1.0 : 2.0) / points;
        for (u32 which = 0; which < 3; which++) terms[which * TERMS + k] = sums[which] * factor;
    }
    __syncthreads();
    if (thread > 0) return;
    u32 count = points / 2;
    double left_out[3] = {0.0, 0.0, 0.0};
    for (; count > 1; count--) {
        for (u32 which = 0; which < 3; which++) left_out[which] += fabs(terms[which * TERMS + count - 1]);
        if (left_out[0] > TOLERANCE || left_out[1] > TOLERANCE || left_out[2] > TOLERANCE) break;
    }
    a.counts[r] = count;
}

// d loss / d mu = sum_k (d c_k / d mu) <z, T_k(L) dy>, and likewise sigma. A block of eight warps for each run.
extern "C" __global__ void window_back(const Window a) {
    __shared__ double sums[2][8];
    const u32 r = blockIdx.x, lane = threadIdx.x, warp = threadIdx.y;
    if (a.runs[r].stopped) return;
    const double *slopes = a.terms + ((u64)r * 3 + 1) * TERMS;
    double by_mu = 0.0, by_sigma = 0.0;
    for (u32 k = warp; k < a.counts[r]; k += 8) {
        const double *parts = a.moments + ((u64)r * TERMS + k) * a.blocks;
        double moment = 0.0;
        for (u32 block = lane; block < a.blocks; block += 32) moment += parts[block];
        for (u32 step = 16; step > 0; step /= 2) moment += __shfl_xor_sync(0xffffffffu, moment, step);
        by_mu += slopes[k] * moment;
        by_sigma += slopes[TERMS + k] * moment;
    }
    if (lane == 0) {
        sums[0][warp] = by_mu;
        sums[1][warp] = by_sigma;
    }
    __syncthreads();
    if (lane > 0 || warp > 1) return;
    double sum = 0.0;
    for (u32 w = 0; w < 8; w++) sum += sums[warp][w];
    a.gradient[r * a.gradient_run + warp] = (float)sum;
}
