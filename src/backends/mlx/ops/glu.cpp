#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool supports_glu(const ggml_tensor* t) {
    return is_float(t->type) && is_float(t->src[0]->type) && (!t->src[1] || is_float(t->src[1]->type));
}

struct Halves {
    array gate, up;
};

/// The two operands: tensors of their own, or the halves of each row.
Halves halves(Builder& b, const ggml_tensor* t) {
    const array first = b.f32(t->src[0]);
    if (t->src[1]) return {first, b.f32(t->src[1])};
    const int width = static_cast<int>(t->ne[0]);  // of an odd row, the last element is in neither half
    const auto part = [&](int begin) {
        Shape from(4, 0), to = first.shape();
        from[3] = begin;
        to[3] = begin + width;
        return mx::slice(first, from, to);
    };
    const bool swapped = int_param(t, 1) != 0;
    return {part(swapped ? width : 0), part(swapped ? 0 : width)};
}

array glu(const ggml_tensor* t, const array& gate, const array& up) {
    const array limit(float_param(t, 3));
    switch (ggml_get_glu_op(t)) {
        case GGML_GLU_OP_REGLU: return relu(gate) * up;
        case GGML_GLU_OP_GEGLU: return geglu(gate, up);
        case GGML_GLU_OP_SWIGLU: return swiglu(gate, up);
        case GGML_GLU_OP_GEGLU_ERF: return gelu_erf(gate) * up;
        case GGML_GLU_OP_GEGLU_QUICK: return gelu_quick(gate) * up;
        case GGML_GLU_OP_SWIGLU_OAI: {
            const array x = mx::minimum(gate, limit);
            return x * mx::sigmoid(x * array(float_param(t, 2))) *
                   (mx::clip(up, mx::negative(limit), limit) + array(1.0f));
        }
        case GGML_GLU_OP_SWIGLU_CLAMP:
            return silu(mx::minimum(gate, limit)) * mx::clip(up, mx::negative(limit), limit);
        case GGML_GLU_OP_COUNT: break;
    }
    GGML_ABORT("no such gated unit");
}

void translate_glu(Builder& b, const ggml_tensor* t) {
    const Halves parts = halves(b, t);
    b.define(t, glu(t, parts.gate, parts.up));
}

constexpr OpRow kRows[] = {{GGML_OP_GLU, supports_glu, translate_glu}};

}  // namespace

std::span<const OpRow> glu_ops() { return kRows; }

}  // namespace headrace::mlx
