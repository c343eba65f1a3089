#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "base/result.h"
#include "ir/block_format.h"
#include "ir/dim.h"
#include "ir/dtype.h"

namespace headrace {

class FilePages;

/// What the elements of a constant of f32 are multiplied with to be what it stands for: element i with
/// values[i / within % values.size()]. So weights of a file stay there whose factors a graph knows.
struct ElementFactors {
    std::vector<double> values;
    std::size_t within = 1;  ///< elements that follow one another with one factor

    /// Multiplies elements [first, first + elements.size()) in their place.
    void multiply(std::size_t first, std::span<float> elements) const;
    ContentHash hash() const;
};

inline constexpr int kMaxRank = 8;

using Shape = std::vector<Dim>;

std::string str(const Shape& shape);  ///< "[1, seq, 384]"
std::string str(std::span<const std::int64_t> shape);

struct TensorType {
    DType dtype = DType::f32;
    Shape shape;
    BlockFormat format = BlockFormat::plain;  ///< of constants only; f32 in blocks along the last axis

    int rank() const { return static_cast<int>(shape.size()); }
    bool is_concrete() const;
    /// Number of elements; only of a concrete type that passed check().
    std::int64_t elements() const;
    std::size_t bytes() const {
        return format == BlockFormat::plain ? bytes_of(dtype, elements()) : blocks_bytes(format, elements());
    }
    std::vector<std::int64_t> sizes() const;  ///< the concrete extents
    std::string str() const;                  ///< "f32[1, seq, 384]", "f32[96, 64] as q8_0"
    bool operator==(const TensorType&) const = default;

    /// Rank and extents are in range, and the largest byte size fits in ptrdiff_t.
    Status check() const;
};

/// The extents' product as one extent. What exceeds 64 bits becomes the largest integer, which no shape may
/// have.
Dim product(const Shape& extents);

/// The type as bytes see it at run time: what reference kernels and packed kernels read.
struct ConstView {
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape;
    const std::byte* data = nullptr;  ///< null: the optional operand is absent
    BlockFormat format = BlockFormat::plain;
    const FilePages* pages = nullptr;  ///< of a constant: where OnePassReader gives back what it has read
    const ElementFactors* factors =
        nullptr;  ///< of a constant: for OnePassReader, which others are not given

    explicit operator bool() const { return data != nullptr; }
    int rank() const { return static_cast<int>(shape.size()); }
    std::int64_t elements() const {
        std::int64_t n = 1;
        for (std::int64_t d : shape) n *= d;
        return n;
    }
    template <class T>
    const T* as() const {
        return reinterpret_cast<const T*>(data);
    }
};

struct MutView {
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape;
    std::byte* data = nullptr;

    int rank() const { return static_cast<int>(shape.size()); }
    std::int64_t elements() const { return ConstView{dtype, shape, data}.elements(); }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data);
    }
};

}  // namespace headrace
