#pragma once
#include <cstdint>

namespace headrace {

/// How a device multiplies matrices of f32 without rounding them first. Many devices' products of more than a
/// few rows do that: they hold f32 as f16 while they multiply, or in the 19 bits of TF32.
enum class ProductForm : std::uint8_t {
    mat_mul,        ///< ggml's product, which is exact
    convolution,    ///< a convolution with a filter of one pixel, where that is exact; batches as outer
                    ///< products
    outer_products  ///< sums of outer products
};

}  // namespace headrace
