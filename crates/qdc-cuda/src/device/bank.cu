// The bank of windows: the shares of its channels, rows divided by their norms, and the way back.
//
// `y` holds the channels one after the other, a row for each vertex; `active` holds them side by side.

#include "common.cuh"

constexpr float SMALLEST_NORM = 1e-12f;

struct Shares {
    const Run *runs;
    const float *weights; // the logarithms of the shares, of the first run
    float *shares;        // of each run and channel
    const double *parts;  // of each run, channel and block: what the shares' gradient is the sum of
    float *gradient;      // of the logarithms
    u64 weights_run;
    u64 gradient_run;
    u32 channels;
    u32 blocks;
};

__device__ __forceinline__ float warp_sum(float x) {
    for (u32 step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ __forceinline__ double warp_sum(double x) {
    for (u32 step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// s = K softmax(a). One warp for each run.
extern "C" __global__ void shares(const Shares a) {
    const u32 r = blockIdx.x, lane = threadIdx.x;
    if (a.runs[r].stopped) return;
    const float *logs = a.weights + r * a.weights_run;
    float highest = logs[0], sum = 0.0f;
    for (u32 k = 1; k < a.channels; k++) highest = fmaxf(highest, logs[k]);
    for (u32 k = lane; k < a.channels; k += 32) sum += expf(logs[k] - highest);
    const float mean = warp_sum(sum) / (float)a.channels;
    for (u32 k = lane; k < a.channels; k += 32) a.shares[r * a.channels + k] = expf(logs[k] - highest) / mean;
}

// d a_k = s_k (d s_k - mean over j of s_j d s_j). One warp for each run.
extern "C" __global__ void shares_back(const Shares a) {
    const u32 r = blockIdx.x, lane = threadIdx.x;
    if (a.runs[r].stopped) return;
    const float *shares = a.shares + r * a.channels;
    float *gradient = a.gradient + r * a.gradient_run;
    float sum = 0.0f;
    for (u32 k = lane; k < a.channels; k += 32) {
        double d = 0.0;
        for (u32 block = 0; block < a.blocks; block++) d += a.parts[((u64)r * a.channels + k) * a.blocks + block];
        gradient[k] = (float)d;
        sum += (float)d * shares[k];
    }
    const float mean = warp_sum(sum) / (float)a.channels;
    for (u32 k = lane; k < a.channels; k += 32) gradient[k] = shares[k] * (gradient[k] - mean);
}

struct Channels {
    const Run *runs;
    float *y;      // h, then y, then dh: of each run, channel, row and column
    float *active; // s drop(relu(y)), later its gradient: of each run, row, channel and column
    float *inverse;       // what rows were divided by, inverted: of each run, channel and row
    const float *weights; // of the first run
    const u32 *biases;    // where the bias of each channel lies among the weights
    const float *constants; // the factor of each bias
    const float *shares;    // of each run and channel
    double *parts;          // of each run, channel and block
    u64 weights_run;
    Mask mask; // of the first channel; the streams of the others follow at a distance of 2
    u32 rows;
    u32 hidden; // columns, padding included
    u32 channels;
    u32 norm;
    u32 per_block; // rows
    u32 pad;
};

// y = (h + c b) / |h + c b|, row by row, a warp for each.
extern "C" __global__ void channel_finish(const Channels a) {
    const u32 r = blockIdx.z, k = blockIdx.y, lane = threadIdx.x;
    const u32 row = blockIdx.x * blockDim.y + threadIdx.y;
    if (a.runs[r].stopped || row >= a.rows) return;
    const u64 place = ((u64)r * a.channels + k) * a.rows + row;
    float *y = a.y + place * a.hidden;
    const float *bias = a.weights + r * a.weights_run + a.biases[k];
    const float constant = a.constants[k];
    float square = 0.0f;
    for (u32 j = lane; j < a.hidden; j += 32) {
        const float h = y[j] + constant * bias[j];
        y[j] = h;
        square += h * h;
    }
    if (!a.norm) return;
    const float inverse = 1.0f / fmaxf(sqrtf(warp_sum(square)), SMALLEST_NORM);
    for (u32 j = lane; j < a.hidden; j += 32) y[j] *= inverse;
    if (lane == 0) a.inverse[place] = inverse;
}

__device__ __forceinline__ Mask mask_of(const Channels &a, u32 k) {
    Mask mask = a.mask;
    mask.stream += 2 * k;
    return mask;
}

// active = s drop(relu(y)): a thread for each four columns.
extern "C" __global__ void __launch_bounds__(256) channel_join(const Channels a) {
    const u32 r = blockIdx.z, k = blockIdx.y;
    const Run &run = a.runs[r];
    const u32 at = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (run.stopped || at >= a.rows * a.hidden) return;
    Finish finish = {};
    finish.mask = mask_of(a, k);
    finish.activation = 1;
    const u64 key = mask_key(run, finish.mask);
    const float share = a.shares[r * a.channels + k];
    float4 y = *(const float4 *)(a.y + ((u64)r * a.channels + k) * a.rows * a.hidden + at);
    y = finished4(y, finish, nullptr, key, 0, at);
    const u32 row = at / a.hidden, column = at % a.hidden;
    float *active = a.active + (((u64)r * a.rows + row) * a.channels + k) * a.hidden + column;
    *(float4 *)active = make_float4(share * y.x, share * y.y, share * y.z, share * y.w);
}

// From the gradient of `active` to dh, written over y, and parts of <drop(relu(y)), gradient>: those of the shares.
// A warp for each row, a block for some rows of a channel. With y = h / |h|: dh = (dy - y <y, dy>) / |h|.
extern "C" __global__ void channel_split(const Channels a) {
    __shared__ double sums[8];
    const u32 r = blockIdx.z, k = blockIdx.y, lane = threadIdx.x;
    const Run &run = a.runs[r];
    if (run.stopped) return;
    const Mask mask = mask_of(a, k);
    const u64 key = mask_key(run, mask);
    const float scale = mask.scale == 0.0f ? 1.0f : mask.scale;
    const float share = a.shares[r * a.channels + k];
    const u32 first = blockIdx.x * a.per_block, end = min(first + a.per_block, a.rows);
    double total = 0.0;
    for (u32 row = first + threadIdx.y; row < end; row += blockDim.y) {
        const u64 place = ((u64)r * a.channels + k) * a.rows + row;
        float *y = a.y + place * a.hidden;
        float *d = a.active + (((u64)r * a.rows + row) * a.channels + k) * a.hidden;
        float own = 0.0f, along = 0.0f;
        for (u32 j = lane; j < a.hidden; j += 32) {
            const bool passes = y[j] > 0.0f && (mask.scale == 0.0f || stays(key, mask, row * a.hidden + j));
            const float dj = passes ? d[j] * scale : 0.0f;
            own += y[j] * dj;
            along += y[j] * (share * dj);
            d[j] = share * dj;
        }
        total += (double)own;
        if (a.norm) {
            along = warp_sum(along);
            const float inverse = a.inverse[place];
            for (u32 j = lane; j < a.hidden; j += 32) y[j] = (d[j] - along * y[j]) * inverse;
        } else {
            for (u32 j = lane; j < a.hidden; j += 32) y[j] = d[j];
        }
    }
    total = warp_sum(total);
    if (lane == 0) sums[threadIdx.y] = total;
    __syncthreads();
    if (lane == 0 && threadIdx.y == 0) {
        double sum = 0.0;
        for (u32 warp = 0; warp < blockDim.y; warp++) sum += sums[warp];
        a.parts[((u64)r * a.channels + k) * gridDim.x + blockIdx.x] = sum;
    }
}
