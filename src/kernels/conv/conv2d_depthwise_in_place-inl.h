// Depthwise convolution with the small square windows of mobile networks, whose input is read where it lies.
// Included once per SIMD target, by conv2d_f32.cpp.
#if defined(HEADRACE_KERNELS_CONV2D_DEPTHWISE_IN_PLACE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_CONV2D_DEPTHWISE_IN_PLACE_INL_H_
#undef HEADRACE_KERNELS_CONV2D_DEPTHWISE_IN_PLACE_INL_H_
#else
#define HEADRACE_KERNELS_CONV2D_DEPTHWISE_IN_PLACE_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_f32.h"
#include "kernels/conv/conv2d_limits-inl.h"
#include "kernels/conv/image_taps-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of output at a time, so that the input of a wide image stays in the L1 cache from one column of
// vectors to the next.
inline constexpr size_t kInPlaceRows = 16;

// Rows [row, row_end) of one output channel of one image.
struct PlaneRows {
    const float* x;  // the whole channels, of input and output
    float* y;
    const float* w;
    float bias;
    size_t row, row_end;
    size_t offset;  // of `row` from the start of the output
};

// Deals out the rows of all output channels, at most so many at a time, and calls fn(PlaneRows).
template <class Fn>
HWY_INLINE void for_each_plane(const Conv2dArgs& g, size_t most_rows, int ith, int nth, Fn fn) {
    const size_t pixels = g.out_h * g.out_w, planes = g.batch * g.out_channels,
                 taps = g.kernel_h * g.kernel_w, per_input = g.out_channels / g.groups;
    if (pixels == 0 || planes == 0) return;
    // More strips than memory asks for where there are too few planes to keep every thread busy.
    const size_t wanted = planes < 4 * static_cast<size_t>(nth) ? 4 * static_cast<size_t>(nth) / planes : 1;
    const size_t per_strip = std::min(most_rows, divide_up(g.out_h, wanted));
    const size_t strips = divide_up(g.out_h, per_strip);
    size_t unit = planes * strips * ith / nth;
    const size_t end = planes * strips * (ith + 1) / nth;
    // Divisions here would take as long as a small plane.
    size_t plane = unit / strips, strip = unit % strips, out = plane % g.out_channels;
    for (; unit < end; ++unit) {
        const size_t row = strips == 1 ? 0 : strip * g.out_h / strips;
        const size_t row_end = strips == 1 ? g.out_h : (strip + 1) * g.out_h / strips;
        // Groups have one input channel each.
        const size_t in = per_input == 1 ? plane : plane / per_input;
        fn(PlaneRows{.x = g.x + in * g.in_h * g.in_w,
                     .y = g.y + plane * pixels,
                     .w = g.w + out * taps,
                     .bias = g.bias ? g.bias[out] : 0.0f,
                     .row = row,
                     .row_end = row_end,
                     .offset = plane * pixels + row * g.out_w});
        if (++strip < strips) continue;
        strip = 0, ++plane;
        if (++out == g.out_channels) out = 0;
    }
}

// What is left to do for sums that did not leave the registers finished.
inline void finish_rows(const Conv2dArgs& g, const PlaneRows& rows) {
    const Finish part{.activation = g.activation,
                      .clamp_min = g.clamp_min,
                      .clamp_max = g.clamp_max,
                      .residual = g.residual ? g.residual + rows.offset : nullptr,
                      .residual_first = g.residual_first};
    if (part.needed()) finish(part, 1, (rows.row_end - rows.row) * g.out_w, g.y + rows.offset, 0);
}

// kRows vectors of output, one below the other, from (row, x) on. Each row of input is read once for all.
template <size_t kTaps, size_t kStride, size_t kRows>
HWY_INLINE void in_place_block(const Conv2dArgs& g, const PlaneRows& plane, const Limits& limits,
                               const ImageTaps<kTaps, kStride>& taps, const TileVec (&weight)[kTaps * kTaps],
                               size_t row, size_t x) {
    const TileTag d;
    TileVec sum[kRows];
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) sum[r] = hn::Set(d, plane.bias);
    const ptrdiff_t first = static_cast<ptrdiff_t>(row * kStride) - g.pad_top;
    HWY_UNROLL(16)
    for (size_t i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
        const ptrdiff_t in_row = first + static_cast<ptrdiff_t>(i);
        if (in_row < 0 || in_row >= static_cast<ptrdiff_t>(g.in_h)) continue;
        TileVec tap[kTaps];
        taps.load(plane.x + in_row * static_cast<ptrdiff_t>(g.in_w), hn::Zero(d), tap);
        HWY_UNROLL(4)
        for (size_t r = 0; r < kRows; ++r) {
            if (i < r * kStride || i >= r * kStride + kTaps) continue;
            HWY_UNROLL(8)
            for (size_t k = 0; k < kTaps; ++k)
                sum[r] = hn::MulAdd(weight[(i - r * kStride) * kTaps + k], tap[k], sum[r]);
        }
    }
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
        const TileVec y = limits(sum[r]);
        float* to = plane.y + (row + r) * g.out_w + x;
        if (x + kLanes <= g.out_w)
            hn::StoreU(y, d, to);
        else
            store_first(y, d, to, g.out_w - x);
    }
}

// One column of vectors.
template <size_t kTaps, size_t kStride>
HWY_INLINE void in_place_column(const Conv2dArgs& g, const PlaneRows& plane, const Limits& limits,
                                const ImageTaps<kTaps, kStride>& taps, const TileVec (&weight)[kTaps * kTaps],
                                size_t x) {
    size_t row = plane.row;
    for (; row + 4 <= plane.row_end; row += 4)
        in_place_block<kTaps, kStride, 4>(g, plane, limits, taps, weight, row, x);
    for (; row + 2 <= plane.row_end; row += 2)
        in_place_block<kTaps, kStride, 2>(g, plane, limits, taps, weight, row, x);
    if (row < plane.row_end) in_place_block<kTaps, kStride, 1>(g, plane, limits, taps, weight, row, x);
}

template <size_t kTaps, size_t kStride>
HWY_NOINLINE void in_place_planes(const Conv2dArgs& g, int ith, int nth) {
    const TileTag d;
    const Limits limits(g);
    const ImageTaps<kTaps, kStride> first(0, g.pad_left, g.in_w);
    for_each_plane(g, kInPlaceRows, ith, nth, [&](const PlaneRows& plane) HWY_ATTR {
        TileVec weight[kTaps * kTaps];
        for (size_t i = 0; i < kTaps * kTaps; ++i) weight[i] = hn::Set(d, plane.w[i]);
        in_place_column(g, plane, limits, first, weight, 0);
        for (size_t x = kLanes; x < g.out_w; x += kLanes)
            in_place_column(g, plane, limits, ImageTaps<kTaps, kStride>(x, g.pad_left, g.in_w), weight, x);
        if (!finishes_in_registers(g)) finish_rows(g, plane);
    });
}

// Planes whose rows are shorter than a vector, as lists: with a step of 1 and an output as large as the
// input, an element and what it meets are equally far apart everywhere. The lanes for which that lies beyond
// the image are the same in every plane.
template <size_t kTaps>
class FlatPlanes {
public:
    static constexpr size_t kMostVecs = 16;

    explicit FlatPlanes(const Conv2dArgs& g) : pixels_(g.in_h * g.in_w), vecs_(divide_up(pixels_, kLanes)) {
        const TileTag d;
        const auto height = static_cast<ptrdiff_t>(g.in_h), width = static_cast<ptrdiff_t>(g.in_w);
        for (size_t i = 0; i < kTaps * kTaps; ++i) {
            const ptrdiff_t down = static_cast<ptrdiff_t>(i / kTaps) - g.pad_top,
                            right = static_cast<ptrdiff_t>(i % kTaps) - g.pad_left;
            shift_[i] = down * width + right;
            ptrdiff_t y = down, x = right;
            for (size_t v = 0; v < vecs_; ++v) {
                HWY_ALIGN float is_inside[kLanes];
                for (size_t lane = 0; lane < kLanes; ++lane) {
                    is_inside[lane] = y >= 0 && y < height && x >= 0 && x < width;
                    if (++x == width + right) x = right, ++y;
                }
                inside_[v][i] = hn::Gt(hn::Load(d, is_inside), hn::Zero(d));
            }
        }
    }

    HWY_INLINE void run(const PlaneRows& plane, const Limits& limits) const {
        const TileTag d;
        TileVec weight[kTaps * kTaps];
        for (size_t i = 0; i < kTaps * kTaps; ++i) weight[i] = hn::Set(d, plane.w[i]);
        for (size_t v = 0; v < vecs_; ++v) {
            TileVec sum = hn::Set(d, plane.bias);
            HWY_UNROLL(25)
            for (size_t i = 0; i < kTaps * kTaps; ++i)
                sum = hn::MulAdd(weight[i],
                                 hn::MaskedLoad(inside_[v][i], d, plane.x + v * kLanes + shift_[i]), sum);
            store_first(limits(sum), d, plane.y + v * kLanes, std::min(kLanes, pixels_ - v * kLanes));
        }
    }

private:
    size_t pixels_, vecs_;
    ptrdiff_t shift_[kTaps * kTaps];
    hn::Mask<TileTag> inside_[kMostVecs][kTaps * kTaps];
};

template <size_t kTaps>
HWY_NOINLINE void flat_planes(const Conv2dArgs& g, int ith, int nth) {
    const Limits limits(g);
    const FlatPlanes<kTaps> flat(g);
    for_each_plane(g, g.out_h, ith, nth, [&](const PlaneRows& plane) HWY_ATTR {
        flat.run(plane, limits);
        if (!finishes_in_registers(g)) finish_rows(g, plane);
    });
}

// Only masked loads of the machine's own touch nothing where the mask is off. Planes are not split.
inline bool is_flat(const Conv2dArgs& g, int nth) {
    constexpr bool kHasMaskedLoads = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;
    return kHasMaskedLoads && g.stride_w == 1 && g.out_h == g.in_h && g.out_w == g.in_w && g.out_w < kLanes &&
           g.out_h * g.out_w <= FlatPlanes<3>::kMostVecs * kLanes &&
           g.batch * g.out_channels >= 4 * static_cast<size_t>(nth);
}

using InPlaceFn = void (*)(const Conv2dArgs&, int ith, int nth);

// The function for these windows, or null.
inline InPlaceFn find_in_place(const Conv2dArgs& g, int nth) {
    const bool is_square = g.kernel_h == g.kernel_w && g.stride_h == g.stride_w;
    if (!kHasTaps || !is_square || g.dilation_h != 1 || g.dilation_w != 1) return nullptr;
    if (g.kernel_w == 3 && is_flat(g, nth)) return &flat_planes<3>;
    if (g.kernel_w == 5 && is_flat(g, nth)) return &flat_planes<5>;
    if (g.kernel_w == 3 && g.stride_w == 1) return &in_place_planes<3, 1>;
    if (g.kernel_w == 3 && g.stride_w == 2) return &in_place_planes<3, 2>;
    if (g.kernel_w == 5 && g.stride_w == 1) return &in_place_planes<5, 1>;
    if (g.kernel_w == 5 && g.stride_w == 2) return &in_place_planes<5, 2>;
    return nullptr;
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_CONV2D_DEPTHWISE_IN_PLACE_INL_H_
