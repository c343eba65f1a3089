#include "backends/mlx/host/row_loops.h"

#include <algorithm>
#include <cmath>

#include "backends/mlx/host/dot.h"

namespace headrace::mlx::loops {
namespace {

/// Calls row(values, result) for each row.
template <class Row>
void each_row(const HostValues& x, float* out, Row&& row) {
    const auto columns = static_cast<std::size_t>(x.columns());
    const std::size_t rows = x.rows();
    for (std::size_t i = 0; i < rows; ++i) row(x.data + i * columns, out + i * columns);
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float silu_of(float x) { return x * sigmoid(x); }
float gelu_of(float x) {
    constexpr float kRootOfTwoByPi = 0.79788456080286535588f;
    return 0.5f * x * (1.0f + std::tanh(kRootOfTwoByPi * x * (1.0f + 0.044715f * x * x)));
}
float gelu_erf_of(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752440f)); }
float gelu_quick_of(float x) { return x * sigmoid(1.702f * x); }

std::size_t size_of(const HostValues& x) { return x.rows() * static_cast<std::size_t>(x.columns()); }

template <float (*function)(float)>
void each(const std::vector<HostValues>& in, float* out) {
    const std::size_t size = size_of(in[0]);
    for (std::size_t i = 0; i < size; ++i) out[i] = function(in[0].data[i]);
}
template <float (*function)(float)>
void each_gated(const std::vector<HostValues>& in, float* out) {
    const std::size_t size = size_of(in[0]);
    for (std::size_t i = 0; i < size; ++i) out[i] = function(in[0].data[i]) * in[1].data[i];
}

}  // namespace

void rms_norm(const std::vector<HostValues>& in, double eps, float* out) {
    const int columns = in[0].columns();
    const float* scale = in.size() > 1 ? in[1].data : nullptr;
    each_row(in[0], out, [&](const float* x, float* y) {
        const float mean = dot(x, x, columns) / static_cast<float>(columns);
        const float factor = 1.0f / std::sqrt(mean + static_cast<float>(eps));
        for (int i = 0; i < columns; ++i) y[i] = x[i] * factor;
        for (int i = 0; scale && i < columns; ++i) y[i] *= scale[i];
    });
}

void norm(const std::vector<HostValues>& in, double eps, float* out) {
    const int columns = in[0].columns();
    const float* scale = in.size() > 1 ? in[1].data : nullptr;
    const float* shift = in.size() > 2 ? in[2].data : nullptr;
    const std::vector<float> ones(columns, 1.0f);
    each_row(in[0], out, [&](const float* x, float* y) {
        const float mean = dot(x, ones.data(), columns) / static_cast<float>(columns);
        for (int i = 0; i < columns; ++i) y[i] = x[i] - mean;
        const float variance = dot(y, y, columns) / static_cast<float>(columns);
        const float factor = 1.0f / std::sqrt(variance + static_cast<float>(eps));
        for (int i = 0; i < columns; ++i) y[i] *= factor;
        for (int i = 0; scale && i < columns; ++i) y[i] *= scale[i];
        for (int i = 0; shift && i < columns; ++i) y[i] += shift[i];
    });
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

void silu(const std::vector<HostValues>& in, double, float* out) { each<silu_of>(in, out); }
void gelu(const std::vector<HostValues>& in, double, float* out) { each<gelu_of>(in, out); }
void gelu_erf(const std::vector<HostValues>& in, double, float* out) { each<gelu_erf_of>(in, out); }
void gelu_quick(const std::vector<HostValues>& in, double, float* out) { each<gelu_quick_of>(in, out); }

void swiglu(const std::vector<HostValues>& in, double, float* out) { each_gated<silu_of>(in, out); }
void geglu(const std::vector<HostValues>& in, double, float* out) { each_gated<gelu_of>(in, out); }

}  // namespace headrace::mlx::loops
