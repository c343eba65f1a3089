#include <atomic>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/status.h"
#include "backends/mlx/arrays/stream.h"
#include "backends/mlx/backend.h"
#include "backends/mlx/device.h"
#include "backends/mlx/graph/builder.h"
#include "backends/mlx/host/threads.h"
#include "backends/mlx/single_op.h"
#include "headrace/ggml-mlx.h"

namespace headrace::mlx {
namespace {

std::atomic<bool> use_gpu{false};
std::atomic<bool> has_chosen{false};

mx::Device chosen_device() {
    if (!has_chosen) return mlx_device();
    return use_gpu ? mx::Device::gpu : mx::Device::cpu;
}

using Operands = std::initializer_list<const ggml_tensor*>;

void require_all(Operands operands, const ggml_tensor* dst) {
    int number = 0;
    for (const ggml_tensor* operand : operands)
        require_memory(operand, "operand " + std::to_string(++number));
    require_memory(dst, "dst");
}

/// Makes an op of operands, computes it and stores it, on the calling thread's own stream.
template <class Make>
ggml_status compute(const char* name, Operands operands, ggml_tensor* dst, Make&& make) {
    return guarded(name, [&] {
        require_all(operands, dst);
        const StreamScope scope(mx::default_stream(chosen_device()));
        const SingleOp op = make();
        if (!ggml_are_same_shape(op.node(), dst))
            throw std::invalid_argument("dst is " + to_string(dst) + "; the result is " +
                                        to_string(op.node()));
        Builder builder(mx::default_stream(mx::Device::cpu));
        store_in_tensor(op.express(builder), dst);
    });
}

/// A signal as an image of one row: dimensions 1 and up move one further.
ggml_tensor as_image(const ggml_tensor* t) {
    ggml_tensor image = *t;
    image.view_src = nullptr;
    for (const int d : {3, 2}) {
        image.ne[d] = t->ne[d - 1];
        image.nb[d] = t->nb[d - 1];
    }
    image.ne[1] = 1;
    return image;
}

}  // namespace
}  // namespace headrace::mlx

using namespace headrace::mlx;

bool ggml_mlx_available(void) {
    bool works = false;
    guarded("looking for MLX", [&] {
        const StreamScope scope(mx::default_stream(chosen_device()));
        works = mx::add(array(1.0f), array(2.0f)).item<float>() == 3.0f;
    });
    return works;
}

void ggml_mlx_init(void) { ggml_mlx_available(); }

void ggml_mlx_free(void) {
    guarded("freeing MLX's memory", [] { mx::clear_cache(); });
}

bool ggml_mlx_set_device(int device) {
    if (device != 0 && !(device == 1 && mx::is_available(mx::Device::gpu))) {
        report("set_device", std::invalid_argument("there is no device " + std::to_string(device) +
                                                   "; 0 is the CPU, 1 the GPU where MLX has one"));
        return false;
    }
    use_gpu = device == 1;
    has_chosen = true;
    return true;
}

void ggml_mlx_set_n_threads(int n_threads) { set_threads(n_threads); }

bool ggml_mlx_can_mul_mat(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    if (!src0 || !src1 || !dst) return false;
    try {
        const SingleOp op = SingleOp::mul_mat(src0, src1);
        return ggml_are_same_shape(op.node(), dst) && op.is_supported();
    } catch (const std::exception&) {
        return false;
    }
}

ggml_status ggml_mlx_mul_mat(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    return compute("mul_mat", {src0, src1}, dst, [&] { return SingleOp::mul_mat(src0, src1); });
}
ggml_status ggml_mlx_add(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    return compute("add", {src0, src1}, dst, [&] { return SingleOp::binary(GGML_OP_ADD, src0, src1); });
}
ggml_status ggml_mlx_sub(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    return compute("sub", {src0, src1}, dst, [&] { return SingleOp::binary(GGML_OP_SUB, src0, src1); });
}
ggml_status ggml_mlx_mul(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    return compute("mul", {src0, src1}, dst, [&] { return SingleOp::binary(GGML_OP_MUL, src0, src1); });
}
ggml_status ggml_mlx_div(const ggml_tensor* src0, const ggml_tensor* src1, ggml_tensor* dst) {
    return compute("div", {src0, src1}, dst, [&] { return SingleOp::binary(GGML_OP_DIV, src0, src1); });
}
ggml_status ggml_mlx_relu(const ggml_tensor* src, ggml_tensor* dst) {
    return compute("relu", {src}, dst, [&] { return SingleOp::unary(GGML_UNARY_OP_RELU, src); });
}
ggml_status ggml_mlx_gelu(const ggml_tensor* src, ggml_tensor* dst) {
    return compute("gelu", {src}, dst, [&] { return SingleOp::unary(GGML_UNARY_OP_GELU, src); });
}
ggml_status ggml_mlx_silu(const ggml_tensor* src, ggml_tensor* dst) {
    return compute("silu", {src}, dst, [&] { return SingleOp::unary(GGML_UNARY_OP_SILU, src); });
}
ggml_status ggml_mlx_soft_max(const ggml_tensor* src, ggml_tensor* dst) {
    return compute("soft_max", {src}, dst, [&] { return SingleOp::soft_max(src); });
}
ggml_status ggml_mlx_norm(const ggml_tensor* src, ggml_tensor* dst, float eps) {
    return compute("norm", {src}, dst, [&] { return SingleOp::norm(GGML_OP_NORM, src, eps); });
}
ggml_status ggml_mlx_rms_norm(const ggml_tensor* src, ggml_tensor* dst, float eps) {
    return compute("rms_norm", {src}, dst, [&] { return SingleOp::norm(GGML_OP_RMS_NORM, src, eps); });
}
ggml_status ggml_mlx_flash_attn(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v,
                                const ggml_tensor* mask, ggml_tensor* dst, float scale) {
    return compute("flash_attn", {q, k, v}, dst, [&] {
        if (mask) require_memory(mask, "the mask");
        return SingleOp::flash_attention(q, k, v, mask, scale);
    });
}
ggml_status ggml_mlx_conv_1d(const ggml_tensor* kernel, const ggml_tensor* signal, ggml_tensor* dst,
                             int stride, int padding, int dilation) {
    const ggml_status given = guarded("conv_1d", [&] { require_all({kernel, signal}, dst); });
    if (given != GGML_STATUS_SUCCESS) return given;
    const ggml_tensor wide_kernel = as_image(kernel), wide_signal = as_image(signal);
    ggml_tensor wide = as_image(dst);
    return compute("conv_1d", {&wide_kernel, &wide_signal}, &wide, [&] {
        return SingleOp::conv_2d(&wide_kernel, &wide_signal, {{stride, 1}, {padding, 0}, {dilation, 1}});
    });
}
ggml_status ggml_mlx_conv_2d(const ggml_tensor* kernel, const ggml_tensor* image, ggml_tensor* dst,
                             int stride0, int stride1, int padding0, int padding1, int dilation0,
                             int dilation1) {
    return compute("conv_2d", {kernel, image}, dst, [&] {
        return SingleOp::conv_2d(kernel, image,
                                 {{stride0, stride1}, {padding0, padding1}, {dilation0, dilation1}});
    });
}
