#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/graph/builder.h"
#include "backends/mlx/single_op.h"
#include "headrace/ggml-mlx.hpp"

namespace ggml_mlx {
namespace {

using headrace::mlx::Builder;
using headrace::mlx::SingleOp;
namespace mx = mlx::core;

ggml_type type_of(const array& value) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32})
        if (headrace::mlx::dtype_of(type) == value.dtype()) return type;
    throw std::invalid_argument("an array must be of float32, float16, bfloat16 or int32");
}

/// One expression's operands, all as tensors: an array becomes a tensor without memory that the builder
/// knows.
class Expression {
public:
    const ggml_tensor* operand(const Operand& given) {
        ++operands_;
        if (const auto* tensor = std::get_if<const ggml_tensor*>(&given.value())) {
            headrace::mlx::require_memory(*tensor, "operand " + std::to_string(operands_));
            axes_ = std::max(axes_, ggml_n_dims(*tensor));
            return *tensor;
        }
        return bind(std::get<array>(given.value()));
    }

    /// A signal as an image of one row.
    const ggml_tensor* image(const Operand& given) {
        const ggml_tensor* t = operand(given);
        const array value = builder_.get(t);
        return bind(mx::reshape(value, {value.shape(1), value.shape(2), 1, value.shape(3)}));
    }

    array finish(const SingleOp& op, int least_axes = 1) {
        const array value = op.express(builder_);
        return mx::reshape(value, leading_dropped(value.shape(), std::max(axes_, least_axes)));
    }

private:
    static mx::Shape leading_dropped(const mx::Shape& shape, int axes) {
        auto begin = shape.begin();
        while (shape.end() - begin > axes && *begin == 1) ++begin;
        return {begin, shape.end()};
    }

    const ggml_tensor* bind(const array& value) {
        if (value.ndim() > 4)
            throw std::invalid_argument("an array of more than four axes is no ggml tensor");
        axes_ = std::max(axes_, static_cast<int>(value.ndim()));
        std::array<std::int64_t, 4> extents{1, 1, 1, 1};
        for (std::size_t i = 0; i < value.ndim(); ++i) extents[value.ndim() - 1 - i] = value.shape(i);
        described_.push_back(headrace::mlx::describe(type_of(value), extents));
        const ggml_tensor* t = &described_.back();
        builder_.bind(t, mx::reshape(value, headrace::mlx::shape_of(t)));
        return t;
    }

    Builder builder_{mx::default_stream(mx::Device::cpu)};
    std::deque<ggml_tensor> described_;  ///< keeps its elements where they are
    int axes_ = 1, operands_ = 0;
};

array binary(ggml_op op, const Operand& a, const Operand& b) {
    Expression e;
    const ggml_tensor *first = e.operand(a), *second = e.operand(b);
    return e.finish(SingleOp::binary(op, first, second));
}
array unary(ggml_unary_op op, const Operand& x) {
    Expression e;
    return e.finish(SingleOp::unary(op, e.operand(x)));
}
array norm_of(ggml_op op, const Operand& x, float eps) {
    Expression e;
    return e.finish(SingleOp::norm(op, e.operand(x), eps));
}

}  // namespace

array mul_mat(const Operand& src0, const Operand& src1) {
    Expression e;
    const ggml_tensor *a = e.operand(src0), *b = e.operand(src1);
    return e.finish(SingleOp::mul_mat(a, b), 2);
}
array add(const Operand& src0, const Operand& src1) { return binary(GGML_OP_ADD, src0, src1); }
array sub(const Operand& src0, const Operand& src1) { return binary(GGML_OP_SUB, src0, src1); }
array mul(const Operand& src0, const Operand& src1) { return binary(GGML_OP_MUL, src0, src1); }
array div(const Operand& src0, const Operand& src1) { return binary(GGML_OP_DIV, src0, src1); }
array relu(const Operand& src) { return unary(GGML_UNARY_OP_RELU, src); }
array gelu(const Operand& src) { return unary(GGML_UNARY_OP_GELU, src); }
array silu(const Operand& src) { return unary(GGML_UNARY_OP_SILU, src); }
array soft_max(const Operand& src) {
    Expression e;
    return e.finish(SingleOp::soft_max(e.operand(src)));
}
array norm(const Operand& src, float eps) { return norm_of(GGML_OP_NORM, src, eps); }
array rms_norm(const Operand& src, float eps) { return norm_of(GGML_OP_RMS_NORM, src, eps); }

array flash_attn(const Operand& q, const Operand& k, const Operand& v, float scale) {
    Expression e;
    const ggml_tensor *queries = e.operand(q), *keys = e.operand(k), *values = e.operand(v);
    return e.finish(SingleOp::flash_attention(queries, keys, values, nullptr, scale), 3);
}
array flash_attn(const Operand& q, const Operand& k, const Operand& v, const Operand& mask, float scale) {
    Expression e;
    const ggml_tensor *queries = e.operand(q), *keys = e.operand(k), *values = e.operand(v);
    return e.finish(SingleOp::flash_attention(queries, keys, values, e.operand(mask), scale), 3);
}

array conv_1d(const Operand& kernel, const Operand& signal, int stride, int padding, int dilation) {
    Expression e;
    const ggml_tensor *wide_kernel = e.image(kernel), *wide_signal = e.image(signal);
    const array image =
        e.finish(SingleOp::conv_2d(wide_kernel, wide_signal, {{stride, 1}, {padding, 0}, {dilation, 1}}), 4);
    return mx::squeeze(image, 2);
}
array conv_2d(const Operand& kernel, const Operand& image, int stride0, int stride1, int padding0,
              int padding1, int dilation0, int dilation1) {
    Expression e;
    const ggml_tensor *filters = e.operand(kernel), *input = e.operand(image);
    return e.finish(
        SingleOp::conv_2d(filters, input, {{stride0, stride1}, {padding0, padding1}, {dilation0, dilation1}}),
        4);
}

void store(const array& value, ggml_tensor* dst) { headrace::mlx::store_in_tensor(value, dst); }

void store(const std::vector<std::pair<array, ggml_tensor*>>& values) {
    std::vector<array> all;
    for (const auto& [value, dst] : values) all.push_back(value);
    mx::eval(all);
    for (const auto& [value, dst] : values) store(value, dst);
}

}  // namespace ggml_mlx
