// Columns of V diag(w) V^T from eigenvectors V: a dense product, a panel of columns at a time.
//
// An entry is summed over the pairs in their order, in double precision: its bits do not depend on the panel in which
// it is made.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Product {
    const double *vectors; // pairs x rows: eigenvectors one after the other
    const double *weights; // of the pairs
    const u32 *positions;  // where each column's unit vector has its number; padding: beyond all rows
    const double *shares;  // that number
    const u32 *last;       // of each row: the last vertex of its class
    const u32 *first;      // of each column: what lies before this vertex is not wanted
    double *panel;         // rows x width
    u32 rows;
    u32 width;
    u32 pairs;
    u32 pad;
};

constexpr u32 THREADS = 256;
constexpr u32 TALL = 128; // a block's rows and columns
constexpr u32 WIDE = 64;
constexpr u32 DEPTH = 8; // pairs taken at a time
constexpr u32 ACROSS = 16; // threads side by side
constexpr u32 H = 8;       // a thread's rows, side by side
constexpr u32 OF_A = TALL * DEPTH / THREADS, OF_B = WIDE * DEPTH / THREADS;

// panel_rc = sum_a v_ra w_a v_(p_c)a. A block whose entries are all unwanted does nothing. A thread has H rows and two
// pairs of neighbouring columns, half a block apart, so that the threads of a warp read neighbouring numbers. While one
// tile of each factor is multiplied, the next ones are on their way from memory to registers.
extern "C" __global__ void __launch_bounds__(256, 2) pairs_product(const Product p) {
    __shared__ __align__(16) double a_tile[2][DEPTH][TALL];
    __shared__ __align__(16) double b_tile[2][DEPTH][WIDE];
    const u32 row0 = blockIdx.x * TALL, column0 = blockIdx.y * WIDE, thread = threadIdx.x;
    const u32 end = min(row0 + TALL, p.rows);
    bool wanted = false;
    if (thread < WIDE && p.positions[column0 + thread] < p.rows) {
        const u32 first = p.first[column0 + thread];
        for (u32 row = end; row > row0 && !wanted; row--) wanted = p.last[row - 1] >= first;
    }
    if (!__syncthreads_or(wanted)) return;
    const u32 position = p.positions[column0 + thread % WIDE];
    const double share = position < p.rows ? p.shares[column0 + thread % WIDE] : 0.0;
    double next_a[OF_A], next_b[OF_B];
    auto fetch = [&](u32 k0) {
        #pragma unroll
        for (u32 n = 0; n < OF_A; n++) {
            const u32 at = thread + n * THREADS, row = row0 + at % TALL, pair = k0 + at / TALL;
            next_a[n] = row < p.rows && pair < p.pairs ? p.vectors[(u64)pair * p.rows + row] : 0.0;
        }
        #pragma unroll
        for (u32 n = 0; n < OF_B; n++) {
            const u32 pair = k0 + (thread + n * THREADS) / WIDE;
            next_b[n] = position < p.rows && pair < p.pairs
                ? share * p.weights[pair] * p.vectors[(u64)pair * p.rows + position]
                : 0.0;
        }
    };
    const u32 my_column = 2 * (thread % ACROSS), my_row = H * (thread / ACROSS);
    double sum[H][4] = {};
    u32 now = 0;
    fetch(0);
    for (u32 k0 = 0; k0 < p.pairs; k0 += DEPTH, now ^= 1) {
        #pragma unroll
        for (u32 n = 0; n < OF_A; n++) {
            const u32 at = thread + n * THREADS;
            a_tile[now][at / TALL][at % TALL] = next_a[n];
        }
        #pragma unroll
        for (u32 n = 0; n < OF_B; n++) {
            const u32 at = thread + n * THREADS;
            b_tile[now][at / WIDE][at % WIDE] = next_b[n];
        }
        __syncthreads(); // the other tiles are overwritten only after the next of these
        if (k0 + DEPTH < p.pairs) fetch(k0 + DEPTH);
        #pragma unroll
        for (u32 k = 0; k < DEPTH; k++) {
            double a[H];
            #pragma unroll
            for (u32 h = 0; h < H; h += 2) *(double2 *)(a + h) = *(const double2 *)&a_tile[now][k][my_row + h];
            const double2 b = *(const double2 *)&b_tile[now][k][my_column];
            const double2 c = *(const double2 *)&b_tile[now][k][my_column + WIDE / 2];
            #pragma unroll
            for (u32 h = 0; h < H; h++) {
                sum[h][0] += a[h] * b.x;
                sum[h][1] += a[h] * b.y;
                sum[h][2] += a[h] * c.x;
                sum[h][3] += a[h] * c.y;
            }
        }
    }
    #pragma unroll
    for (u32 h = 0; h < H; h++) {
        const u32 row = row0 + my_row + h;
        if (row >= p.rows) break;
        double *home = p.panel + (u64)row * p.width + column0 + my_column;
        *(double2 *)home = make_double2(sum[h][0], sum[h][1]);
        *(double2 *)(home + WIDE / 2) = make_double2(sum[h][2], sum[h][3]);
    }
}
