#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/share.h"
#include "ir/tensor_type.h"

namespace headrace::ops {

using Sizes = std::span<const std::int64_t>;

/// Row-major strides in elements.
inline std::vector<std::int64_t> dense_strides(Sizes shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t stride = 1;
    for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return strides;
}

/// Strides with which a dense tensor of shape `from` is read at every position of `to` (NumPy broadcasting):
/// trailing dimensions align, extents of 1 repeat.
inline std::vector<std::int64_t> broadcast_strides(Sizes from, Sizes to) {
    const auto dense = dense_strides(from);
    std::vector<std::int64_t> strides(to.size(), 0);
    const std::size_t shift = to.size() - from.size();
    for (std::size_t i = 0; i < from.size(); ++i) strides[i + shift] = from[i] == 1 ? 0 : dense[i];
    return strides;
}

/// Row-major walk over a shape with N strided operands. Neighbouring dimensions that all operands cross in
/// one stride are merged, so that the innermost run is as long as possible.
template <std::size_t N>
class StridedWalk {
public:
    using Offsets = std::array<std::int64_t, N>;

    StridedWalk(Sizes shape, const std::array<std::vector<std::int64_t>, N>& strides) {
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            Offsets s;
            for (std::size_t k = 0; k < N; ++k) s[k] = strides[k][d];
            if (!sizes_.empty() && continues(s, shape[d])) {
                sizes_.back() *= shape[d];
                strides_.back() = s;
            } else {
                sizes_.push_back(shape[d]);
                strides_.push_back(s);
            }
        }
        if (sizes_.empty()) {
            sizes_.push_back(1);
            strides_.push_back(Offsets{});
        }
    }

    /// Calls row(position, offsets, count, steps) for this thread's runs: `position` counts elements
    /// row-major, operand k's elements lie at offsets[k] + i * steps[k] for i < count.
    template <class Row>
    void run(Share share, Row&& row) const {
        const std::int64_t inner = sizes_.back();
        std::int64_t rows = 1;
        for (std::size_t d = 0; d + 1 < sizes_.size(); ++d) rows *= sizes_[d];
        if (rows == 1) {  // one long run: split the run itself
            const auto part = share.of(inner, 16);
            Offsets offsets;
            for (std::size_t k = 0; k < N; ++k) offsets[k] = part.begin * strides_.back()[k];
            if (part.end > part.begin) row(part.begin, offsets, part.end - part.begin, strides_.back());
            return;
        }
        const auto part = share.of(rows);
        for (std::int64_t r = part.begin; r < part.end; ++r)
            row(r * inner, offsets_of(r), inner, strides_.back());
    }

private:
    bool continues(const Offsets& s, std::int64_t size) const {
        for (std::size_t k = 0; k < N; ++k)
            if (strides_.back()[k] != s[k] * size) return false;
        return true;
    }
    Offsets offsets_of(std::int64_t r) const {
        Offsets offsets{};
        for (int d = static_cast<int>(sizes_.size()) - 2; d >= 0; --d) {
            const std::int64_t i = r % sizes_[d];
            r /= sizes_[d];
            for (std::size_t k = 0; k < N; ++k) offsets[k] += i * strides_[d][k];
        }
        return offsets;
    }

    std::vector<std::int64_t> sizes_;
    std::vector<Offsets> strides_;
};

/// Calls fn.operator()<T>() with the unsigned integer of so many bytes, for what moves elements as they are.
template <class Fn>
void visit_width(std::size_t bytes, Fn&& fn) {
    switch (bytes) {
        case 1: return fn.template operator()<std::uint8_t>();
        case 2: return fn.template operator()<std::uint16_t>();
        case 4: return fn.template operator()<std::uint32_t>();
        default: return fn.template operator()<std::uint64_t>();
    }
}

/// Copies elements of `element_bytes` from strided source positions to a dense row-major destination.
void strided_copy(const std::byte* source, std::int64_t start, Sizes shape,
                  const std::vector<std::int64_t>& strides, std::byte* destination, std::size_t element_bytes,
                  Share share);

}  // namespace headrace::ops
