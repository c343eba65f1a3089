#include "backends/mlx/arrays/tensors.h"

#include <cstring>
#include <limits>

namespace headrace::mlx {

std::optional<mx::Dtype> dtype_of(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return mx::float32;
        case GGML_TYPE_F16: return mx::float16;
        case GGML_TYPE_BF16: return mx::bfloat16;
        case GGML_TYPE_I8: return mx::int8;
        case GGML_TYPE_I16: return mx::int16;
        case GGML_TYPE_I32: return mx::int32;
        case GGML_TYPE_I64: return mx::int64;
        default: return std::nullopt;
    }
}

mx::Dtype require_dtype(ggml_type type) {
    const auto dtype = dtype_of(type);
    GGML_ASSERT(dtype);
    return *dtype;
}

Shape shape_of(const ggml_tensor* t) {
    return {static_cast<int>(t->ne[3]), static_cast<int>(t->ne[2]), static_cast<int>(t->ne[1]),
            static_cast<int>(t->ne[0])};
}

Strides strides_of(const ggml_tensor* t) {
    const auto size = static_cast<std::int64_t>(ggml_type_size(t->type));
    Strides strides(4);
    for (int d = 0; d < 4; ++d) strides[axis_of(d)] = static_cast<std::int64_t>(t->nb[d]) / size;
    return strides;
}

const ggml_tensor* root_of(const ggml_tensor* t) {
    while (t->view_src) t = t->view_src;
    return t;
}

bool is_view_op(ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_VIEW || op == GGML_OP_RESHAPE || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

bool is_computed(const ggml_tensor* node) {
    return !is_view_op(node->op) && !ggml_is_empty(node) && (node->flags & GGML_TENSOR_FLAG_COMPUTE);
}

float float_param(const ggml_tensor* t, int index) {
    float value;
    std::memcpy(&value, &t->op_params[index], sizeof value);
    return value;
}

int int_param(const ggml_tensor* t, int index) { return t->op_params[index]; }

bool is_float(ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

bool is_quantized(ggml_type type) {
    return ggml_is_quantized(type) && ggml_get_type_traits(type)->to_float != nullptr;
}

bool fits_mlx(const ggml_tensor* t) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    for (const ggml_tensor* part : {t, root_of(t)}) {
        // Quantised memory is an array of bytes: of less than 12 bits for each value, with scales and biases
        // in f32.
        const std::int64_t elements = ggml_nelements(part);
        if ((ggml_is_quantized(part->type) ? elements / 2 * 3 : elements) > kMost) return false;
    }
    return true;
}

}  // namespace headrace::mlx
