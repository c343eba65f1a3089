// A convolution with random operands, held against sums in double, for every kernel that computes it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/conv/conv2d_f32.h"
#include "kernels/conv/nhwc_conv2d_f32.h"
#include "kernels/conv/nhwc_winograd_conv2d_f32.h"
#include "kernels/conv/packed_conv2d_f32.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels::testing {

struct ConvShape {
    size_t batch = 1, in_channels = 1, in_h = 1, in_w = 1, out_channels = 1, groups = 1, kernel_h = 1,
           kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

// With windows of 3 x 3, and a margin that keeps the image's size.
inline ConvShape with_3x3(ConvShape shape) {
    shape.kernel_h = shape.kernel_w = 3;
    shape.pad_top = shape.pad_left = shape.pad_bottom = shape.pad_right = 1;
    return shape;
}

inline size_t out_extent(size_t in, ptrdiff_t pads, size_t kernel, size_t stride, size_t dilation) {
    return (static_cast<size_t>(static_cast<ptrdiff_t>(in) + pads) - ((kernel - 1) * dilation + 1)) / stride +
           1;
}

inline double exact_convolution(const Conv2dArgs& g, size_t image, size_t out, size_t oy, size_t ox) {
    const size_t group_in = g.in_channels / g.groups, group = out / (g.out_channels / g.groups);
    double sum = g.bias ? g.bias[out] : 0;
    for (size_t i = 0; i < group_in; ++i) {
        for (size_t ky = 0; ky < g.kernel_h; ++ky) {
            for (size_t kx = 0; kx < g.kernel_w; ++kx) {
                const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g.stride_h + ky * g.dilation_h) - g.pad_top;
                const ptrdiff_t x = static_cast<ptrdiff_t>(ox * g.stride_w + kx * g.dilation_w) - g.pad_left;
                if (y < 0 || x < 0 || y >= static_cast<ptrdiff_t>(g.in_h) ||
                    x >= static_cast<ptrdiff_t>(g.in_w))
                    continue;
                const size_t channel = image * g.in_channels + group * group_in + i;
                sum += double(g.x[(channel * g.in_h + y) * g.in_w + x]) *
                       g.w[((out * group_in + i) * g.kernel_h + ky) * g.kernel_w + kx];
            }
        }
    }
    return sum;
}

enum class Residual { none, last, first };

// [batch][channels][pixels] as [batch][pixels][channels].
inline std::vector<float> channels_last(const float* x, size_t batch, size_t channels, size_t pixels) {
    std::vector<float> last(batch * channels * pixels);
    for (size_t b = 0; b < batch; ++b)
        for (size_t c = 0; c < channels; ++c)
            for (size_t p = 0; p < pixels; ++p)
                last[(b * pixels + p) * channels + c] = x[(b * channels + c) * pixels + p];
    return last;
}

class PackedFilters {
public:
    explicit PackedFilters(size_t size)
        : data_(static_cast<float*>(std::aligned_alloc(
              kPackedAlignment, (size * sizeof(float) / kPackedAlignment + 1) * kPackedAlignment))) {}
    explicit PackedFilters(const Conv2dArgs& g)
        : PackedFilters(packed_filters_size(g.out_channels, g.groups, depth(g))) {
        pack_filters(g.w, g.out_channels, g.groups, depth(g), data());
    }
    float* data() const { return data_.get(); }

private:
    static size_t depth(const Conv2dArgs& g) { return g.in_channels / g.groups * g.kernel_h * g.kernel_w; }
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float, Free> data_;
};

// Filters of 3 × 3, [out][in][9] as [9][in][out].
inline std::vector<float> taps_first(const float* w, size_t out_channels, size_t in_channels) {
    const std::vector<float> by_element = channels_last(w, 1, out_channels, in_channels * 9);
    std::vector<float> first(by_element.size());
    for (size_t in = 0; in < in_channels; ++in)
        for (size_t tap = 0; tap < 9; ++tap)
            std::copy_n(&by_element[(in * 9 + tap) * out_channels], out_channels,
                        &first[(tap * in_channels + in) * out_channels]);
    return first;
}

enum class NhwcKernel { windows, winograd };

inline bool can_winograd(const Conv2dArgs& g) {
    return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
           g.dilation_w == 1;
}

// What a kernel for channels last makes of g, with its channels brought last and the result's first again.
inline std::vector<float> nhwc_result(const Conv2dArgs& first, NhwcKernel kernel, int nth,
                                      Guarded::Side side) {
    Conv2dArgs g = first;
    const size_t in_pixels = g.in_h * g.in_w, pixels = g.out_h * g.out_w, depth = g.in_channels / g.groups;
    Guarded x(channels_last(first.x, g.batch, g.in_channels, in_pixels), side);
    // [out][depth][taps] as [out][taps][depth], or where each channel is a group as [taps][out].
    const bool is_depthwise = g.groups == g.in_channels && g.groups == g.out_channels;
    const std::vector<float> w = is_depthwise
                                     ? channels_last(first.w, 1, g.out_channels, g.kernel_h * g.kernel_w)
                                     : channels_last(first.w, g.out_channels, depth, g.kernel_h * g.kernel_w);
    std::vector<float> residual;
    if (first.residual) residual = channels_last(first.residual, g.batch, g.out_channels, pixels);
    Guarded y(std::vector<float>(g.batch * g.out_channels * pixels, NAN), side);
    g.x = x.data(), g.w = w.data(), g.y = y.data(), g.residual = first.residual ? residual.data() : nullptr;
    const PackedFilters filters(g),
        products(kernel == NhwcKernel::winograd
                     ? packed_winograd_filters_size(depth, g.out_channels, g.groups)
                     : 0);
    if (kernel == NhwcKernel::winograd)
        pack_winograd_filters(taps_first(first.w, g.out_channels, depth).data(), depth, g.out_channels,
                              g.groups, products.data());
    if (!is_depthwise) g.w = nullptr;
    for (int ith = 0; ith < nth; ++ith) {
        if (kernel == NhwcKernel::winograd)
            nhwc_winograd_conv2d_f32(g, products.data(), ith, nth);
        else if (is_depthwise)
            nhwc_depthwise_conv2d_f32(g, ith, nth);
        else
            nhwc_conv2d_f32(g, filters.data(), ith, nth);
    }
    // Channels and pixels change places once more.
    return channels_last(y.data(), g.batch, pixels, g.out_channels);
}

// What packed_conv2d_f32 makes of g with its result's channels last, and those first again.
inline std::vector<float> packed_last_result(const Conv2dArgs& first, const PackedFilters& filters, int nth,
                                             Guarded::Side side) {
    Conv2dArgs g = first;
    const size_t pixels = g.out_h * g.out_w;
    std::vector<float> residual;
    if (first.residual) residual = channels_last(first.residual, g.batch, g.out_channels, pixels);
    Guarded y(std::vector<float>(g.batch * g.out_channels * pixels, NAN), side);
    g.y = y.data(), g.channels_last_y = true, g.residual = first.residual ? residual.data() : nullptr;
    for (int ith = 0; ith < nth; ++ith) packed_conv2d_f32(g, filters.data(), ith, nth);
    return channels_last(y.data(), g.batch, pixels, g.out_channels);
}

inline void expect_conv(const ConvShape& s, int nth, Activation activation = Activation::none,
                        bool bias = false, Residual residual = Residual::none) {
    SCOPED_TRACE(::testing::Message()
                 << "in " << s.batch << "x" << s.in_channels << "x" << s.in_h << "x" << s.in_w << " out "
                 << s.out_channels << " groups " << s.groups << " kernel " << s.kernel_h << "x" << s.kernel_w
                 << " stride " << s.stride_h << "x" << s.stride_w << " threads " << nth);
    Conv2dArgs g;
    g.batch = s.batch, g.in_channels = s.in_channels, g.in_h = s.in_h, g.in_w = s.in_w,
    g.out_channels = s.out_channels;
    g.groups = s.groups, g.kernel_h = s.kernel_h, g.kernel_w = s.kernel_w, g.stride_h = s.stride_h,
    g.stride_w = s.stride_w;
    g.dilation_h = s.dilation_h, g.dilation_w = s.dilation_w, g.pad_top = s.pad_top, g.pad_left = s.pad_left;
    g.out_h = out_extent(s.in_h, s.pad_top + s.pad_bottom, s.kernel_h, s.stride_h, s.dilation_h);
    g.out_w = out_extent(s.in_w, s.pad_left + s.pad_right, s.kernel_w, s.stride_w, s.dilation_w);
    const std::vector<float> x = random_floats(s.batch * s.in_channels * s.in_h * s.in_w, 1);
    const std::vector<float> w =
        random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w, 2);
    const std::vector<float> biases = random_floats(s.out_channels, 3);
    const size_t count = s.batch * s.out_channels * g.out_h * g.out_w;
    const std::vector<float> residuals = random_floats(count, 4);
    const auto side = nth % 2 ? Guarded::Side::front : Guarded::Side::back;
    Guarded guarded_x(x, side), guarded_bias(biases, side), guarded_residual(residuals, side),
        plain_y(std::vector<float>(count, NAN), side), packed_y(std::vector<float>(count, NAN), side);
    g.x = guarded_x.data(), g.w = w.data(), g.y = plain_y.data();
    if (bias) g.bias = guarded_bias.data();
    if (residual != Residual::none) g.residual = guarded_residual.data();
    g.residual_first = residual == Residual::first;
    g.activation = activation, g.clamp_min = -0.5f, g.clamp_max = 0.5f;
    for (int ith = 0; ith < nth; ++ith) conv2d_f32(g, ith, nth);
    const PackedFilters filters(g);
    g.w = nullptr, g.y = packed_y.data();
    for (int ith = 0; ith < nth; ++ith) packed_conv2d_f32(g, filters.data(), ith, nth);
    const std::vector<float> packed_last_y = packed_last_result(g, filters, nth, side);
    g.w = w.data();
    const std::vector<float> nhwc_y = nhwc_result(g, NhwcKernel::windows, nth, side);
    std::vector<float> winograd_y;
    if (can_winograd(g)) winograd_y = nhwc_result(g, NhwcKernel::winograd, nth, side);

    // The sum's rounding, which grows with the root of its length.
    const double length = static_cast<double>(s.in_channels / s.groups * s.kernel_h * s.kernel_w);
    const double rounding = 1e-5 * std::max(1.0, std::sqrt(length / 256));
    size_t at = 0;
    for (size_t image = 0; image < s.batch; ++image) {
        for (size_t out = 0; out < s.out_channels; ++out) {
            for (size_t oy = 0; oy < g.out_h; ++oy) {
                for (size_t ox = 0; ox < g.out_w; ++ox, ++at) {
                    double expected = exact_convolution(g, image, out, oy, ox);
                    if (residual == Residual::first) expected += residuals[at];
                    if (activation == Activation::relu) expected = std::max(expected, 0.0);
                    if (activation == Activation::clamp) expected = std::clamp(expected, -0.5, 0.5);
                    if (residual == Residual::last) expected += residuals[at];
                    const double tolerance = rounding * (1 + std::abs(expected));
                    ASSERT_NEAR(plain_y.data()[at], expected, tolerance)
                        << image << ", " << out << ", " << oy << ", " << ox;
                    ASSERT_NEAR(packed_y.data()[at], expected, tolerance)
                        << "packed: " << image << ", " << out << ", " << oy << ", " << ox;
                    ASSERT_NEAR(packed_last_y[at], expected, tolerance)
                        << "packed, result with channels last: " << image << ", " << out << ", " << oy << ", "
                        << ox;
                    ASSERT_NEAR(nhwc_y[at], expected, tolerance)
                        << "channels last: " << image << ", " << out << ", " << oy << ", " << ox;
                    if (winograd_y.empty()) continue;
                    ASSERT_NEAR(winograd_y[at], expected, 2 * tolerance)
                        << "winograd: " << image << ", " << out << ", " << oy << ", " << ox;
                }
            }
        }
    }
}

}  // namespace headrace::kernels::testing
