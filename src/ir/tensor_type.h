#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/block_format.h"
#include "ir/dtype.h"

namespace headrace {

inline constexpr int kMaxRank = 8;

/// A named extent that is known only at run time, within [min, max].
struct Symbol {
    std::string name;
    std::int64_t min = 1;
    std::int64_t max = INT64_MAX;
};

/// One extent of a shape: a number, or a symbol. Two symbolic extents are equal when their names are:
/// an extent computed from a symbol is itself a symbol, and its name is the expression in the one form that
/// ir/expression.h gives it: "1 + h" and "(2*h + 2)//2" are both "(h+1)".
class Dim {
public:
    Dim(std::int64_t size = 0) : size_(size) {}
    static Dim symbolic(std::string name, std::int64_t min = 1, std::int64_t max = INT64_MAX);

    bool is_symbolic() const { return symbol_ != nullptr; }
    /// The extent; only of a concrete one.
    std::int64_t size() const {
        assert(!is_symbolic());
        return size_;
    }
    const Symbol& symbol() const { return *symbol_; }
    /// The extent, or a symbol's least value.
    std::int64_t min_size() const { return symbol_ ? symbol_->min : size_; }
    /// The extent, or a symbol's largest value.
    std::int64_t max_size() const { return symbol_ ? symbol_->max : size_; }
    std::string str() const { return symbol_ ? symbol_->name : std::to_string(size_); }

    bool operator==(const Dim& other) const {
        if (is_symbolic() != other.is_symbolic()) return false;
        return is_symbolic() ? symbol_->name == other.symbol_->name : size_ == other.size_;
    }
    bool is(std::int64_t size) const { return !is_symbolic() && size_ == size; }

private:
    std::int64_t size_;
    std::shared_ptr<const Symbol> symbol_;
};

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

/// Product of extents as a canonical (number, sorted symbols that are no products) pair: equal for shapes
/// that hold the same number of elements whatever the symbols' values are.
struct ElementCount {
    std::int64_t number = 1;
    std::vector<std::string> symbols;
    bool operator==(const ElementCount&) const = default;
};
ElementCount count_elements(const Shape& shape);

/// The extents' product as one extent. Equal products have equal names; what exceeds 64 bits becomes the
/// largest integer, which no shape may have.
Dim product(const Shape& extents);

/// The type as bytes see it at run time: what reference kernels and packed kernels read.
struct ConstView {
    DType dtype = DType::f32;
    std::span<const std::int64_t> shape;
    const std::byte* data = nullptr;  ///< null: the optional operand is absent
    BlockFormat format = BlockFormat::plain;

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
