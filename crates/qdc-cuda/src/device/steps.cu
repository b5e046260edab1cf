// Loss, scores, Adam, and the judgement at the end of a step: when to stop, and which step was the best.

#include "common.cuh"

constexpr u32 BLOCK = 256;

struct Loss {
    const Run *runs;
    const float *logits;
    float *d_logits; // null: the loss of the validation set and scores, without a gradient
    const u32 *labels;
    const unsigned char *sets; // of each run and row: bit 0 training, 1 validation, 2 test
    double *losses;            // a part for each block
    u32 *right;                // three counts for each block
    u64 logits_run;
    u32 nodes;
    u32 classes;
    u32 stride;
    u32 blocks;
};

// Cross-entropy of one set, the mean's parts; with a gradient it is the training set.
extern "C" __global__ void __launch_bounds__(BLOCK) loss(const Loss a) {
    __shared__ double losses[BLOCK];
    __shared__ u32 right[3][BLOCK];
    const u32 r = blockIdx.z, thread = threadIdx.x;
    const Run &run = a.runs[r];
    if (run.stopped) return;
    const u32 i = blockIdx.x * BLOCK + thread;
    double own = 0.0;
    u32 counts[3] = {0, 0, 0};
    if (i < a.nodes) {
        const u32 sets = a.sets[(u64)r * a.nodes + i];
        const float *z = a.logits + r * a.logits_run + (u64)i * a.stride;
        float *d = a.d_logits ? a.d_logits + r * a.logits_run + (u64)i * a.stride : nullptr;
        const u32 label = a.labels[i];
        float highest = z[0];
        u32 best = 0;
        for (u32 k = 1; k < a.classes; k++) {
            if (z[k] > z[best]) best = k;
            highest = fmaxf(highest, z[k]);
        }
        if (sets & (d ? 1 : 2)) {
            float sum = 0.0f;
            for (u32 k = 0; k < a.classes; k++) sum += expf(z[k] - highest);
            own = (double)(logf(sum) + highest - z[label]);
            if (d) {
                const float weight = 1.0f / (float)run.sizes[0], factor = weight / sum;
                for (u32 k = 0; k < a.classes; k++) {
                    d[k] = expf(z[k] - highest) * factor - (k == label ? weight : 0.0f);
                }
            }
        } else if (d) {
            for (u32 k = 0; k < a.classes; k++) d[k] = 0.0f;
        }
        for (u32 s = 0; s < 3; s++) counts[s] = (sets >> s & 1) && best == label;
    }
    losses[thread] = own;
    for (u32 s = 0; s < 3; s++) right[s][thread] = counts[s];
    for (u32 half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            losses[thread] += losses[thread + half];
            for (u32 s = 0; s < 3; s++) right[s][thread] += right[s][thread + half];
        }
    }
    if (thread == 0) {
        a.losses[(u64)r * a.blocks + blockIdx.x] = losses[0];
        if (!a.d_logits) {
            for (u32 s = 0; s < 3; s++) a.right[((u64)r * a.blocks + blockIdx.x) * 3 + s] = right[s][0];
        }
    }
}

// Where the gradient of some parameters lies: `parts` arrays, to be summed, `length` apart.
struct Site {
    u32 begin; // among the weights
    u32 length;
    u32 offset; // among the parts
    u32 parts;
    u32 group;    // of rates and decays
    float factor; // of the sum
};

struct Adam {
    const Run *runs;
    float *weights;
    float *first;
    float *second;
    const float *parts;
    const Site *sites;
    const double *corrections; // 1 - b1^t, sqrt(1 - b2^t) for t = 1, 2...
    u64 parts_run;
    u32 length; // weights of a run
    u32 count;  // of sites
};

__device__ __forceinline__ float flush(float x) { return fabsf(x) < 1e-30f ? 0.0f : x; }

// One step of Adam, as in the CPU code.
extern "C" __global__ void __launch_bounds__(BLOCK) adam(const Adam a) {
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    const u32 at = blockIdx.x * BLOCK + threadIdx.x;
    if (run.stopped || at >= a.length) return;
    u32 s = 0;
    while (s < a.count && at >= a.sites[s].begin + a.sites[s].length) s++;
    if (s == a.count || at < a.sites[s].begin) return; // between layers
    const Site site = a.sites[s];
    const float *part = a.parts + r * a.parts_run + site.offset + (at - site.begin);
    float g = 0.0f;
    for (u32 p = 0; p < site.parts; p++) g += part[(u64)p * site.length];
    g *= site.factor;
    const double *correction = a.corrections + 2 * run.step;
    const float rate = (float)(run.rates[site.group] / correction[0]);
    const float root = (float)(1.0 / correction[1]);
    const float keep_1 = 0.9f, take_1 = (float)(1.0 - 0.9), keep_2 = 0.999f, take_2 = (float)(1.0 - 0.999);
    const u64 place = (u64)r * a.length + at;
    float w = a.weights[place];
    g += (float)run.decays[site.group] * w;
    const float m = flush(keep_1 * a.first[place] + take_1 * g);
    const float v = keep_2 * a.second[place] + take_2 * g * g;
    a.first[place] = m;
    a.second[place] = v;
    a.weights[place] = flush(w - rate * m / (sqrtf(v) * root + 1e-8f));
}

struct Judge {
    Run *runs;
    const double *train_losses;
    const double *losses;
    const u32 *right;
    const double *scores; // of each run and set; null: the shares of what is right
    double *curve; // of each run and step: both losses and the three scores; null: not kept
    u32 blocks;
    u32 curve_steps;
};

__device__ __forceinline__ double warp_sum(double x) {
    for (u32 step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// Ends a step: one warp for each run. The rule is that of `EarlyStopping` in the CPU code.
extern "C" __global__ void judge(const Judge a) {
    const u32 r = blockIdx.x;
    Run &run = a.runs[r];
    if (run.stopped) {
        if (threadIdx.x == 0) run.improved = 0;
        return;
    }
    double train_loss = 0.0, loss = 0.0, right[3] = {0.0, 0.0, 0.0};
    for (u32 block = threadIdx.x; block < a.blocks; block += 32) {
        const u64 at = (u64)r * a.blocks + block;
        train_loss += a.train_losses[at];
        loss += a.losses[at];
        for (u32 s = 0; s < 3; s++) right[s] += a.right[at * 3 + s];
    }
    train_loss = warp_sum(train_loss) / run.sizes[0];
    loss = warp_sum(loss) / run.sizes[1];
    for (u32 s = 0; s < 3; s++) {
        right[s] = warp_sum(right[s]) / run.sizes[s];
        if (a.scores) right[s] = a.scores[r * 3 + s];
    }
    if (threadIdx.x != 0) return;
    const u32 step = ++run.step;
    run.improved = 0;
    if (!isfinite(train_loss) || !isfinite(loss)) {
        run.diverged_at = step;
        run.stopped = 1;
        return;
    }
    if (a.curve) {
        double *point = a.curve + 5 * ((u64)r * a.curve_steps + step - 1);
        point[0] = train_loss;
        point[1] = loss;
        for (u32 s = 0; s < 3; s++) point[2 + s] = right[s];
    }
    const double score = right[1];
    const bool better = run.stops_by_loss
        ? loss < run.best_loss || (loss == run.best_loss && score > run.best_score)
        : score > run.best_score || (score == run.best_score && loss < run.best_loss);
    if (run.best_step == 0 || better) {
        run.improved = 1;
        run.best_step = step;
        run.best_score = right[1];
        run.best_loss = loss;
        run.train = right[0];
        run.validation = right[1];
        run.test = right[2];
    } else if (step - run.best_step >= run.patience && step > run.warm_up) {
        run.stopped = 1;
    }
    if (step >= run.max_steps) run.stopped = 1;
}

struct Keep {
    const Run *runs;
    const float *weights;
    float *best;
    u32 length;
    u32 pad;
};

// Keeps the weights of the best step.
extern "C" __global__ void keep(const Keep a) {
    const u32 r = blockIdx.z, at = blockIdx.x * BLOCK + threadIdx.x;
    if (!a.runs[r].improved || at >= a.length) return;
    a.best[(u64)r * a.length + at] = a.weights[(u64)r * a.length + at];
}
