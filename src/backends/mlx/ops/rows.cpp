#include "backends/mlx/arrays/checked_numbers.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

/// Row numbers of all matrices of `from` laid one below the other: entry (i3, i2, i1) of `numbers` means a
/// row of matrix (i3, i2).
array flat_row_numbers(const array& numbers, const ggml_tensor* from) {
    const array wide = mx::astype(numbers, mx::int32);
    if (from->ne[2] * from->ne[3] == 1) return mx::reshape(wide, {-1});
    const int matrices = extent(from, 2) * extent(from, 3);
    const array first_rows = mx::arange(0, matrices, 1, mx::int32) * array(extent(from, 1));
    // numbers has shape 1, ne[3], ne[2], rows: as many matrices as `from`.
    return mx::reshape(wide + mx::reshape(first_rows, {1, extent(from, 3), extent(from, 2), 1}), {-1});
}

array as_rows(const array& a) { return mx::reshape(a, {-1, a.shape(3)}); }

bool supports_get_rows(const ggml_tensor* t) {
    const ggml_tensor *from = t->src[0], *numbers = t->src[1];
    const bool readable = dtype_of(from->type) || is_quantized(from->type);
    return readable && dtype_of(t->type) && numbers->type == GGML_TYPE_I32 && numbers->ne[3] == 1 &&
           numbers->ne[1] == from->ne[2] && numbers->ne[2] == from->ne[3] &&
           from->nb[0] == ggml_type_size(from->type);
}
void translate_get_rows(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *from = t->src[0], *numbers = t->src[1];
    const array picked =
        flat_row_numbers(checked_numbers(b.host(), b.get(numbers), from->ne[1], t->op), from);
    if (!is_packed(from)) {
        b.define(t,
                 mx::take(as_rows(ggml_is_quantized(from->type) ? b.weight(from) : b.get(from)), picked, 0));
        return;
    }
    const PackedArrays w = b.packed(from);
    const auto take = [&](const array& part) { return mx::take(as_rows(part), picked, 0); };
    const array scales = take(w.scales);
    std::optional<array> biases;
    if (w.biases)
        biases = take(*w.biases);
    else if (w.format->is_affine())
        biases = scales * array(static_cast<float>(-w.format->offset));
    b.define(t, mx::dequantize(take(w.codes), scales, biases, w.format->group, w.format->bits, w.format->mode,
                               std::nullopt, mx::float32));
}

bool supports_get_rows_back(const ggml_tensor* t) {
    return is_float(t->type) && is_float(t->src[0]->type) && t->src[1]->type == GGML_TYPE_I32 &&
           t->ne[2] * t->ne[3] == 1;
}
void translate_get_rows_back(Builder& b, const ggml_tensor* t) {
    // There may be more gradients than numbers: ggml leaves those at the end out.
    const int rows = static_cast<int>(ggml_nelements(t->src[1])), columns = extent(t, 0);
    const array updates = mx::slice(as_rows(b.f32(t->src[0])), {0, 0}, {rows, columns});
    const array numbers = checked_numbers(b.host(), b.get(t->src[1]), t->ne[1], t->op);
    b.define(t, mx::scatter_add(mx::zeros({extent(t, 1), columns}, mx::float32), mx::reshape(numbers, {-1}),
                                mx::reshape(updates, {rows, 1, columns}), 0));
}

bool supports_set_rows(const ggml_tensor* t) {
    const ggml_tensor *values = t->src[0], *numbers = t->src[1];
    const bool writable =
        is_float(t->type) || (is_quantized(t->type) && ggml_get_type_traits(t->type)->from_float_ref);
    return writable && is_float(values->type) && t->nb[0] == ggml_type_size(t->type) &&
           (numbers->type == GGML_TYPE_I64 || numbers->type == GGML_TYPE_I32);
}
void translate_set_rows(Builder& b, const ggml_tensor* t) {
    b.write_rows(t, b.get(t->src[0]), b.get(t->src[1]));
}

constexpr OpRow kRows[] = {
    {GGML_OP_GET_ROWS, supports_get_rows, translate_get_rows},
    {GGML_OP_GET_ROWS_BACK, supports_get_rows_back, translate_get_rows_back},
    {GGML_OP_SET_ROWS, supports_set_rows, translate_set_rows},
};

}  // namespace

std::span<const OpRow> row_ops() { return kRows; }

}  // namespace headrace::mlx
