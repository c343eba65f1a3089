#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool is_plain(ggml_type type) { return dtype_of(type).has_value(); }
bool can_quantize_to(ggml_type type) {
    return is_quantized(type) && ggml_get_type_traits(type)->from_float_ref != nullptr;
}

/// Rows of a quantised tensor can be told apart by their strides.
bool has_whole_rows(const ggml_tensor* t) { return t->nb[0] == ggml_type_size(t->type); }

/// Whether both are tensors of blocks whose rows are as long.
bool copies_blocks(const ggml_tensor* t) {
    const ggml_tensor* from = t->src[0];
    return ggml_is_quantized(t->type) && from->type == t->type && has_whole_rows(from) &&
           from->ne[0] == t->ne[0];
}

bool supports_copy(const ggml_tensor* t) {
    const ggml_tensor* from = t->src[0];
    const bool readable = is_plain(from->type) || (is_quantized(from->type) && has_whole_rows(from));
    if (is_plain(t->type)) return readable;
    // Blocks are copied into the result's own memory: no array of MLX has such a type.
    if (!t->view_src || !has_whole_rows(t)) return false;
    return copies_blocks(t) || (is_float(from->type) && can_quantize_to(t->type));
}
void translate_copy(Builder& b, const ggml_tensor* t) {
    if (copies_blocks(t))
        b.copy_blocks(t);
    else
        b.define(t, b.get(t->src[0]));
}

/// SET and ACC: src[0] with a region, given by byte strides and an offset, replaced by src[1] or added to.
bool supports_region(const ggml_tensor* t) {
    return is_plain(t->type) && t->src[0]->type == t->type && t->src[1]->type == t->type;
}
struct Region {
    Strides strides;
    std::int64_t offset;
};
Region region_of(const ggml_tensor* t) {
    const auto size = static_cast<std::int64_t>(ggml_type_size(t->type));
    return {{int_param(t, 2) / size, int_param(t, 1) / size, int_param(t, 0) / size, 1},
            int_param(t, 3) / size};
}
template <bool add>
void translate_region(Builder& b, const ggml_tensor* t) {
    const Region region = region_of(t);
    const Shape shape = shape_of(t->src[1]);
    const array flat = mx::reshape(b.get(t->src[0]), {-1});
    array part = b.get(t->src[1]);
    if (add)
        part = part + mx::as_strided(mx::contiguous(flat), shape, region.strides,
                                     static_cast<std::size_t>(region.offset));
    b.define(t, update_region(flat, part, shape, region.strides, region.offset));
}

bool supports_concat(const ggml_tensor* t) {
    return is_plain(t->type) && t->src[0]->type == t->type && t->src[1]->type == t->type;
}
void translate_concat(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::concatenate({b.get(t->src[0]), b.get(t->src[1])}, axis_of(int_param(t, 0))));
}

bool same_plain_type(const ggml_tensor* t) { return is_plain(t->type) && t->src[0]->type == t->type; }
std::vector<int> repeats(const ggml_tensor* small, const ggml_tensor* large) {
    std::vector<int> times(4);
    for (int d = 0; d < 4; ++d) times[axis_of(d)] = static_cast<int>(large->ne[d] / small->ne[d]);
    return times;
}
void translate_repeat(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::tile(b.get(t->src[0]), repeats(t->src[0], t)));
}
void translate_repeat_back(Builder& b, const ggml_tensor* t) {
    const std::vector<int> times = repeats(t, t->src[0]);
    Shape split;
    for (int axis = 0; axis < 4; ++axis) {
        split.push_back(times[axis]);
        split.push_back(static_cast<int>(t->ne[axis_of(axis)]));
    }
    b.define(t, mx::sum(mx::reshape(b.get(t->src[0]), split), std::vector<int>{0, 2, 4, 6}, false));
}
bool supports_repeat_back(const ggml_tensor* t) {
    return t->type == GGML_TYPE_F32 && t->src[0]->type == GGML_TYPE_F32;
}

constexpr OpRow kRows[] = {
    {GGML_OP_DUP, supports_copy, translate_copy},
    {GGML_OP_CPY, supports_copy, translate_copy},
    {GGML_OP_CONT, supports_copy, translate_copy},
    {GGML_OP_SET, supports_region, translate_region<false>},
    {GGML_OP_ACC, supports_region, translate_region<true>},
    {GGML_OP_CONCAT, supports_concat, translate_concat},
    {GGML_OP_REPEAT, same_plain_type, translate_repeat},
    {GGML_OP_REPEAT_BACK, supports_repeat_back, translate_repeat_back},
};

}  // namespace

std::span<const OpRow> copy_ops() { return kRows; }

}  // namespace headrace::mlx
