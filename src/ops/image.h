#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/tensor_type.h"
#include "ops/strided.h"

/// What ops on images share.
namespace headrace::ops {

/// Order of the dimensions of a batch of images: batch n, channels c, height h, width w.
enum class ImageLayout : std::uint8_t { nchw, nhwc };
constexpr auto enum_names(ImageLayout) { return std::array<std::string_view, 2>{"nchw", "nhwc"}; }

/// Which dimensions are n, c, h and w.
constexpr std::array<int, 4> image_axes(ImageLayout layout) {
    if (layout == ImageLayout::nchw) return {0, 1, 2, 3};
    return {0, 3, 1, 2};
}

/// Sizes and element strides of a 4-D tensor in a canonical order of its dimensions, whatever its layout.
struct Axes {
    std::array<std::int64_t, 4> size, stride;

    Axes(Sizes shape, std::array<int, 4> position) {
        const auto dense = dense_strides(shape);
        for (std::size_t i = 0; i < 4; ++i) {
            size[i] = shape[position[i]];
            stride[i] = dense[position[i]];
        }
    }
};

/// An attribute with a fixed number of values, none below `least` nor so large that positions could overflow.
inline Status check_values(std::string_view attribute, const std::vector<std::int64_t>& values,
                           std::size_t count, std::int64_t least) {
    if (values.size() != count)
        return invalid("{} must have {} values, got {}", attribute, count, str(values));
    for (std::int64_t v : values)
        if (v < least || v > INT32_MAX)
            return invalid("{} must be from {} to {}, got {}", attribute, least, INT32_MAX, str(values));
    return success();
}

}  // namespace headrace::ops
