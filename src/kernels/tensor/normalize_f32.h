// Row-wise normalisations of f32 matrices. Every function computes the rows of thread ith
// of nth, without barriers.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// y[r] = (v − mean(v)) / sqrt(var(v) + eps) * scale + bias for each row v = x[r] + residual[r] of n floats;
// variance is the biased one. y may be x or residual itself (in place), but must not overlap them otherwise.
// Strides are in floats.
struct LayerNormArgs {
    size_t rows = 0, n = 0;
    const float* x = nullptr;
    ptrdiff_t x_stride = 0;
    const float* residual = nullptr;  // or null
    ptrdiff_t residual_stride = 0;
    float* sum = nullptr;  // or null: receives x + residual, for a later residual connection
    ptrdiff_t sum_stride = 0;
    const float* scale = nullptr;  // n floats, or null for 1
    const float* bias = nullptr;   // n floats, or null for 0
    float* y = nullptr;
    ptrdiff_t y_stride = 0;
    float eps = 1e-5f;
};
void layer_norm_f32(const LayerNormArgs& args, int ith, int nth);

// The same without the mean: y[r] = v / sqrt(mean(v²) + eps) * scale + bias (RMSNorm, arXiv:1910.07467).
void rms_norm_f32(const LayerNormArgs& args, int ith, int nth);

// y = (x − mean) factor + bias for n floats. The mean is taken away in two parts, so that values near a large
// mean keep their accuracy. y may be x.
struct ShiftAndScale {
    double mean, factor, bias;
};
void shift_and_scale_f32(const float* x, size_t n, const ShiftAndScale& all, float* y);

// The same for each column of `rows` rows of n floats, `stride` floats apart in x and in y.
void shift_and_scale_rows_f32(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                              const ShiftAndScale* columns, float* y);

// y[r] = softmax(x[r] * scale + mask[r]) over n floats. y may be x itself. A row whose maximum is −Inf gives
// NaN, as exp(x − max) / sum says; NaN in a row makes the whole row NaN.
struct SoftmaxArgs {
    size_t rows = 0, n = 0;
    const float* x = nullptr;
    ptrdiff_t x_stride = 0;
    const float* mask = nullptr;  // or null
    ptrdiff_t mask_stride = 0;    // 0: one mask row for all
    size_t mask_rows = 0;         // row r reads mask row r % mask_rows; 0: row r itself
    float* y = nullptr;
    ptrdiff_t y_stride = 0;
    float scale = 1;
    // Or null: receives the sum of each row, which y is not divided by then. A row whose maximum is −Inf is 0
    // and has the sum 0.
    float* sums = nullptr;
};
void softmax_f32(const SoftmaxArgs& args, int ith, int nth);

}  // namespace headrace::kernels
