#pragma once
#include <algorithm>

#include "ir/op_def.h"
#include "ops/infer.h"

namespace headrace::ops {

/// An index operand (i32, u32 or i64) as WebNN reads it: negative ones count from the end, and what is then
/// still outside is clamped to the nearest element.
class Indices {
public:
    explicit Indices(const ConstView& view) : view_(view) {}

    /// The i-th index into an extent of at least 1.
    std::int64_t at(std::int64_t i, std::int64_t extent) const {
        const std::int64_t index = raw(i);
        return std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
    }

private:
    std::int64_t raw(std::int64_t i) const {
        switch (view_.dtype) {
            case DType::i32: return view_.as<std::int32_t>()[i];
            case DType::u32: return view_.as<std::uint32_t>()[i];
            default: return view_.as<std::int64_t>()[i];
        }
    }

    const ConstView& view_;
};

/// Product of extents [begin, end).
inline std::int64_t extent_product(std::span<const std::int64_t> shape, std::size_t begin, std::size_t end) {
    std::int64_t n = 1;
    for (std::size_t i = begin; i < end; ++i) n *= shape[i];
    return n;
}

/// Indexing needs an element to clamp to, if there are indices.
inline Status check_indexable(const TensorType& input, int axis, const TensorType& indices) {
    if (std::ranges::any_of(indices.shape, [](const Dim& d) { return d.is(0); })) return success();
    if (input.shape[static_cast<std::size_t>(axis)].is(0))
        return invalid("dimension {} of input {} is empty and cannot be indexed", axis, str(input.shape));
    return success();
}

/// Indices that each stand for one element: of the input's rank, and outside the axis within its extents.
inline Status check_element_indices(const Operands& in, int axis) {
    const TensorType &input = in[0], &indices = in[1];
    if (indices.rank() != input.rank())
        return invalid("Shape mismatch: indices {} must have the rank of input {}", str(indices.shape),
                       str(input.shape));
    for (int d = 0; d < input.rank(); ++d) {
        const Dim &i = indices.shape[static_cast<std::size_t>(d)],
                  &x = input.shape[static_cast<std::size_t>(d)];
        if (d != axis && !at_least(in, x, i))
            return invalid("Shape mismatch: indices {} exceed input {} in dimension {}, only axis {} is free",
                           str(indices.shape), str(input.shape), d, axis);
    }
    return success();
}

/// The output of an op that puts updates, one for each index, into its input along an axis.
inline Result<Types> infer_element_updates(const Operands& in, std::int64_t given_axis) {
    HR_ASSIGN(const int axis, normalize_axis(given_axis, in[0].rank()));
    HR_TRY(check_indexable(in[0], axis, in[1]));
    HR_TRY(check_element_indices(in, axis));
    if (!same_shape(in, in[1].shape, in[2].shape))
        return invalid("Shape mismatch: indices {} and updates {} must be equal", str(in[1].shape),
                       str(in[2].shape));
    return same_type(in[0]);
}

/// How many leading dimensions of the input one index tuple (the indices' last dimension) addresses.
inline Result<int> tuple_size(const TensorType& input, const TensorType& indices) {
    const Dim& size = indices.shape.back();
    if (size.is_symbolic())
        return invalid("the last extent {} of indices {} must be known", size.str(), str(indices.shape));
    if (size.size() > input.rank())
        return invalid("the last extent of indices {} must be at most {}, the rank of input {}",
                       str(indices.shape), input.rank(), str(input.shape));
    const int depth = static_cast<int>(size.size());
    for (int d = 0; d < depth; ++d) HR_TRY(check_indexable(input, d, indices));
    return depth;
}

/// Index tuples, each of which addresses a slice of a tensor.
class TupleIndices {
public:
    TupleIndices(std::span<const std::int64_t> shape, const ConstView& indices)
        : slice(extent_product(shape, static_cast<std::size_t>(indices.shape.back()), shape.size())),
          count(extent_product(indices.shape, 0, indices.shape.size() - 1)),
          shape_(shape.first(static_cast<std::size_t>(indices.shape.back()))),
          indices_(indices) {}

    /// Which slice the i-th tuple addresses, counted in row-major order.
    std::int64_t slice_at(std::int64_t i) const {
        std::int64_t at = 0;
        const auto depth = static_cast<std::int64_t>(shape_.size());
        for (std::int64_t d = 0; d < depth; ++d) {
            const std::int64_t extent = shape_[static_cast<std::size_t>(d)];
            at = at * extent + indices_.at(i * depth + d, extent);
        }
        return at;
    }

    const std::int64_t slice;  ///< elements of one slice
    const std::int64_t count;  ///< tuples

private:
    std::span<const std::int64_t> shape_;
    Indices indices_;
};

}  // namespace headrace::ops
