#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace {

/// How a device multiplies matrices of f32 without rounding them first. Many devices' products do that: they
/// hold f32 as f16 while they multiply, or in the 19 bits of TF32.
enum class ProductForm : std::uint8_t {
    mat_mul,        ///< ggml's product, where that is exact
    convolution,    ///< a convolution with a filter of one pixel, where that is exact; batches as outer
                    ///< products
    outer_products  ///< sums of outer products
};

/// The form by the rows of the first factor, as devices have several kernels: vectors, few rows, more, many.
class ProductForms {
public:
    /// The most rows of each kind; the last kind has all that are more.
    static constexpr std::array<std::int64_t, 5> kMostRows{1, 3, 8, 16, 32};

    ProductForm& of_kind(std::size_t kind) { return forms_[kind]; }
    /// Devices take batches of a few rows as they take many rows, or as single products of so many.
    ProductForm of(std::int64_t rows, bool is_batch) const {
        if (is_batch && rows > 1 && forms_.back() != ProductForm::mat_mul) return forms_.back();
        std::size_t kind = 0;
        while (kind + 1 < forms_.size() && rows > kMostRows[kind]) ++kind;
        return forms_[kind];
    }
    bool operator==(const ProductForms&) const = default;

private:
    std::array<ProductForm, kMostRows.size()> forms_{};  // mat_mul
};

}  // namespace headrace
