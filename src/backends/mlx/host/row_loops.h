#pragma once
#include "backends/mlx/host/host_loop.h"

namespace headrace::mlx::loops {

// Ops that MLX has as one kernel on a GPU and composes of many on the CPU, as loops (host_loop.h).

void rms_norm(const std::vector<HostValues>& in, double eps, float* out);  ///< x, and perhaps a scale
void norm(const std::vector<HostValues>& in, double eps,
          float* out);  ///< x, and perhaps a scale, and a shift

/// x [batches, tokens, heads, width], i32 positions [kinds * tokens], each pair's speed, which kind of
/// position turns it, and four numbers: the magnitude, 1 where a pair is adjacent and 0 where it is half the
/// rotated part apart, where that begins, and 1 for the inverse.
void rope(const std::vector<HostValues>& in, double, float* out);

void silu(const std::vector<HostValues>& in, double, float* out);
void gelu(const std::vector<HostValues>& in, double, float* out);  ///< by tanh
void gelu_erf(const std::vector<HostValues>& in, double, float* out);
void gelu_quick(const std::vector<HostValues>& in, double, float* out);

// The same of the first input, times the second.
void swiglu(const std::vector<HostValues>& in, double, float* out);
void geglu(const std::vector<HostValues>& in, double, float* out);

}  // namespace headrace::mlx::loops
