#include "kernels/conv/nhwc_bf16_conv2d.h"

#include <algorithm>

#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_bf16_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

// Rounds what the window at one pixel of the output meets, as a row of the matrix that filters are multiplied
// with.
class WindowRows {
public:
    WindowRows(const Conv2dArgs& g, size_t group)
        : g_(g),
          channels_(g.in_channels / g.groups),
          x_(g.x + group * channels_),
          is_pointwise_(is_pointwise(g)),
          rows_are_dense_(g.groups == 1 && g.dilation_w == 1) {}

    // Elements [first, end) of row `pixel`, counted over all images.
    void round(size_t pixel, size_t first, size_t end, uint16_t* to) const {
        if (is_pointwise_) return round_elements(x_ + pixel * g_.in_channels + first, end - first, to);
        const size_t out_row = pixel / g_.out_w, out_x = pixel % g_.out_w;
        const size_t image = out_row / g_.out_h, out_y = out_row % g_.out_h;
        const ptrdiff_t y = static_cast<ptrdiff_t>(out_y * g_.stride_h) - g_.pad_top;
        const ptrdiff_t x = static_cast<ptrdiff_t>(out_x * g_.stride_w) - g_.pad_left;
        const auto in_w = static_cast<ptrdiff_t>(g_.in_w);
        // Taps that are neighbours in the image are so in the row, too.
        const bool is_inside = x >= 0 && x + static_cast<ptrdiff_t>(g_.kernel_w) <= in_w;
        const size_t taps = rows_are_dense_ && is_inside ? g_.kernel_w : 1, length = taps * channels_;
        size_t skip = first % length, ky = first / length * taps / g_.kernel_w,
               kx = first / length * taps % g_.kernel_w;
        while (first < end) {
            const size_t count = std::min(length - skip, end - first);
            const ptrdiff_t row = y + static_cast<ptrdiff_t>(ky * g_.dilation_h);
            const ptrdiff_t column = x + static_cast<ptrdiff_t>(kx * g_.dilation_w);
            if (row < 0 || row >= static_cast<ptrdiff_t>(g_.in_h) || column < 0 || column >= in_w) {
                clear(count, to);
            } else {
                const size_t place =
                    (image * g_.in_h + static_cast<size_t>(row)) * g_.in_w + static_cast<size_t>(column);
                round_elements(x_ + place * g_.in_channels + skip, count, to);
            }
            first += count, to += count, skip = 0, kx += taps;
            if (kx == g_.kernel_w) kx = 0, ++ky;
        }
    }

private:
    static void clear(size_t count, uint16_t* to) {
        const hn::Repartition<uint16_t, TileTag> d;
        for (size_t i = 0; i < count; i += kRoundedLanes) hn::StoreU(hn::Zero(d), d, to + i);
    }

    const Conv2dArgs& g_;
    size_t channels_;
    const float* x_;
    bool is_pointwise_, rows_are_dense_;
};

// The product that computes one group.
GemmArgs group_product(const Conv2dArgs& g, size_t group) {
    GemmArgs product;
    product.m = g.batch * g.out_h * g.out_w, product.n = g.out_channels / g.groups;
    product.k = divide_up(g.in_channels / g.groups * g.kernel_h * g.kernel_w, 2);
    product.c = g.y + group * product.n, product.ldc = static_cast<ptrdiff_t>(g.out_channels);
    if (g.bias) product.bias = g.bias + group * product.n;
    return product;
}

}  // namespace

void bf16_conv2d(const Conv2dArgs& g, const uint16_t* packed, int ith, int nth) {
    const size_t depth = g.in_channels / g.groups * g.kernel_h * g.kernel_w;
    const GemmArgs all = group_product(g, 0);
    for_each_rect(g.groups, all.m, all.n, tile_rows(kTileVecs), ith, nth, [&](const Rect& rect) {
        const WindowRows windows(g, rect.batch);
        const Finish finish{.activation = g.activation,
                            .clamp_min = g.clamp_min,
                            .clamp_max = g.clamp_max,
                            .residual = g.residual ? g.residual + rect.batch * all.n : nullptr,
                            .residual_first = g.residual_first,
                            .ldr = static_cast<ptrdiff_t>(g.out_channels)};
        const size_t group_bytes = packed_bf16_bytes(depth, all.n);
        multiply_rounded(group_product(g, rect.batch), finish, depth,
                         packed + rect.batch * group_bytes / sizeof(*packed), rect,
                         [&](size_t pixel, size_t first, size_t end, uint16_t* to) {
                             windows.round(pixel, first, end, to);
                         });
    });
}

#else

void bf16_conv2d(const Conv2dArgs&, const uint16_t*, int, int) {}

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(bf16_conv2d);

size_t packed_bf16_filter_bytes(size_t out_channels, size_t groups, size_t k) {
    return groups * packed_bf16_bytes(k, out_channels / groups);
}

void pack_bf16_filters(const float* w, size_t out_channels, size_t groups, size_t k, uint16_t* packed) {
    const size_t n = out_channels / groups;
    for (size_t group = 0; group < groups; ++group)
        pack_as_bf16(w + group * n * k, 1, static_cast<ptrdiff_t>(k), k, n,
                     packed + group * packed_bf16_bytes(k, n) / sizeof(*packed));
}

void nhwc_bf16_conv2d(const Conv2dArgs& args, const uint16_t* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(bf16_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
