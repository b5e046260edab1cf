// Macro-F1 and ROC-AUC of every run on its three sets: whole numbers are counted, so the results are exact.

#include "common.cuh"

struct Score {
    const Run *runs;
    const float *logits;
    const u32 *labels;
    const unsigned char *sets; // of each run and row: bit 0 training, 1 validation, 2 test
    const u32 *members;        // of each run: the rows of its sets, those of a class together
    const u32 *begins;         // of each run and set: where each class begins among the members, and where the last ends
    double *keys;              // of each run, ranking and member
    u64 *pairs;                // of each run, set, ranking and block: twice the pairs ordered rightly, ties count one
    double *scores;            // of each run and set
    u64 logits_run;
    u32 nodes;
    u32 classes;
    u32 stride;
    u32 members_run;
    u32 rankings; // one of two classes, otherwise one for each class
    u32 blocks;
};

// Macro-F1: a block for each run and set, three counts for each class in shared memory.
extern "C" __global__ void __launch_bounds__(256) macro_f1(const Score a) {
    extern __shared__ u32 counts[]; // vertices that have the class, that are given it, and both
    const u32 r = blockIdx.z, set = blockIdx.x, thread = threadIdx.x;
    if (a.runs[r].stopped) return;
    for (u32 at = thread; at < 3 * a.classes; at += blockDim.x) counts[at] = 0;
    __syncthreads();
    for (u32 i = thread; i < a.nodes; i += blockDim.x) {
        if (!(a.sets[(u64)r * a.nodes + i] >> set & 1)) continue;
        const float *z = a.logits + r * a.logits_run + (u64)i * a.stride;
        u32 best = 0;
        for (u32 k = 1; k < a.classes; k++) {
            if (z[k] > z[best]) best = k;
        }
        const u32 label = a.labels[i];
        atomicAdd(&counts[3 * label], 1);
        atomicAdd(&counts[3 * best + 1], 1);
        if (label == best) atomicAdd(&counts[3 * label + 2], 1);
    }
    __syncthreads();
    if (thread > 0) return;
    double sum = 0.0;
    u32 occurring = 0;
    for (u32 k = 0; k < a.classes; k++) {
        const u32 both = counts[3 * k] + counts[3 * k + 1];
        if (both == 0) continue;
        sum += 2.0 * counts[3 * k + 2] / both;
        occurring++;
    }
    a.scores[r * 3 + set] = sum / max(occurring, 1);
}

// What the members of the sets are ranked by: of two classes the odds, otherwise the logarithm of the probability.
extern "C" __global__ void __launch_bounds__(256) auc_keys(const Score a) {
    const u32 r = blockIdx.z, at = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 *begins = a.begins + (u64)r * 3 * (a.classes + 1);
    if (a.runs[r].stopped || at >= begins[3 * (a.classes + 1) - 1]) return;
    const u32 row = a.members[(u64)r * a.members_run + at];
    const float *z = a.logits + r * a.logits_run + (u64)row * a.stride;
    double *keys = a.keys + (u64)r * a.rankings * a.members_run + at;
    if (a.rankings == 1) {
        *keys = (double)z[1] - (double)z[0];
        return;
    }
    double highest = z[0], sum = 0.0;
    for (u32 k = 1; k < a.classes; k++) highest = fmax(highest, (double)z[k]);
    for (u32 k = 0; k < a.classes; k++) sum += exp((double)z[k] - highest);
    const double normaliser = highest + log(sum);
    for (u32 k = 0; k < a.classes; k++) keys[(u64)k * a.members_run] = (double)z[k] - normaliser;
}

// Compares every member of the class with every other member of the set. A thread for each of the class.
extern "C" __global__ void __launch_bounds__(256) auc_pairs(const Score a) {
    __shared__ double others[256];
    __shared__ u64 counts[256];
    const u32 r = blockIdx.z, set = blockIdx.y / a.rankings, ranking = blockIdx.y % a.rankings, thread = threadIdx.x;
    if (a.runs[r].stopped) return;
    const u32 class_ = a.rankings == 1 ? 1 : ranking;
    const u32 *begins = a.begins + ((u64)r * 3 + set) * (a.classes + 1);
    const u32 begin = begins[0], own = begins[class_], next = begins[class_ + 1], end = begins[a.classes];
    const double *keys = a.keys + ((u64)r * a.rankings + ranking) * a.members_run;
    const u32 at = own + blockIdx.x * 256 + thread;
    const bool inside = at < next;
    const double key = inside ? keys[at] : 0.0;
    u64 count = 0;
    if (own + blockIdx.x * 256 < next) {
        const u32 rest = (end - begin) - (next - own);
        for (u32 tile = 0; tile < rest; tile += 256) {
            const u32 other = begin + tile + thread;
            if (tile + thread < rest) others[thread] = keys[other < own ? other : other + (next - own)];
            __syncthreads();
            const u32 length = min(256, rest - tile);
            u32 found = 0;
            if (inside) {
                for (u32 j = 0; j < length; j++) found += 2 * (others[j] < key) + (others[j] == key);
            }
            count += found;
            __syncthreads();
        }
    }
    counts[thread] = count;
    for (u32 half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) counts[thread] += counts[thread + half];
    }
    if (thread == 0) a.pairs[(((u64)r * 3 + set) * a.rankings + ranking) * a.blocks + blockIdx.x] = counts[0];
}

// The mean over rankings that have members of both kinds. A warp for each run, a lane for each set.
extern "C" __global__ void auc_score(const Score a) {
    const u32 r = blockIdx.x, set = threadIdx.x;
    if (a.runs[r].stopped || set >= 3) return;
    const u32 *begins = a.begins + ((u64)r * 3 + set) * (a.classes + 1);
    double sum = 0.0;
    u32 count = 0;
    for (u32 ranking = 0; ranking < a.rankings; ranking++) {
        const u32 class_ = a.rankings == 1 ? 1 : ranking;
        const u64 positives = begins[class_ + 1] - begins[class_];
        const u64 negatives = begins[a.classes] - begins[0] - positives;
        u64 twice = 0;
        for (u32 block = 0; block < a.blocks; block++) {
            twice += a.pairs[(((u64)r * 3 + set) * a.rankings + ranking) * a.blocks + block];
        }
        if (positives * negatives == 0) continue;
        sum += (double)twice / (double)(2 * positives * negatives);
        count++;
    }
    a.scores[r * 3 + set] = sum / max(count, 1);
}
