// Dense products of every run: C = A B, A B^T, or parts of A^T B.

#include "common.cuh"

struct Product {
    const Run *runs;
    const float *a;
    const float *b;
    float *c;
    u64 a_run; // from run to run; 0 where all runs share it
    u64 b_run;
    u64 c_run;
    Mask mask;   // of A, entry by entry as it is stored
    u32 rows;    // of C
    u32 columns; // of C
    u32 inner;
    u32 a_stride;
    u32 b_stride;
    u32 c_stride;
    u32 parts; // the inner sum is cut into this many; part p of C lies rows * c_stride * p further
    u32 per_part;
};

constexpr u32 DEPTH = 16;
constexpr u32 THREADS = 256;

// N numbers that lie side by side, as few loads as may be.
template <u32 N> __device__ __forceinline__ void load(float *to, const float *from) {
    if (N % 4 == 0) {
        #pragma unroll
        for (u32 n = 0; n < N; n += 4) {
            const float4 four = *(const float4 *)(from + n);
            to[n] = four.x;
            to[n + 1] = four.y;
            to[n + 2] = four.z;
            to[n + 3] = four.w;
        }
    } else {
        #pragma unroll
        for (u32 n = 0; n < N; n++) to[n] = from[n];
    }
}

// A tile of TALL x WIDE entries a block, H x W a thread. TRANSPOSED_A: A is stored as inner x rows. While a tile of A
// and one of B are multiplied, the next ones are on their way from memory to registers.
template <u32 TALL, u32 WIDE, u32 H, u32 W, bool TRANSPOSED_A, bool TRANSPOSED_B>
__device__ __forceinline__ void product(const Product &p) {
    constexpr u32 OF_A = TALL * DEPTH / THREADS, OF_B = WIDE * DEPTH / THREADS;
    __shared__ __align__(16) float a_tile[DEPTH][TALL + 4];
    __shared__ __align__(16) float b_tile[DEPTH][WIDE + 4];
    const u32 r = blockIdx.z / p.parts;
    const u32 part = blockIdx.z % p.parts;
    if (p.runs[r].stopped) return;
    const float *a = p.a + r * p.a_run;
    const float *b = p.b + r * p.b_run;
    const u64 key = mask_key(p.runs[r], p.mask);
    const u32 row0 = blockIdx.x * TALL, column0 = blockIdx.y * WIDE;
    const u32 thread = threadIdx.x;
    const u32 my_column = thread % (WIDE / W), my_row = thread / (WIDE / W);
    const u32 begin = part * p.per_part;
    const u32 end = min(begin + p.per_part, p.inner);
    float next_a[OF_A], next_b[OF_B];
    auto fetch = [&](u32 k0) {
        #pragma unroll
        for (u32 n = 0; n < OF_A; n++) {
            // Consecutive threads read consecutive numbers.
            const u32 at = thread + n * THREADS;
            const u32 row = row0 + (TRANSPOSED_A ? at % TALL : at / DEPTH);
            const u32 inner = k0 + (TRANSPOSED_A ? at / TALL : at % DEPTH);
            const u64 place = TRANSPOSED_A ? (u64)inner * p.a_stride + row : (u64)row * p.a_stride + inner;
            float x = row < p.rows && inner < end ? a[place] : 0.0f;
            if (p.mask.scale != 0.0f) x = stays(key, p.mask, (u32)place) ? x * p.mask.scale : 0.0f;
            next_a[n] = x;
        }
        #pragma unroll
        for (u32 n = 0; n < OF_B; n++) {
            const u32 at = thread + n * THREADS;
            const u32 column = column0 + (TRANSPOSED_B ? at / DEPTH : at % WIDE);
            const u32 inner = k0 + (TRANSPOSED_B ? at % DEPTH : at / WIDE);
            const u64 place =
                TRANSPOSED_B ? (u64)column * p.b_stride + inner : (u64)inner * p.b_stride + column;
            next_b[n] = column < p.columns && inner < end ? b[place] : 0.0f;
        }
    };
    float sum[H][W] = {};
    fetch(begin);
    for (u32 k0 = begin; k0 < end; k0 += DEPTH) {
        #pragma unroll
        for (u32 n = 0; n < OF_A; n++) {
            const u32 at = thread + n * THREADS;
            a_tile[TRANSPOSED_A ? at / TALL : at % DEPTH][TRANSPOSED_A ? at % TALL : at / DEPTH] = next_a[n];
        }
        #pragma unroll
        for (u32 n = 0; n < OF_B; n++) {
            const u32 at = thread + n * THREADS;
            b_tile[TRANSPOSED_B ? at % DEPTH : at / WIDE][TRANSPOSED_B ? at / DEPTH : at % WIDE] = next_b[n];
        }
        __syncthreads();
        if (k0 + DEPTH < end) fetch(k0 + DEPTH);
        #pragma unroll 4
        for (u32 k = 0; k < DEPTH; k++) {
            float left[H], right[W];
            load<H>(left, &a_tile[k][my_row * H]);
            load<W>(right, &b_tile[k][my_column * W]);
            #pragma unroll
            for (u32 i = 0; i < H; i++)
                #pragma unroll
                for (u32 j = 0; j < W; j++) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    float *c = p.c + r * p.c_run + (u64)part * p.rows * p.c_stride;
    #pragma unroll
    for (u32 i = 0; i < H; i++) {
        const u32 row = row0 + my_row * H + i;
        #pragma unroll
        for (u32 j = 0; j < W; j++) {
            const u32 column = column0 + my_column * W + j;
            if (row < p.rows && column < p.columns) c[(u64)row * p.c_stride + column] = sum[i][j];
        }
    }
}

#define PRODUCT(name, TALL, WIDE, H, W, A, B) \
    extern "C" __global__ void __launch_bounds__(256) name(const Product p) { \
        product<TALL, WIDE, H, W, A, B>(p); \
    }
PRODUCT(product_wide, 128, 64, 8, 4, false, false)
PRODUCT(product_narrow, 128, 16, 4, 2, false, false)
PRODUCT(product_a_transposed_wide, 64, 64, 4, 4, true, false)
PRODUCT(product_a_transposed_narrow, 64, 16, 2, 2, true, false)
PRODUCT(product_b_transposed_wide, 128, 64, 8, 4, false, true)
PRODUCT(product_b_transposed_narrow, 128, 16, 4, 2, false, true)
