#include "backends/mlx/graph/builder.h"

#include <algorithm>
#include <memory>

#include "backends/mlx/arrays/layout.h"
#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/gpu/gpu.h"
#include "backends/mlx/memory/buffer.h"
#include "backends/mlx/memory/memory_primitives.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "ggml-backend.h"

namespace headrace::mlx {
namespace {

std::int64_t elements_from_root(const ggml_tensor* t) {
    return (static_cast<const char*>(t->data) - static_cast<const char*>(root_of(t)->data)) /
           static_cast<std::int64_t>(ggml_type_size(t->type));
}

bool is_weight(const ggml_tensor* t) {
    const ggml_backend_buffer_t buffer = root_of(t)->buffer;
    return buffer && ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
}

mx::Dtype value_dtype(const ggml_tensor* t) {
    return ggml_is_quantized(t->type) ? mx::float32 : require_dtype(t->type);
}

/// Ops whose value MLX may leave in the memory that it came from.
bool only_copies(ggml_op op) {
    return op == GGML_OP_DUP || op == GGML_OP_CPY || op == GGML_OP_CONT || op == GGML_OP_REPEAT;
}

/// The order of MLX's axes that ggml_permute's parameters mean.
std::vector<int> permuted_axes(const ggml_tensor* t) {
    std::vector<int> axes(4);
    for (int d = 0; d < 4; ++d) {
        const int to = t->op == GGML_OP_TRANSPOSE ? (d < 2 ? 1 - d : d) : int_param(t, d);
        axes[axis_of(to)] = axis_of(d);
    }
    return axes;
}

array strided(const array& values, Shape shape, Strides strides, std::int64_t offset) {
    // MLX takes strides of row-contiguous arrays only, and flattening one may leave it as it is.
    return mx::as_strided(in_row_order(values), std::move(shape), std::move(strides),
                          static_cast<std::size_t>(offset));
}

}  // namespace

array Builder::leaf(const ggml_tensor* t, LeafKind kind) {
    const Leaf wanted{t, kind};
    const auto it = std::find_if(leaves_.begin(), leaves_.end(),
                                 [&](const auto& known) { return known.first == wanted; });
    if (it != leaves_.end()) return it->second;
    leaves_.emplace_back(wanted, load(wanted));
    return leaves_.back().second;
}

array Builder::root_memory(const ggml_tensor* root) {
    const auto version = versions_.find(root);
    return version != versions_.end() ? version->second : leaf(root, LeafKind::flat);
}

const array* Builder::find(const ggml_tensor* root) const {
    const auto it = values_.find(root);
    return it == values_.end() ? nullptr : &it->second;
}

bool Builder::is_constant(const ggml_tensor* t) const {
    return !changed_.contains(root_of(t)) && !written_.contains(root_of(t));
}

array Builder::get(const ggml_tensor* t) {
    const ggml_tensor* root = root_of(t);
    if (const array* value = find(root)) {
        if (t == root) return *value;
        const ggml_tensor* source = t->src[0];
        if (t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE)
            return mx::transpose(get(source), permuted_axes(t));
        if (t->op == GGML_OP_RESHAPE) return mx::reshape(get(source), shape_of(t));
        if (ggml_is_contiguous(t) && ggml_nelements(t) == ggml_nelements(root))
            return mx::reshape(*value, shape_of(t));
        return strided(in_memory_order(*value, root), shape_of(t), strides_of(t), elements_from_root(t));
    }
    const bool written = versions_.contains(root);
    if (!ggml_is_quantized(t->type))
        return written ? strided(root_memory(root), shape_of(t), strides_of(t), elements_from_root(t))
                       : leaf(t, LeafKind::values);
    return buffer_of(t) ? converted(t) : leaf(t, LeafKind::f32);
}

/// On the CPU MLX composes a conversion of many elementwise ops; one pass over the blocks is faster.
array Builder::converted(const ggml_tensor* t) {
    if (!is_packed(t) || mx::default_device() == mx::Device::cpu)
        return array(shape_of(t), mx::float32, std::make_shared<Dequantize>(host_, t),
                     {root_memory(root_of(t))});
    const PackedArrays parts = packed(t);
    return mx::dequantize(parts.codes, parts.scales, parts.biases, parts.format->group, parts.format->bits,
                          parts.format->mode, std::nullopt, mx::float32);
}

array Builder::converted_rows(const ggml_tensor* t, int begin, int end) {
    ggml_tensor rows = *t;
    rows.view_src = const_cast<ggml_tensor*>(root_of(t));
    rows.data = static_cast<char*>(t->data) + begin * t->nb[1];
    rows.ne[1] = end - begin;
    if (mx::default_device() == mx::Device::cpu) return mx::reshape(converted(&rows), {end - begin, -1});
    const array all = mx::reshape(converted(t), {static_cast<int>(t->ne[1]), -1});
    return mx::slice(all, {begin, 0}, {end, all.shape(1)});
}

/// Memory that all layers read, such as the mask, is converted once.
array Builder::f32(const ggml_tensor* t) {
    const array value = get(t);
    if (value.dtype() == mx::float32 || find(root_of(t)) || !is_constant(t))
        return mx::astype(value, mx::float32);
    return in_f32_.try_emplace(t, mx::astype(value, mx::float32)).first->second;
}

array Builder::weight(const ggml_tensor* t) {
    const bool convertible = t->type != GGML_TYPE_F32 && buffer_of(t) && is_weight(t) && !find(root_of(t)) &&
                             !versions_.contains(root_of(t));
    if (convertible && buffer_of(t)->weights().admits(t)) return leaf(t, LeafKind::f32);
    return f32(t);
}

array Builder::part_of_version(const ggml_tensor* t, LeafKind part) {
    const PackedView view = packed_view(t, part);
    const ggml_tensor* root = root_of(t);
    const PackedView whole = packed_view(root, part);
    const int size = static_cast<int>(mx::size_of(view.dtype));
    int elements = 1;
    for (const int extent : whole.shape) elements *= extent;
    const int begin = static_cast<int>(whole.byte_offset);
    const array bytes = mx::slice(root_memory(root), {begin}, {begin + elements * size});
    return strided(mx::view(bytes, view.dtype), view.shape, view.strides,
                   static_cast<std::int64_t>(view.byte_offset - whole.byte_offset) / size);
}

PackedArrays Builder::packed(const ggml_tensor* t) {
    const bool written = versions_.contains(root_of(t));
    const auto part = [&](LeafKind kind) { return written ? part_of_version(t, kind) : leaf(t, kind); };
    const QuantFormat* format = quant_format(t->type);
    PackedArrays arrays{format, part(LeafKind::codes), part(LeafKind::scales), std::nullopt};
    if (format->has_biases()) arrays.biases = part(LeafKind::biases);
    return arrays;
}

void Builder::define(const ggml_tensor* t, array value) {
    value = mx::astype(mx::reshape(value, shape_of(t)), value_dtype(t));
    const ggml_tensor* root = root_of(t);
    if (only_copies(t->op) && written_.contains(root_of(t->src[0])))
        value = value * array(1, value.dtype());  // memory of its own: the source is about to change
    if (t == root) {
        values_.insert_or_assign(t, value);
    } else if (const auto it = values_.find(root); it != values_.end()) {
        store_in_value(t, it->second, value);
        changed_.insert(root);
    } else {
        write(t, {root_memory(root), in_row_order(value)}, false);
    }
    note_readers(t, value);
}

void Builder::store_in_value(const ggml_tensor* t, array& root_value, array value) {
    if (ggml_nelements(t) == ggml_nelements(root_of(t)) && ggml_is_contiguous(t)) {
        root_value = mx::reshape(value, root_value.shape());
        return;
    }
    const array flat = mx::reshape(root_value, {-1});
    root_value = mx::reshape(update_region(flat, value, shape_of(t), strides_of(t), elements_from_root(t)),
                             root_value.shape());
}

void Builder::write_rows(const ggml_tensor* t, array values, array numbers) {
    const ggml_tensor* root = root_of(t);
    GGML_ASSERT(!find(root));
    write(t,
          {root_memory(root), in_row_order(mx::astype(values, value_dtype(t))),
           in_row_order(mx::astype(numbers, mx::int64))},
          true);
    note_readers(t, values);
}

void Builder::copy_blocks(const ggml_tensor* t) {
    const ggml_tensor* from = t->src[0];
    Shape shape = shape_of(from);
    shape[3] = static_cast<int>(ggml_row_size(from->type, from->ne[0]));
    const array blocks(shape, mx::uint8, std::make_shared<ReadBlocks>(host_, from),
                       {root_memory(root_of(from))});
    write(t, {root_memory(root_of(t)), blocks}, false);
    note_readers(t, blocks);
}

void Builder::write(const ggml_tensor* t, std::vector<array> inputs, bool by_rows) {
    const ggml_tensor* root = root_of(t);
    const array before = inputs[0];
    std::optional<PlannedWrite> planned;
    if (mx::default_device() == mx::Device::gpu && gpu::has_write_kernels())
        planned = plan_write(t, inputs[1], by_rows ? &inputs[2] : nullptr);
    const mx::Stream stream = planned ? mx::default_stream(mx::default_device()) : host_;
    std::vector<array>& readers = readers_[root];
    inputs.insert(inputs.end(), readers.begin(), readers.end());
    readers.clear();
    versions_.insert_or_assign(
        root,
        array(before.shape(), before.dtype(),
              std::make_shared<InPlaceWrite>(stream, t, by_rows, std::move(planned)), std::move(inputs)));
}

void Builder::note_readers(const ggml_tensor* t, const array& value) {
    if (written_.empty()) return;
    for (const ggml_tensor* source : t->src) {
        if (!source) continue;
        const ggml_tensor* root = root_of(source);
        if (root != root_of(t) && written_.contains(root)) readers_[root].push_back(value);
    }
}

array in_memory_order(const array& value, const ggml_tensor* t) {
    if (ggml_is_contiguous(t)) return value;
    std::vector<int> axes{0, 1, 2, 3};
    std::stable_sort(axes.begin(), axes.end(),
                     [&](int a, int b) { return t->nb[axis_of(a)] > t->nb[axis_of(b)]; });
    return mx::transpose(value, axes);
}

array update_region(const array& flat, const array& part, const Shape& shape, const Strides& strides,
                    std::int64_t offset) {
    bool contiguous = true;
    std::int64_t expected = 1;
    for (int axis = 3; axis >= 0; --axis) {
        if (shape[axis] != 1 && strides[axis] != expected) contiguous = false;
        expected *= shape[axis];
    }
    const array values = mx::reshape(mx::astype(part, flat.dtype()), {-1});
    const int begin = static_cast<int>(offset);
    if (contiguous)
        return mx::slice_update(flat, values, Shape{begin}, Shape{begin + static_cast<int>(values.size())});
    array positions = array(begin);
    for (int axis = 0; axis < 4; ++axis) {
        Shape along(4, 1);
        along[axis] = shape[axis];
        const array steps = mx::arange(0, shape[axis], 1, mx::int32) * array(static_cast<int>(strides[axis]));
        positions = positions + mx::reshape(steps, along);
    }
    return mx::put_along_axis(flat, mx::reshape(positions, {-1}), values, 0);
}

}  // namespace headrace::mlx
