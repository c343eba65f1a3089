// Dense f32 matrix products: one with constant weights packed ahead of time, one for activations ×
// activations. Every run function computes the share of one thread and needs no barrier: call it once for
// each ith in [0, nth).
#pragma once

#include <cstddef>

namespace headrace::kernels {

// Applied to the sum A·B + bias, before the residual is added.
enum class Activation { none, relu, clamp, gelu_erf, gelu_tanh, silu, sigmoid, tanh };

// Columns in one packed panel. Fixed, so packed weights do not depend on the vector width of the
// machine that packed them. WebAssembly cannot tell a processor what is read next: there a row is one cache
// line, so that a panel is read line after line, which processors expect.
#ifdef __wasm__
inline constexpr size_t kPanelWidth = 16;
#else
inline constexpr size_t kPanelWidth = 64;
#endif

// Columns that `cols` of a packed panel take: the last panel ends in zeros.
constexpr size_t packed_width(size_t cols) { return (cols + 15) / 16 * 16; }

// Alignment in bytes that pack() expects of its destination and gemm_f32() of packed weights.
inline constexpr size_t kPackedAlignment = 64;

// Bytes that pack() writes for B[k][n]: k × n floats, n rounded up to 16.
size_t packed_bytes(size_t k, size_t n);

// Packs B[k][n], where element (i, j) is b[i * stride_k + j * stride_n] (strides in floats), into panels
// of kPanelWidth columns: panel p holds its k rows one after the other. The last panel is only as
// wide as n needs, rounded up to 16 columns and padded with zeros. A weight W[n][k] packs with stride_k =
// 1, stride_n = row stride.
void pack(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n, float* packed);

// C[m][n] = activation(A[m][k] · B[k][n] + bias[n]) + residual[m][n]; rows are contiguous,
// row strides are in floats.
struct GemmArgs {
    size_t m = 0, n = 0, k = 0;
    const float* a = nullptr;
    ptrdiff_t lda = 0;
    const float* packed_b = nullptr;  // from pack(), kPackedAlignment-aligned
    float* c = nullptr;               // must not overlap a, residual or packed_b
    ptrdiff_t ldc = 0;
    const float* bias = nullptr;      // n floats, or null
    const float* residual = nullptr;  // or null
    ptrdiff_t ldr = 0;                // 0: the same row of n floats is added to every row of C
    Activation activation = Activation::none;
    float clamp_min = 0, clamp_max = 0;  // read by Activation::clamp only
};

// Runs thread ith's share of nth. Splits rows and columns, so any shape keeps every thread busy.
void gemm_f32(const GemmArgs& args, int ith, int nth);

// For each index of a batch of up to three dimensions: C[m][n] = scale * A[m][k] · B[k][n], nothing packed
// ahead. All strides are in floats; a batch stride of 0 broadcasts. C must not overlap A or B.
struct BatchedGemmArgs {
    static constexpr int kBatchDims = 3;
    size_t batch[kBatchDims] = {1, 1, 1};
    size_t m = 0, n = 0, k = 0;
    const float* a = nullptr;
    ptrdiff_t a_batch[kBatchDims] = {}, lda = 0;
    const float* b = nullptr;
    ptrdiff_t b_batch[kBatchDims] = {}, ldb = 0;
    bool b_transposed = false;  // false: b is rows [k][n]; true: rows [n][k]
    float* c = nullptr;
    ptrdiff_t c_batch[kBatchDims] = {}, ldc = 0;
    float scale = 1;
};

// Runs thread ith's share of nth, split over batches, rows and columns. Uses up to 64 KiB of stack.
void batched_gemm_f32(const BatchedGemmArgs& args, int ith, int nth);

}  // namespace headrace::kernels
