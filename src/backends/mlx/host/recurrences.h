#pragma once
#include "backends/mlx/host/host_loop.h"

namespace headrace::mlx {

// Ops whose state passes from one token to the next, as loops over values (host_loop.h). Inputs have the
// order and the axes of ggml's operands. Outputs are ggml's: what each token gives, and behind it the states
// after the last token; with a parameter above 1, also those after so many tokens before it.

/// k, v, r, u, w, state
void rwkv_wkv6(const std::vector<HostValues>& in, double, float* out);
/// r, w, k, v, a, b, state
void rwkv_wkv7(const std::vector<HostValues>& in, double, float* out);
/// k, v, scaled q, g, state
void gated_linear_attention(const std::vector<HostValues>& in, double, float* out);
/// q, k, v, g, beta, state
void gated_delta_net(const std::vector<HostValues>& in, double states, float* out);
/// Each sequence's s, x, dt, A, B, C
void ssm_scan(const std::vector<HostValues>& in, double states, float* out);
/// Solves A x = B for lower triangular matrices A by substitution.
void solve_triangular(const std::vector<HostValues>& in, double, float* out);

}  // namespace headrace::mlx
