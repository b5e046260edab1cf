// Graph attention: the equations stand in the CPU code above `Attention` and `Attention::backward`.
//
// Numbers of entries and heads lie in groups of four heads, then of one: entry e and head h of a matrix of E entries at
// 4 (h / 4) E + 4 e + h % 4 within whole groups, at h E + e beyond. Masks are drawn by these places. The sign of a
// stored p_ij is the dropout mask: minus where it was dropped.

#include "sparse.cuh"

constexpr float SLOPE = 0.2f;
constexpr u32 ALL = 0xffffffffu;

struct Attention {
    const Run *runs;
    const u32 *pointers;
    const u32 *indices;
    const float *values;
    const u32 *column_pointers; // the entries by columns: the rows they stand in, and their places
    const u32 *column_rows;
    const u32 *column_places;
    const float *x; // nodes x stride
    float *y;       // nodes x y_stride
    const float *dy;
    float *dx;
    const float *theta; // a_s, a_d (, w_e, a_e), each of `stride` numbers
    float *source;      // nodes x heads: a_s . x_i, a_d . x_i
    float *target;
    float *p;        // entries x heads
    float *d_scores; // entries x heads
    float *d_source; // nodes x heads
    float *d_target;
    float *d_edge; // nodes x heads: sum_j d r_ij M_ij
    float *parts;  // of the gradient of theta: one for each block of rows
    u64 x_run;
    u64 y_run;
    u64 theta_run;
    u64 nodes_run;   // nodes x heads
    u64 entries_run; // entries x heads
    u64 parts_run;
    Mask mask;
    Finish finish;
    float factor; // 1 / (1 - rate), and a head's share of an average
    u32 nodes;
    u32 entries;
    u32 heads;
    u32 block; // columns of a head in memory
    u32 stride;
    u32 y_stride;
    u32 average;
    u32 edge_values; // 0 ignore, 1 multiply, 2 bias
    u32 per_block;   // rows of a part
    u32 parts_length;
    u32 pad;
};

__device__ __forceinline__ u32 place_of(const Attention &a, u32 entry, u32 head) {
    const u32 grouped = a.heads / 4 * 4;
    return head < grouped ? head / 4 * 4 * a.entries + 4 * entry + head % 4 : head * a.entries + entry;
}

// The heads of group `group`: four, or one beyond whole groups.
__device__ __forceinline__ void group_of(u32 heads, u32 group, u32 &first, u32 &count) {
    const u32 whole = heads / 4;
    first = group < whole ? 4 * group : 4 * whole + (group - whole);
    count = group < whole ? 4 : 1;
}

__device__ __forceinline__ float warp_sum(float value, u32 least) {
    for (u32 step = 16; step >= least; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}

__device__ __forceinline__ float kept(float marked) { return marked < 0.0f ? 0.0f : marked; }

// c of a head: the factor of M_ij in the score; a warp computes it together.
__device__ __forceinline__ float edge_factor(const Attention &a, const float *theta, u32 head) {
    if (a.edge_values != 2) return 0.0f;
    const float *weight = theta + 2 * a.stride + head * a.block, *attention = weight + a.stride;
    float sum = 0.0f;
    for (u32 k = threadIdx.x; k < a.block; k += 32) sum += weight[k] * attention[k];
    return warp_sum(sum, 1);
}

// a_s . x_i and a_d . x_i: a warp for each vertex (threads y), all heads.
extern "C" __global__ void attention_project(const Attention a) {
    const u32 r = blockIdx.z;
    const u32 i = blockIdx.x * blockDim.y + threadIdx.y;
    if (a.runs[r].stopped || i >= a.nodes) return;
    const float *x = a.x + r * a.x_run + (u64)i * a.stride;
    const float *theta = a.theta + r * a.theta_run;
    for (u32 head = 0; head < a.heads; head++) {
        float source = 0.0f, target = 0.0f;
        for (u32 k = head * a.block + threadIdx.x; k < (head + 1) * a.block; k += 32) {
            source += x[k] * theta[k];
            target += x[k] * theta[a.stride + k];
        }
        source = warp_sum(source, 1);
        target = warp_sum(target, 1);
        if (threadIdx.x == 0) {
            a.source[r * a.nodes_run + i * a.heads + head] = source;
            a.target[r * a.nodes_run + i * a.heads + head] = target;
        }
    }
}

// p_ij: a warp for each vertex (threads y) and group of heads (grid y); lanes are entries and heads.
extern "C" __global__ void attention_attend(const Attention a) {
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    const u32 i = blockIdx.x * blockDim.y + threadIdx.y;
    if (run.stopped || i >= a.nodes) return;
    u32 first, count;
    group_of(a.heads, blockIdx.y, first, count);
    const u32 begin = a.pointers[i], length = a.pointers[i + 1] - begin;
    const u32 head = first + threadIdx.x % count, lane_entry = threadIdx.x / count, step = 32 / count;
    const float *theta = a.theta + r * a.theta_run;
    float edge = 0.0f;
    for (u32 h = first; h < first + count; h++) {
        const float factor = edge_factor(a, theta, h);
        if (h == head) edge = factor;
    }
    const float *source = a.source + r * a.nodes_run;
    const float target = a.target[r * a.nodes_run + i * a.heads + head];
    float *p = a.p + r * a.entries_run;
    float highest = __int_as_float(0xff800000); // minus infinity
    for (u32 at = lane_entry; at < length; at += step) {
        const u32 entry = begin + at;
        const float raw = source[a.indices[entry] * a.heads + head] + target + edge * a.values[entry];
        const float score = raw > 0.0f ? raw : raw * SLOPE;
        p[place_of(a, entry, head)] = score;
        highest = score > highest ? score : highest;
    }
    for (u32 lanes = 16; lanes >= count; lanes /= 2) {
        const float other = __shfl_xor_sync(ALL, highest, lanes);
        highest = other > highest ? other : highest;
    }
    float sum = 0.0f;
    for (u32 at = lane_entry; at < length; at += step) {
        float *own = p + place_of(a, begin + at, head);
        *own = expf(*own - highest);
        sum += *own;
    }
    const float share = 1.0f / warp_sum(sum, count);
    const u64 key = mask_key(run, a.mask);
    for (u32 at = lane_entry; at < length; at += step) {
        const u32 place = place_of(a, begin + at, head);
        const float value = p[place] * share;
        p[place] = a.mask.scale != 0.0f && !stays(key, a.mask, place) ? -value : value;
    }
}

// y_i = sum_j q_ij x_j. Threads: x a group of four columns of y, y a part of the row's entries, z a row.
extern "C" __global__ void __launch_bounds__(256) attention_combine(const Attention a) {
    extern __shared__ float4 partial[];
    const u32 r = blockIdx.z;
    const Run &run = a.runs[r];
    if (run.stopped) return;
    const u32 i = blockIdx.x * blockDim.z + threadIdx.z;
    const u32 column = 4 * (blockIdx.y * blockDim.x + threadIdx.x);
    const bool inside = i < a.nodes && column < (a.average ? a.block : a.heads * a.block);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) {
        const float *x = a.x + r * a.x_run;
        const float *p = a.p + r * a.entries_run;
        const u32 first = a.average ? 0 : column / a.block, last = a.average ? a.heads : first + 1;
        const u32 end = a.pointers[i + 1];
        for (u32 head = first; head < last; head++) {
            const u32 from = a.average ? head * a.block + column : column;
            #pragma unroll 4
            for (u32 e = a.pointers[i] + threadIdx.y; e < end; e += blockDim.y) {
                float q = kept(p[place_of(a, e, head)]);
                if (q == 0.0f) continue;
                if (a.edge_values == 1) q *= a.values[e];
                const float4 v = *(const float4 *)(x + (u64)a.indices[e] * a.stride + from);
                sum.x += q * v.x;
                sum.y += q * v.y;
                sum.z += q * v.z;
                sum.w += q * v.w;
            }
        }
    }
    sum = sum_of_parts(sum, partial);
    if (inside && threadIdx.y == 0) {
        sum = make_float4(a.factor * sum.x, a.factor * sum.y, a.factor * sum.z, a.factor * sum.w);
        const u32 index = i * a.y_stride + column;
        sum = finished4(sum, a.finish, bias_of(a.finish, r), mask_key(run, a.finish.mask), column, index);
        *(float4 *)(a.y + r * a.y_run + (u64)i * a.y_stride + column) = sum;
    }
}

// From dy to d r_ij, v_i and the edge sums: a warp for each vertex (threads y) and group of heads (grid y).
extern "C" __global__ void attention_scores(const Attention a) {
    const u32 r = blockIdx.z;
    const u32 i = blockIdx.x * blockDim.y + threadIdx.y;
    if (a.runs[r].stopped || i >= a.nodes) return;
    u32 first, count;
    group_of(a.heads, blockIdx.y, first, count);
    const u32 begin = a.pointers[i], length = a.pointers[i + 1] - begin;
    const float *theta = a.theta + r * a.theta_run;
    const float *x = a.x + r * a.x_run;
    const float *p = a.p + r * a.entries_run;
    float *d = a.d_scores + r * a.entries_run;
    { // d q_ij = g_i . x_j where p_ij was kept: lanes are heads and groups of four of their columns
        const u32 lanes = 32 / count, head = first + threadIdx.x / lanes, lane = threadIdx.x % lanes;
        const float *dy = a.dy + r * a.y_run + (u64)i * a.y_stride + (a.average ? 0 : head * a.block);
        for (u32 entry = begin; entry < begin + length; entry++) {
            const u32 place = place_of(a, entry, head);
            const float marked = p[place];
            float dot = 0.0f;
            if (!(marked <= 0.0f)) {
                const float *other = x + (u64)a.indices[entry] * a.stride + head * a.block;
                for (u32 k = 4 * lane; k < a.block; k += 4 * lanes) {
                    const float4 g = *(const float4 *)(dy + k), v = *(const float4 *)(other + k);
                    dot += g.x * v.x + g.y * v.y + g.z * v.z + g.w * v.w;
                }
            }
            for (u32 step = lanes / 2; step > 0; step /= 2) dot += __shfl_xor_sync(ALL, dot, step);
            if (lane == 0) {
                const float factor = a.edge_values == 1 ? a.factor * a.values[entry] : a.factor;
                d[place] = marked <= 0.0f ? 0.0f : dot * factor; // d p_ij
            }
        }
    }
    __syncwarp();
    const u32 head = first + threadIdx.x % count, lane_entry = threadIdx.x / count, step = 32 / count;
    float edge = 0.0f;
    for (u32 h = first; h < first + count; h++) {
        const float factor = edge_factor(a, theta, h);
        if (h == head) edge = factor;
    }
    const float *source = a.source + r * a.nodes_run;
    const float target = a.target[r * a.nodes_run + i * a.heads + head];
    float mean = 0.0f; // sum_l p_il d p_il
    for (u32 at = lane_entry; at < length; at += step) {
        const u32 place = place_of(a, begin + at, head);
        mean += fabsf(p[place]) * d[place];
    }
    mean = warp_sum(mean, count);
    float sum = 0.0f, edge_sum = 0.0f;
    for (u32 at = lane_entry; at < length; at += step) {
        const u32 entry = begin + at, place = place_of(a, entry, head);
        const float raw = source[a.indices[entry] * a.heads + head] + target + edge * a.values[entry];
        const float d_raw = fabsf(p[place]) * (d[place] - mean) * (raw > 0.0f ? 1.0f : SLOPE);
        d[place] = d_raw;
        sum += d_raw;
        edge_sum += d_raw * a.values[entry];
    }
    sum = warp_sum(sum, count);
    edge_sum = warp_sum(edge_sum, count);
    if (lane_entry == 0) {
        a.d_target[r * a.nodes_run + i * a.heads + head] = sum;
        a.d_edge[r * a.nodes_run + i * a.heads + head] = edge_sum;
    }
}

// dx_j = factor sum_i q_ij g_i + u_j a_s + v_j a_d, and u_j = sum_i d r_ij. Threads as in `attention_combine`.
extern "C" __global__ void __launch_bounds__(256) attention_pull(const Attention a) {
    extern __shared__ float4 partial[];
    const u32 r = blockIdx.z;
    if (a.runs[r].stopped) return;
    float *partial_u = (float *)(partial + blockDim.x * blockDim.y * blockDim.z);
    const u32 j = blockIdx.x * blockDim.z + threadIdx.z;
    const u32 column = 4 * (blockIdx.y * blockDim.x + threadIdx.x);
    const bool inside = j < a.nodes && column < a.heads * a.block;
    const u32 head = inside ? column / a.block : 0;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float u = 0.0f;
    if (inside) {
        const float *dy = a.dy + r * a.y_run + (a.average ? column - head * a.block : column);
        const float *p = a.p + r * a.entries_run;
        const float *d = a.d_scores + r * a.entries_run;
        const u32 end = a.column_pointers[j + 1];
        #pragma unroll 4
        for (u32 e = a.column_pointers[j] + threadIdx.y; e < end; e += blockDim.y) {
            const u32 entry = a.column_places[e], place = place_of(a, entry, head);
            u += d[place];
            float q = kept(p[place]);
            if (q == 0.0f) continue;
            if (a.edge_values == 1) q *= a.values[entry];
            const float4 g = *(const float4 *)(dy + (u64)a.column_rows[e] * a.y_stride);
            sum.x += q * g.x;
            sum.y += q * g.y;
            sum.z += q * g.z;
            sum.w += q * g.w;
        }
    }
    sum = sum_of_parts(sum, partial);
    u = sum_of_parts(u, partial_u);
    if (inside && threadIdx.y == 0) {
        const float *theta = a.theta + r * a.theta_run + column;
        const float v = a.d_target[r * a.nodes_run + j * a.heads + head];
        const float4 s = *(const float4 *)theta, t = *(const float4 *)(theta + a.stride);
        sum.x = a.factor * sum.x + u * s.x + v * t.x;
        sum.y = a.factor * sum.y + u * s.y + v * t.y;
        sum.z = a.factor * sum.z + u * s.z + v * t.z;
        sum.w = a.factor * sum.w + u * s.w + v * t.w;
        *(float4 *)(a.dx + r * a.x_run + (u64)j * a.stride + column) = sum;
        if (column % a.block == 0) a.d_source[r * a.nodes_run + j * a.heads + head] = u;
    }
}

// Parts of d a_s = sum_j u_j x_j, d a_d = sum_i v_i x_i (and of d w_e, d a_e): a block of rows each; threads x are
// columns, y rows.
extern "C" __global__ void attention_theta(const Attention a) {
    extern __shared__ float sums[];
    const u32 r = blockIdx.z;
    if (a.runs[r].stopped) return;
    const u32 column = blockIdx.y * blockDim.x + threadIdx.x;
    const bool inside = column < a.heads * a.block;
    const u32 head = inside ? column / a.block : 0;
    const u32 first = blockIdx.x * a.per_block, end = min(first + a.per_block, a.nodes);
    float source = 0.0f, target = 0.0f, edge = 0.0f;
    if (inside) {
        for (u32 i = first + threadIdx.y; i < end; i += blockDim.y) {
            const float x = a.x[r * a.x_run + (u64)i * a.stride + column];
            const u64 at = r * a.nodes_run + i * a.heads + head;
            source += a.d_source[at] * x;
            target += a.d_target[at] * x;
            edge += a.d_edge[at];
        }
    }
    const u32 size = blockDim.x * blockDim.y;
    source = sum_of_parts(source, sums);
    target = sum_of_parts(target, sums + size);
    edge = sum_of_parts(edge, sums + 2 * size);
    if (inside && threadIdx.y == 0) {
        float *part = a.parts + r * a.parts_run + blockIdx.x * a.parts_length;
        part[column] = source;
        part[a.stride + column] = target;
        if (a.edge_values == 2) {
            const float *weight = a.theta + r * a.theta_run + 2 * a.stride;
            part[2 * a.stride + column] = edge * weight[a.stride + column];
            part[3 * a.stride + column] = edge * weight[column];
        }
    }
}
