// A whole kernel from the panel of all its columns: what is kept, by rows, and its normalisation.
//
// A column belongs to a class of vertices that L cannot tell apart. With m the panel's number in the row of the
// column's own class, that class has m - s between two of its vertices and m - s + p on the diagonal; other entries are
// the panel's. A rounded kernel is not quite symmetric: the entry above the diagonal speaks for both.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Whole {
    const void *panel;
    const u32 *class_of; // of each vertex
    const double *apart;   // p of each class
    const double *shares;  // s of each class
    u32 *counts;         // entries of each part of each row; then where the part begins
    u32 *totals;         // entries of each row
    const u64 *pointers; // where each row begins, and where the last ends
    u32 *columns;
    double *values;
    double *degrees;     // of each row: the sum of what is compared,
    double *magnitudes;  // the sum of all magnitudes,
    double *diagonal;    // and the magnitude on the diagonal
    const double *left;  // what each row is multiplied by
    const double *right; // and each column
    double floor;        // what is smaller is not kept
    u32 vertices;
    u32 width;    // of the panel
    u32 absolute; // compare magnitudes
    u32 parts;    // of a row
    u32 of_a_part;
    u32 pad;
};

__device__ __forceinline__ double size_of(const Whole &a, double value) { return a.absolute ? fabs(value) : value; }

template <typename T> __device__ __forceinline__ double entry(const Whole &a, u32 row, u32 column) {
    const u32 upper = a.class_of[min(row, column)], lower = a.class_of[max(row, column)];
    double value = (double)((const T *)a.panel)[(u64)lower * a.width + upper];
    if (upper == lower) {
        value -= a.shares[upper];
        if (row == column) value += a.apart[upper];
    }
    return value;
}

// Counts what is kept of each part of each row. Threads: x a row, y a part.
template <typename T> __device__ __forceinline__ void count(const Whole &a) {
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 part = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= a.vertices || part >= a.parts) return;
    const u32 end = min((part + 1) * a.of_a_part, a.vertices);
    u32 found = 0;
    #pragma unroll 4
    for (u32 column = part * a.of_a_part; column < end; column++) {
        found += size_of(a, entry<T>(a, row, column)) >= a.floor;
    }
    a.counts[(u64)part * a.vertices + row] = found;
}

extern "C" __global__ void __launch_bounds__(256) whole_count_f32(const Whole a) { count<float>(a); }
extern "C" __global__ void __launch_bounds__(256) whole_count_f64(const Whole a) { count<double>(a); }

// Where the parts of each row begin, and their total. One thread for each row.
extern "C" __global__ void whole_total(const Whole a) {
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= a.vertices) return;
    u32 sum = 0;
    #pragma unroll 8
    for (u32 part = 0; part < a.parts; part++) {
        const u32 count = a.counts[(u64)part * a.vertices + row];
        a.counts[(u64)part * a.vertices + row] = sum;
        sum += count;
    }
    a.totals[row] = sum;
}

// Writes what is kept. Threads as in `count`.
template <typename T> __device__ __forceinline__ void write(const Whole &a) {
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 part = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= a.vertices || part >= a.parts) return;
    const u32 end = min((part + 1) * a.of_a_part, a.vertices);
    u64 at = a.pointers[row] + a.counts[(u64)part * a.vertices + row];
    #pragma unroll 4
    for (u32 column = part * a.of_a_part; column < end; column++) {
        const double value = entry<T>(a, row, column);
        if (size_of(a, value) >= a.floor) {
            a.columns[at] = column;
            a.values[at] = value;
            at++;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) whole_write_f32(const Whole a) { write<float>(a); }
extern "C" __global__ void __launch_bounds__(256) whole_write_f64(const Whole a) { write<double>(a); }

// The sums of each row, entry after entry: their bits are those of the CPU. One thread for each row.
extern "C" __global__ void whole_sums(const Whole a) {
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= a.vertices) return;
    double degree = 0.0, magnitude = 0.0, diagonal = 0.0;
    const u64 end = a.pointers[row + 1];
    #pragma unroll 8
    for (u64 at = a.pointers[row]; at < end; at++) {
        const double value = a.values[at];
        degree += size_of(a, value);
        magnitude += fabs(value);
        if (a.columns[at] == row) diagonal = fabs(value);
    }
    a.degrees[row] = degree;
    a.magnitudes[row] = magnitude;
    a.diagonal[row] = diagonal;
}

// Multiplies every entry by the factors of its row and column. Threads: x an entry, y a row.
extern "C" __global__ void __launch_bounds__(256) whole_scale(const Whole a) {
    const u32 row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= a.vertices) return;
    const double left = a.left[row];
    const u64 end = a.pointers[row + 1];
    for (u64 at = a.pointers[row] + threadIdx.x; at < end; at += blockDim.x) {
        a.values[at] *= left * a.right[a.columns[at]];
    }
}
