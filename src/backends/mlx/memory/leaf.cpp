#include "backends/mlx/memory/leaf.h"

#include <cstring>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/memory/buffer.h"
#include "backends/mlx/memory/packed_tensor.h"

namespace headrace::mlx {
namespace {

int count_of(const ggml_tensor* root) { return static_cast<int>(ggml_nelements(root)); }

/// Memory that MLX cannot share: a caller's, which the C API is given.
array copy_of(const Leaf& leaf) {
    const ggml_tensor* t = leaf.tensor;
    if (leaf.kind == LeafKind::f32) return convert_to_f32(t);
    array copy = allocate(shape_of(t), require_dtype(t->type));
    const std::size_t size = ggml_type_size(t->type);
    char* out = copy.data<char>();
    for (std::int64_t i3 = 0; i3 < t->ne[3]; ++i3)
        for (std::int64_t i2 = 0; i2 < t->ne[2]; ++i2)
            for (std::int64_t i1 = 0; i1 < t->ne[1]; ++i1) {
                const char* row =
                    static_cast<const char*>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
                for (std::int64_t i0 = 0; i0 < t->ne[0]; ++i0, out += size)
                    std::memcpy(out, row + i0 * t->nb[0], size);
            }
    return copy;
}

array flat_alias(const Buffer& buffer, const ggml_tensor* root) {
    if (const QuantFormat* format = quant_format(root->type))
        return buffer.alias(root->data, {static_cast<int>(packed_layout(*format, ggml_nelements(root)).end)},
                            {1}, mx::uint8);
    if (ggml_is_quantized(root->type))
        return buffer.alias(root->data, {static_cast<int>(ggml_nbytes(root))}, {1}, mx::uint8);
    return buffer.alias(root->data, {count_of(root)}, {1}, require_dtype(root->type));
}

}  // namespace

PackedView packed_view(const ggml_tensor* t, LeafKind part) {
    const QuantFormat& format = *quant_format(t->type);
    const ggml_tensor* root = root_of(t);
    const auto block_bytes = static_cast<std::int64_t>(ggml_type_size(t->type));
    const auto first_value = (static_cast<const char*>(t->data) - static_cast<const char*>(root->data)) /
                             block_bytes * format.block;
    const PackedLayout layout = packed_layout(format, ggml_nelements(root));
    const bool codes = part == LeafKind::codes;
    // 32 values are `bits` words of codes.
    const auto units = [&](std::int64_t values) {
        return codes ? values / 32 * format.bits : values / format.group;
    };
    PackedView view{.shape = shape_of(t),
                    .strides = Strides(4),
                    .byte_offset = 0,
                    .dtype = codes                ? mx::uint32
                             : format.is_affine() ? mx::float32
                                                  : mx::uint8};
    view.shape[3] = static_cast<int>(units(t->ne[0]));
    view.strides[3] = 1;
    for (int d = 1; d < 4; ++d)
        view.strides[axis_of(d)] = units(static_cast<std::int64_t>(t->nb[d]) / block_bytes * format.block);
    const std::size_t part_offset = codes ? 0 : part == LeafKind::scales ? layout.scales : layout.biases;
    view.byte_offset = part_offset + static_cast<std::size_t>(units(first_value)) * mx::size_of(view.dtype);
    return view;
}

array load(const Leaf& leaf) {
    const ggml_tensor* t = leaf.tensor;
    Buffer* buffer = buffer_of(t);
    if (!buffer) return copy_of(leaf);
    switch (leaf.kind) {
        case LeafKind::values:
            return buffer->alias(t->data, shape_of(t), strides_of(t), require_dtype(t->type));
        case LeafKind::flat: return flat_alias(*buffer, root_of(t));
        case LeafKind::f32: return buffer->weights().get(t);
        case LeafKind::codes:
        case LeafKind::scales:
        case LeafKind::biases: break;
    }
    const PackedView view = packed_view(t, leaf.kind);
    return buffer->alias(static_cast<const char*>(root_of(t)->data) + view.byte_offset, view.shape,
                         view.strides, view.dtype);
}

}  // namespace headrace::mlx
