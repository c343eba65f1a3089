// A convolution with random operands, held against sums in double, for every kernel that computes it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/conv2d_f32.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"
#include "kernels/packed_conv2d_f32.h"

namespace headrace::kernels::testing {

struct ConvShape {
    size_t batch = 1, in_channels = 1, in_h = 1, in_w = 1, out_channels = 1, groups = 1, kernel_h = 1,
           kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

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

class PackedFilters {
public:
    explicit PackedFilters(const Conv2dArgs& g) {
        const size_t k = g.in_channels / g.groups * g.kernel_h * g.kernel_w;
        const size_t bytes = packed_filters_size(g.out_channels, g.groups, k) * sizeof(float);
        data_.reset(static_cast<float*>(
            std::aligned_alloc(kPackedAlignment, (bytes / kPackedAlignment + 1) * kPackedAlignment)));
        pack_filters(g.w, g.out_channels, g.groups, k, data_.get());
    }
    const float* data() const { return data_.get(); }

private:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float, Free> data_;
};

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
    Guarded guarded_x(x, side), plain_y(std::vector<float>(count, NAN), side),
        packed_y(std::vector<float>(count, NAN), side);
    g.x = guarded_x.data(), g.w = w.data(), g.y = plain_y.data();
    if (bias) g.bias = biases.data();
    if (residual != Residual::none) g.residual = residuals.data();
    g.residual_first = residual == Residual::first;
    g.activation = activation, g.clamp_min = -0.5f, g.clamp_max = 0.5f;
    for (int ith = 0; ith < nth; ++ith) conv2d_f32(g, ith, nth);
    const PackedFilters filters(g);
    g.w = nullptr, g.y = packed_y.data();
    for (int ith = 0; ith < nth; ++ith) packed_conv2d_f32(g, filters.data(), ith, nth);
    g.w = w.data();

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
                    const double tolerance = 1e-5 * (1 + std::abs(expected));
                    ASSERT_NEAR(plain_y.data()[at], expected, tolerance)
                        << image << ", " << out << ", " << oy << ", " << ox;
                    ASSERT_NEAR(packed_y.data()[at], expected, tolerance)
                        << "packed: " << image << ", " << out << ", " << oy << ", " << ox;
                }
            }
        }
    }
}

}  // namespace headrace::kernels::testing
