// Columns of a polynomial in L: Clenshaw's recurrence, and what of each column may be kept.
//
// A panel holds, for each vertex (or class of twins), the numbers of `width` columns side by side. A column's
// arithmetic does not depend on those beside it, and nothing but whole numbers is counted by atomic operations: the
// result is the same for any grouping of the columns.

typedef unsigned int u32;
typedef unsigned long long u64;

template <typename T> struct Pack; // sixteen bytes of a row
template <> struct __align__(16) Pack<float> {
    enum { LANES = 4 };
    float at[4];
};
template <> struct __align__(16) Pack<double> {
    enum { LANES = 2 };
    double at[2];
};

struct Step {
    const u32 *starts;    // where each row of L begins, those of many entries first; and where the last ends
    const u32 *columns;
    const void *values;
    const u32 *order;     // which row each of them is
    const void *next;     // b_(k+1)
    void *after;          // b_(k+2), which becomes b_k
    const u32 *positions; // where each column's unit vector has its number; padding: beyond all rows
    const double *shares; // that number
    double coefficient;   // c_k
    double scale;         // 2; 1 in the last step
    u32 rows;
    u32 packs; // of a row
};

// b_k = c_k x + scale L b_(k+1) - b_(k+2). Threads: x a pack of columns, y a row.
template <typename T> __device__ __forceinline__ void step(const Step &a) {
    const u32 pack = blockIdx.y * blockDim.x + threadIdx.x;
    const u32 place = blockIdx.x * blockDim.y + threadIdx.y;
    if (place >= a.rows || pack >= a.packs) return;
    const u32 row = a.order[place];
    const float4 *next = (const float4 *)a.next + pack;
    const T *values = (const T *)a.values;
    Pack<T> sum;
    #pragma unroll
    for (int lane = 0; lane < Pack<T>::LANES; lane++) sum.at[lane] = 0;
    const u32 end = a.starts[place + 1];
    #pragma unroll 4
    for (u32 e = a.starts[place]; e < end; e++) {
        const T value = values[e];
        const float4 loaded = __ldg(next + (u64)a.columns[e] * a.packs);
        const Pack<T> &other = *(const Pack<T> *)&loaded;
        #pragma unroll
        for (int lane = 0; lane < Pack<T>::LANES; lane++) sum.at[lane] += value * other.at[lane];
    }
    float4 *home = (float4 *)a.after + (u64)row * a.packs + pack;
    float4 stored = *home;
    Pack<T> &old = *(Pack<T> *)&stored;
    #pragma unroll
    for (int lane = 0; lane < Pack<T>::LANES; lane++) {
        const u32 column = pack * Pack<T>::LANES + lane;
        T value = (T)a.scale * sum.at[lane] - old.at[lane];
        if (a.positions[column] == row) value += (T)(a.coefficient * a.shares[column]);
        old.at[lane] = value;
    }
    *home = stored;
}

extern "C" __global__ void __launch_bounds__(256) step_f32(const Step a) { step<float>(a); }
extern "C" __global__ void __launch_bounds__(256) step_f64(const Step a) { step<double>(a); }

struct Start {
    void *next;
    const u32 *positions;
    const double *shares;
    double coefficient;
    u32 rows;
    u32 width;
};

// b_d = c_d x in a panel of zeros. One thread for each column.
template <typename T> __device__ __forceinline__ void start(const Start &a) {
    const u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= a.width || a.positions[column] >= a.rows) return;
    ((T *)a.next)[(u64)a.positions[column] * a.width + column] = (T)(a.coefficient * a.shares[column]);
}

extern "C" __global__ void start_f32(const Start a) { start<float>(a); }
extern "C" __global__ void start_f64(const Start a) { start<double>(a); }

struct Chain {
    const u32 *starts; // as in Step
    const u32 *columns;
    const void *values;
    const u32 *order;
    const u32 *positions;
    const double *shares;
    const double *coefficients; // all of them
    void *panel;                // the result
    u32 rows;
    u32 packs; // of a row
    u32 terms; // at least one
    u32 bits;  // a block has 2^bits packs of each row
};

constexpr u32 PARTS = 4;   // neighbouring threads share a row's entries
constexpr u32 AT_ONCE = 4; // entries that a thread has on their way at a time

// The whole recurrence of a few columns, which stay in the shared memory of one block. Threads: the lowest bits are
// a pack, the next two a part of a row's entries, the others a row.
template <typename T> __device__ __forceinline__ void chain(const Chain &a) {
    extern __shared__ float4 held[]; // b_(k+1) and b_(k+2)
    const u32 across = 1u << a.bits, size = a.rows << a.bits;
    const u32 pack = threadIdx.x & (across - 1), part = (threadIdx.x >> a.bits) % PARTS;
    const u32 mine = (threadIdx.x >> a.bits) / PARTS, stride = (blockDim.x >> a.bits) / PARTS;
    const u32 here = blockIdx.x * across + pack; // which pack of a row
    for (u32 at = threadIdx.x; at < 2 * size; at += blockDim.x) held[at] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    u32 position[Pack<T>::LANES];
    double share[Pack<T>::LANES];
    #pragma unroll
    for (int lane = 0; lane < Pack<T>::LANES; lane++) {
        const u32 column = here * Pack<T>::LANES + lane;
        position[lane] = here < a.packs ? a.positions[column] : a.rows;
        share[lane] = here < a.packs ? a.shares[column] : 0.0;
    }
    __syncthreads();
    if (threadIdx.x < across) {
        const double highest = a.coefficients[a.terms - 1];
        #pragma unroll
        for (int lane = 0; lane < Pack<T>::LANES; lane++) {
            if (position[lane] >= a.rows) continue;
            ((Pack<T> *)held)[(position[lane] << a.bits) + pack].at[lane] = (T)(highest * share[lane]);
        }
    }
    __syncthreads();
    const T *values = (const T *)a.values;
    Pack<T> *next = (Pack<T> *)held, *after = (Pack<T> *)held + size;
    for (u32 k = a.terms - 1; k-- > 0;) {
        const double coefficient = a.coefficients[k];
        const T scale = k == 0 ? 1 : 2;
        u32 begin = mine < a.rows ? a.starts[mine] : 0, end = mine < a.rows ? a.starts[mine + 1] : 0;
        for (u32 base = 0; base < a.rows; base += stride) {
            // What the next row needs is asked for before this one is worked on.
            const u32 place = base + mine, following = place + stride;
            const u32 row = place < a.rows ? a.order[place] : 0;
            const u32 next_begin = following < a.rows ? a.starts[following] : 0;
            const u32 next_end = following < a.rows ? a.starts[following + 1] : 0;
            Pack<T> sum;
            #pragma unroll
            for (int lane = 0; lane < Pack<T>::LANES; lane++) sum.at[lane] = 0;
            for (u32 first = begin + part; first < end; first += PARTS * AT_ONCE) {
                T value[AT_ONCE];
                u32 column[AT_ONCE];
                #pragma unroll
                for (u32 n = 0; n < AT_ONCE; n++) {
                    const u32 entry = first + n * PARTS;
                    value[n] = entry < end ? values[entry] : (T)0;
                    column[n] = entry < end ? a.columns[entry] : a.rows;
                }
                #pragma unroll
                for (u32 n = 0; n < AT_ONCE; n++) {
                    if (column[n] == a.rows) continue;
                    const Pack<T> other = next[(column[n] << a.bits) + pack];
                    #pragma unroll
                    for (int lane = 0; lane < Pack<T>::LANES; lane++) sum.at[lane] += value[n] * other.at[lane];
                }
            }
            #pragma unroll
            for (u32 apart = 1; apart < PARTS; apart *= 2) {
                #pragma unroll
                for (int lane = 0; lane < Pack<T>::LANES; lane++) {
                    sum.at[lane] += __shfl_xor_sync(0xFFFFFFFFu, sum.at[lane], apart << a.bits);
                }
            }
            if (part == 0 && place < a.rows) {
                Pack<T> home = after[(row << a.bits) + pack];
                #pragma unroll
                for (int lane = 0; lane < Pack<T>::LANES; lane++) {
                    T value = scale * sum.at[lane] - home.at[lane];
                    if (position[lane] == row) value += (T)(coefficient * share[lane]);
                    home.at[lane] = value;
                }
                after[(row << a.bits) + pack] = home;
            }
            begin = next_begin;
            end = next_end;
        }
        __syncthreads();
        Pack<T> *swapped = next;
        next = after;
        after = swapped;
    }
    for (u32 at = threadIdx.x; at < size; at += blockDim.x) { // `pack` stays that of the thread
        if (here < a.packs) ((float4 *)a.panel)[(u64)(at >> a.bits) * a.packs + here] = ((float4 *)next)[at];
    }
}

extern "C" __global__ void __launch_bounds__(1024) chain_f32(const Chain a) { chain<float>(a); }
extern "C" __global__ void __launch_bounds__(1024) chain_f64(const Chain a) { chain<double>(a); }

struct Select {
    const void *panel;
    const u32 *positions; // of the columns' units
    const u32 *last;      // of each row: the last vertex of its class
    const u32 *first;     // of each column: what lies before this vertex is not wanted
    u32 *histogram;       // 256 counts for each column, digit by digit
    u32 *prefix;          // of each column: the leading bytes of the size sought
    u32 *remaining;       // and its rank among those that share them
    double *floors;       // of each column: what is smaller is not wanted
    u32 *counts;          // entries of each part of each column; then where the part begins
    u32 *totals;          // entries of each column
    double *own;          // the number of each column at its own position
    const u32 *offsets;   // where each column begins in the output
    u32 *lines;           // the output: rows of the panel, ascending in each column
    double *values;
    u32 rows;
    u32 width;
    u32 absolute; // compare magnitudes
    u32 round;
    u32 parts; // of a column
    u32 rows_of_a_part;
    u32 column_begin; // the columns that are written now
    u32 column_end;
};

template <typename T> __device__ __forceinline__ double size_at(const Select &a, u32 row, u32 column) {
    const double value = (double)((const T *)a.panel)[(u64)row * a.width + column];
    return a.absolute ? fabs(value) : value;
}

template <typename T> __device__ __forceinline__ bool wanted(const Select &a, u32 row, u32 column, double floor, u32 first) {
    return size_at<T>(a, row, column) >= floor && a.last[row] >= first;
}

// The leading 32 bits of a positive size, in the order of sizes: exponent, then fraction.
__device__ __forceinline__ u32 key(double size) { return __float_as_uint(__double2float_rz(size)) << 1; }

// Counts the sizes of each column by their next byte. A block is 32 columns wide; its counts lie so that each column
// has a bank of its own.
template <typename T> __device__ __forceinline__ void histogram(const Select &a) {
    __shared__ u32 counts[256 * 32];
    const u32 column = blockIdx.x * 32 + threadIdx.x;
    for (u32 i = threadIdx.y; i < 256; i += blockDim.y) counts[i * 32 + threadIdx.x] = 0;
    __syncthreads();
    if (column < a.width) {
        const u32 shift = 24 - 8 * a.round;
        const u32 prefix = a.prefix[column];
        const u32 stride = gridDim.y * blockDim.y;
        for (u32 row = blockIdx.y * blockDim.y + threadIdx.y; row < a.rows; row += stride) {
            const double size = size_at<T>(a, row, column);
            if (!(size > 0.0)) continue;
            const u32 bits = key(size);
            if (a.round > 0 && (bits >> (shift + 8)) != prefix) continue;
            atomicAdd(&counts[((bits >> shift) & 255) * 32 + threadIdx.x], 1u);
        }
    }
    __syncthreads();
    if (column < a.width) {
        for (u32 i = threadIdx.y; i < 256; i += blockDim.y) {
            const u32 count = counts[i * 32 + threadIdx.x];
            if (count) atomicAdd(&a.histogram[(u64)i * a.width + column], count);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) histogram_f32(const Select a) { histogram<float>(a); }
extern "C" __global__ void __launch_bounds__(256) histogram_f64(const Select a) { histogram<double>(a); }

// Finds the byte in which the size sought lies, and empties the histogram. One thread for each column. After the last
// round it sets the floor a little below that size, so that all that tie with it are wanted.
extern "C" __global__ void pick(const Select a) {
    const u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= a.width) return;
    u32 remaining = a.remaining[column], found = 0;
    bool enough = false;
    for (int byte = 255; byte >= 0; byte--) {
        const u32 count = a.histogram[(u64)byte * a.width + column];
        a.histogram[(u64)byte * a.width + column] = 0;
        if (!enough && count >= remaining) {
            enough = true;
            found = byte;
        } else if (!enough) {
            remaining -= count;
        }
    }
    if (!enough) { // fewer are positive than were asked for: all are wanted
        found = 0;
        remaining = 0xFFFFFFFFu;
    }
    const u32 prefix = (a.prefix[column] << 8) | found;
    a.prefix[column] = prefix;
    a.remaining[column] = remaining;
    if (a.round == 2) {
        const double edge = enough ? (double)__uint_as_float((prefix << 8) >> 1) : 0.0;
        a.floors[column] = fmax(edge - 2.5e-9, 1e-9);
    }
}

// Counts what is wanted of each part of each column. Threads: x a column, y a part.
template <typename T> __device__ __forceinline__ void count(const Select &a) {
    const u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 part = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= a.width || part >= a.parts) return;
    u32 found = 0;
    if (a.positions[column] < a.rows) {
        const double floor = a.floors[column];
        const u32 first = a.first[column];
        const u32 end = min((part + 1) * a.rows_of_a_part, a.rows);
        #pragma unroll 4
        for (u32 row = part * a.rows_of_a_part; row < end; row++) found += wanted<T>(a, row, column, floor, first);
    }
    a.counts[(u64)part * a.width + column] = found;
}

extern "C" __global__ void __launch_bounds__(256) count_f32(const Select a) { count<float>(a); }
extern "C" __global__ void __launch_bounds__(256) count_f64(const Select a) { count<double>(a); }

// Where the parts of each column begin, their total, and the column's own number. One thread for each column.
template <typename T> __device__ __forceinline__ void total(const Select &a) {
    const u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= a.width) return;
    u32 sum = 0;
    for (u32 part = 0; part < a.parts; part++) {
        const u32 count = a.counts[(u64)part * a.width + column];
        a.counts[(u64)part * a.width + column] = sum;
        sum += count;
    }
    a.totals[column] = sum;
    const u32 position = a.positions[column];
    a.own[column] = position < a.rows ? (double)((const T *)a.panel)[(u64)position * a.width + column] : 0.0;
}

extern "C" __global__ void total_f32(const Select a) { total<float>(a); }
extern "C" __global__ void total_f64(const Select a) { total<double>(a); }

// Writes what is wanted of the columns from `column_begin` up to `column_end`. Threads as in `count`.
template <typename T> __device__ __forceinline__ void write(const Select &a) {
    const u32 column = a.column_begin + blockIdx.x * blockDim.x + threadIdx.x;
    const u32 part = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= a.column_end || part >= a.parts || a.positions[column] >= a.rows) return;
    const double floor = a.floors[column];
    const u32 first = a.first[column];
    const u32 end = min((part + 1) * a.rows_of_a_part, a.rows);
    u32 at = a.offsets[column] + a.counts[(u64)part * a.width + column];
    #pragma unroll 4
    for (u32 row = part * a.rows_of_a_part; row < end; row++) {
        if (wanted<T>(a, row, column, floor, first)) {
            a.lines[at] = row;
            a.values[at] = (double)((const T *)a.panel)[(u64)row * a.width + column];
            at++;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) write_f32(const Select a) { write<float>(a); }
extern "C" __global__ void __launch_bounds__(256) write_f64(const Select a) { write<double>(a); }
