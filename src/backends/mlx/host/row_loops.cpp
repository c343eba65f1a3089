#include "backends/mlx/host/row_loops.h"

#include <algorithm>
#include <cmath>

#include "kernels/tensor/elementwise_f32.h"
#include "kernels/tensor/normalize_f32.h"

namespace headrace::mlx::loops {
namespace {

using kernels::Unary;

std::size_t size_of(const HostValues& x) { return x.rows() * static_cast<std::size_t>(x.columns()); }

void each(Unary function, const std::vector<HostValues>& in, float* out) {
    kernels::unary_f32(function, in[0].data, out, size_of(in[0]), 0, 1);
}
void each_gated(Unary function, const std::vector<HostValues>& in, float* out) {
    kernels::gated_f32(function, in[0].data, in[1].data, out, size_of(in[0]), 0, 1);
}

kernels::LayerNormArgs rows_of(const std::vector<HostValues>& in, double eps, float* out) {
    const auto columns = static_cast<std::size_t>(in[0].columns());
    const auto stride = static_cast<std::ptrdiff_t>(columns);
    return {.rows = in[0].rows(),
            .n = columns,
            .x = in[0].data,
            .x_stride = stride,
            .scale = in.size() > 1 ? in[1].data : nullptr,
            .bias = in.size() > 2 ? in[2].data : nullptr,
            .y = out,
            .y_stride = stride,
            .eps = static_cast<float>(eps)};
}

}  // namespace

void rms_norm(const std::vector<HostValues>& in, double eps, float* out) {
    kernels::rms_norm_f32(rows_of(in, eps, out), 0, 1);
}

void norm(const std::vector<HostValues>& in, double eps, float* out) {
    kernels::layer_norm_f32(rows_of(in, eps, out), 0, 1);
}

void rope(const std::vector<HostValues>& in, double, float* out) {
    const HostValues &x = in[0], &positions = in[1], &speeds = in[2], &kinds = in[3];
    const float magnitude = in[4].data[0], direction = in[4].data[3] != 0 ? -1.0f : 1.0f;
    const bool adjacent = in[4].data[1] != 0;
    const int tokens = x.shape[1], heads = x.shape[2], width = x.columns(), pairs = speeds.columns();
    const auto first = static_cast<std::ptrdiff_t>(in[4].data[2]);
    std::copy_n(x.data, size_of(x), out);
    std::vector<float> cosines(pairs), sines(pairs);
    for (int token = 0; token < tokens; ++token) {
        for (int i = 0; i < pairs; ++i) {
            const auto at = static_cast<std::size_t>(kinds.integers()[i]) * tokens + token;
            const float angle = static_cast<float>(positions.integers()[at]) * speeds.data[i];
            cosines[i] = std::cos(angle) * magnitude;
            sines[i] = std::sin(angle) * magnitude * direction;
        }
        for (int batch = 0; batch < x.shape[0]; ++batch)
            for (int head = 0; head < heads; ++head) {
                const auto row = (static_cast<std::size_t>(batch) * tokens + token) * heads + head;
                float* const y = out + row * width + first;
                for (int i = 0; i < pairs; ++i) {
                    float &u = y[adjacent ? 2 * i : i], &v = y[adjacent ? 2 * i + 1 : i + pairs];
                    const float turned = u * cosines[i] - v * sines[i];
                    v = u * sines[i] + v * cosines[i];
                    u = turned;
                }
            }
    }
}

void silu(const std::vector<HostValues>& in, double, float* out) { each(Unary::silu, in, out); }
void gelu(const std::vector<HostValues>& in, double, float* out) { each(Unary::gelu_tanh, in, out); }
void gelu_erf(const std::vector<HostValues>& in, double, float* out) { each(Unary::gelu_erf, in, out); }
/// The catalog has no such function.
void gelu_quick(const std::vector<HostValues>& in, double, float* out) {
    const std::size_t size = size_of(in[0]);
    for (std::size_t i = 0; i < size; ++i)
        out[i] = in[0].data[i] / (1.0f + std::exp(-1.702f * in[0].data[i]));
}

void swiglu(const std::vector<HostValues>& in, double, float* out) { each_gated(Unary::silu, in, out); }
void geglu(const std::vector<HostValues>& in, double, float* out) { each_gated(Unary::gelu_tanh, in, out); }

}  // namespace headrace::mlx::loops
