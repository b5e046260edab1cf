// What all kernels of the training share: the runs of a batch, random numbers, and the end of a layer.
//
// A batch is a number of runs that differ in their splits, seeds and rates, and share the graph and the network's
// shape. Every array of a run lies `run` strides after the first run's; grid.z is the run. Nothing is summed by
// atomic operations, and no order of a sum depends on the number of runs: a run gives the same bytes in any batch.

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 GROUPS = 4;

// One run: what it was asked to do, and how far it is. Mirrors `state::Run` on the host.
struct Run {
    u64 seed;
    double rates[GROUPS];  // learning rates of the groups of parameters
    double decays[GROUPS]; // and their L2 decays
    u64 patience;
    u64 warm_up;
    u32 max_steps;
    u32 step;     // steps finished
    u32 stopped;  // no kernel works on this run any more
    u32 improved; // the last step was the best so far
    u32 best_step;
    u32 diverged_at; // 0: the loss was always finite
    u32 sizes[3];    // of the training, validation and test set
    u32 stops_by_loss;
    double best_score;
    double best_loss;
    double train;
    double validation;
    double test;
};

// Dropout: entry i stays if its number reaches `threshold`; `scale` is 1 / (1 - rate). Off where `scale` is 0.
struct Mask {
    u64 stream;
    u32 threshold;
    float scale;
};

// What follows a layer: y = drop(act(x + b)).
struct Finish {
    const float *bias; // of the first run; null: none
    u64 bias_run;      // from run to run
    Mask mask;
    u32 activation; // 0 identity, 1 ReLU, 2 ELU
    u32 pad;
};

// The finaliser of SplitMix64 on a Weyl sequence: `random::derive` of the CPU code.
__device__ __forceinline__ u64 derive(u64 seed, u64 number) {
    u64 z = seed + (number + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// The key of a mask in the present step of a run.
__device__ __forceinline__ u64 mask_key(const Run &run, const Mask &mask) {
    return mask.scale == 0.0f ? 0 : derive(derive(run.seed, (u64)run.step + 1), mask.stream);
}

// Whether entry `index` stays: `random::Mask::draw` of the CPU code.
__device__ __forceinline__ bool stays(u64 key, const Mask &mask, u32 index) {
    u32 x = (index + (u32)key) ^ (u32)(key >> 32);
    x = (x ^ (x >> 16)) * 0x21f0aaadu;
    x = (x ^ (x >> 15)) * 0x735a2d97u;
    x = x ^ (x >> 15);
    return x >= mask.threshold;
}

// drop(act(x + b)) of the entry `index` of y, which stands in column `column`.
__device__ __forceinline__ float finished(float x, const Finish &f, const float *bias, u64 key, u32 column, u32 index) {
    if (bias) x += bias[column];
    if (f.activation == 1) x = x < 0.0f ? 0.0f : x; // NaN stays: a divergence must come to light
    if (f.activation == 2) x = x > 0.0f ? x : expf(x) - 1.0f;
    if (f.mask.scale != 0.0f) x = stays(key, f.mask, index) ? x * f.mask.scale : 0.0f;
    return x;
}

__device__ __forceinline__ float4 finished4(
    float4 x, const Finish &f, const float *bias, u64 key, u32 column, u32 index) {
    x.x = finished(x.x, f, bias, key, column, index);
    x.y = finished(x.y, f, bias, key, column + 1, index + 1);
    x.z = finished(x.z, f, bias, key, column + 2, index + 2);
    x.w = finished(x.w, f, bias, key, column + 3, index + 3);
    return x;
}

__device__ __forceinline__ const float *bias_of(const Finish &f, u32 run) {
    return f.bias ? f.bias + run * f.bias_run : nullptr;
}
