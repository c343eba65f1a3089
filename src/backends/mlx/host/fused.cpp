#include "backends/mlx/host/fused.h"

#include "backends/mlx/host/row_loops.h"

namespace headrace::mlx {
namespace {

bool on_cpu() { return mx::default_device() == mx::Device::cpu; }

/// A loop that gives what has the shape of its first input.
array loop(HostFunction function, double parameter, const std::vector<array>& inputs) {
    return host_loop(mx::default_stream(mx::Device::cpu), function, parameter, inputs[0].shape(), inputs);
}

/// MLX's kernels take vectors of one axis.
std::optional<array> as_vector(const std::optional<array>& x) {
    return x ? std::optional(mx::reshape(*x, {-1})) : std::nullopt;
}

}  // namespace

array rms_norm(const array& x, const std::optional<array>& scale, float eps) {
    if (!on_cpu()) return mx::fast::rms_norm(x, as_vector(scale), eps);
    return loop(loops::rms_norm, eps, scale ? std::vector{x, *scale} : std::vector{x});
}

array layer_norm(const array& x, const std::optional<array>& scale, const std::optional<array>& shift,
                 float eps) {
    if (!on_cpu()) return mx::fast::layer_norm(x, as_vector(scale), as_vector(shift), eps);
    std::vector<array> inputs{x};
    if (scale) inputs.push_back(*scale);
    if (shift) inputs.push_back(*shift);
    return loop(loops::norm, eps, inputs);
}

array silu(const array& x) { return on_cpu() ? loop(loops::silu, 0, {x}) : x * mx::sigmoid(x); }

array gelu(const array& x) {
    if (on_cpu()) return loop(loops::gelu, 0, {x});
    const array inner =
        array(0.79788456080286535587989211986876f) * x * (array(1.0f) + array(0.044715f) * mx::square(x));
    return array(0.5f) * x * (array(1.0f) + mx::tanh(inner));
}

array gelu_erf(const array& x) {
    if (on_cpu()) return loop(loops::gelu_erf, 0, {x});
    return array(0.5f) * x * (array(1.0f) + mx::erf(x * array(0.70710678118654752440f)));
}

array gelu_quick(const array& x) {
    return on_cpu() ? loop(loops::gelu_quick, 0, {x}) : x * mx::sigmoid(array(1.702f) * x);
}

array swiglu(const array& gate, const array& up) {
    return on_cpu() ? loop(loops::swiglu, 0, {gate, up}) : silu(gate) * up;
}

array geglu(const array& gate, const array& up) {
    return on_cpu() ? loop(loops::geglu, 0, {gate, up}) : gelu(gate) * up;
}

}  // namespace headrace::mlx
