#include "backends/mlx/arrays/checked_numbers.h"
#include "backends/mlx/ops/families.h"
#include "backends/mlx/ops/fusion.h"

namespace headrace::mlx {
namespace {

using Function = array (*)(const array&, const array&);

bool all_float(const ggml_tensor* t) {
    return is_float(t->type) && is_float(t->src[0]->type) && is_float(t->src[1]->type);
}

template <Function function>
void translate(Builder& b, const ggml_tensor* t) {
    const ggml_tensor* second = t->src[1];
    if (const auto fused = fuse(b, t)) return b.define(t, *fused);
    b.define(t, function(b.f32(t->src[0]), repeat_to(b.f32(second), second, t)));
}

array add(const array& a, const array& b) { return a + b; }
array subtract(const array& a, const array& b) { return a - b; }
array multiply(const array& a, const array& b) { return a * b; }
array divide(const array& a, const array& b) { return a / b; }
array silu_back(const array& gradient, const array& x) {
    const array s = mx::sigmoid(x);
    return gradient * s * (array(1.0f) + x * (array(1.0f) - s));
}

/// Adds to row (i1, i2) the row of src[1] that src[2] names.
bool supports_add_id(const ggml_tensor* t) { return all_float(t) && t->src[2]->type == GGML_TYPE_I32; }
void translate_add_id(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *rows = t->src[1], *numbers = t->src[2];
    const array picked =
        mx::take(mx::reshape(b.f32(rows), {static_cast<int>(rows->ne[1]), static_cast<int>(rows->ne[0])}),
                 mx::reshape(checked_numbers(b.host(), b.get(numbers), rows->ne[1], t->op), {-1}), 0);
    b.define(
        t, b.f32(t->src[0]) + mx::reshape(picked, {1, static_cast<int>(t->ne[2]), static_cast<int>(t->ne[1]),
                                                   static_cast<int>(t->ne[0])}));
}

constexpr OpRow kRows[] = {
    {GGML_OP_ADD, all_float, translate<add>},
    {GGML_OP_ADD1, all_float, translate<add>},
    {GGML_OP_SUB, all_float, translate<subtract>},
    {GGML_OP_MUL, all_float, translate<multiply>},
    {GGML_OP_DIV, all_float, translate<divide>},
    {GGML_OP_SILU_BACK, all_float, translate<silu_back>},
    {GGML_OP_ADD_ID, supports_add_id, translate_add_id},
};

}  // namespace

std::span<const OpRow> binary_ops() { return kRows; }

array repeat_to(const array& value, const ggml_tensor* from, const ggml_tensor* to) {
    std::vector<int> times(4, 1);
    bool needed = false;
    for (int d = 0; d < 4; ++d)
        if (from->ne[d] != 1 && from->ne[d] != to->ne[d]) {
            times[axis_of(d)] = static_cast<int>(to->ne[d] / from->ne[d]);
            needed = true;
        }
    return needed ? mx::tile(value, times) : value;
}

array constant(const std::vector<float>& values) {
    return array(values.begin(), {static_cast<int>(values.size())}, mx::float32);
}

}  // namespace headrace::mlx
