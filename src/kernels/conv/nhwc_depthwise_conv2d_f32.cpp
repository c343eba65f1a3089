#include <algorithm>

#include "kernels/conv/nhwc_conv2d_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_depthwise_conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nhwc_epilogue-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Neighbouring pixels whose windows overlap, computed at a time.
inline constexpr size_t kPixelsAtOnce = 4;

// Windows side by side in a row of output, all of whose columns lie in the image.
struct Windows {
    const float* x;  // the first one's first column, in the first row of taps that lies in the image
    const float* w;  // of that row of taps
    size_t rows;     // of taps that lie in the image
    size_t row_step, column_step;  // distances in x
    size_t channels;               // distance of pixels in w, y and residual
};

// kPixels windows for a vector of channels from c on. With kDense, columns are neighbours and a step of
// kStride apart, so that each is read once for all windows that share it.
template <size_t kWidth, size_t kStride, class Load>
HWY_INLINE void sum_windows(const Windows& t, Load load, TileVec (&sum)[kPixelsAtOnce]) {
    constexpr size_t kColumns = (kPixelsAtOnce - 1) * kStride + kWidth;
    for (size_t ky = 0; ky < t.rows; ++ky) {
        const float* x = t.x + ky * t.row_step;
        const float* w = t.w + ky * kWidth * t.channels;
        TileVec weight[kWidth];
        HWY_UNROLL(8)
        for (size_t kx = 0; kx < kWidth; ++kx) weight[kx] = load(w + kx * t.channels);
        HWY_UNROLL(16)
        for (size_t column = 0; column < kColumns; ++column) {
            const TileVec v = load(x + column * t.column_step);
            HWY_UNROLL(4)
            for (size_t p = 0; p < kPixelsAtOnce; ++p)
                if (column >= p * kStride && column < p * kStride + kWidth)
                    sum[p] = hn::MulAdd(v, weight[column - p * kStride], sum[p]);
        }
    }
}

class DepthwiseRow {
public:
    DepthwiseRow(const Conv2dArgs& g, size_t row)
        : g_(g),
          image_(g.x + row / g.out_h * g.in_h * g.in_w * g.in_channels),
          top_(static_cast<ptrdiff_t>(row % g.out_h * g.stride_h) - g.pad_top),
          rows_(inside(top_, g.kernel_h, g.dilation_h, g.in_h)),
          y_(row * g.out_w * g.out_channels),
          epilogue_(g, 0) {}

    void run() const {
        size_t x = 0;
        while (x < g_.out_w) {
            if (x + kPixelsAtOnce <= g_.out_w && are_dense(x)) {
                neighbors(x);
                x += kPixelsAtOnce;
            } else {
                pixel(x++);
            }
        }
        NhwcEpilogue::finish_rest(g_, g_.out_w, g_.out_channels, y_);
    }

private:
    struct Taps {
        size_t first, count;
    };
    // The taps that lie in the image when the first is at `start`.
    static Taps inside(ptrdiff_t start, size_t taps, size_t dilation, size_t size) {
        const auto step = static_cast<ptrdiff_t>(dilation), end = static_cast<ptrdiff_t>(size);
        const ptrdiff_t before =
            start < 0 ? std::min((-start + step - 1) / step, static_cast<ptrdiff_t>(taps)) : 0;
        const ptrdiff_t reached = start < end ? (end - start + step - 1) / step : 0;
        const ptrdiff_t count = std::min(reached, static_cast<ptrdiff_t>(taps)) - before;
        return {static_cast<size_t>(before), static_cast<size_t>(std::max<ptrdiff_t>(count, 0))};
    }
    ptrdiff_t left(size_t x) const { return static_cast<ptrdiff_t>(x * g_.stride_w) - g_.pad_left; }
    bool are_dense(size_t x) const {
        const auto last = static_cast<size_t>(left(x + kPixelsAtOnce - 1)) + g_.kernel_w;
        return g_.dilation_w == 1 && (g_.kernel_w == 3 || g_.kernel_w == 5) && g_.stride_w <= 2 &&
               left(x) >= 0 && last <= g_.in_w;
    }
    Windows windows(ptrdiff_t column, size_t tap) const {
        const ptrdiff_t row = top_ + static_cast<ptrdiff_t>(rows_.first * g_.dilation_h);
        return {.x = image_ + (row * static_cast<ptrdiff_t>(g_.in_w) + column) *
                                  static_cast<ptrdiff_t>(g_.in_channels),
                .w = g_.w + (rows_.first * g_.kernel_w + tap) * g_.out_channels,
                .rows = rows_.count,
                .row_step = g_.dilation_h * g_.in_w * g_.in_channels,
                .column_step = g_.dilation_w * g_.in_channels,
                .channels = g_.out_channels};
    }

    // Calls fn(c, load, store) for each vector of channels.
    template <class Fn>
    HWY_INLINE void for_each_vector(Fn fn) const {
        const TileTag d;
        size_t c = 0;
        for (; c + kLanes <= g_.out_channels; c += kLanes)
            fn(
                c, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + c); },
                [&](TileVec v, float* p) HWY_ATTR { hn::StoreU(v, d, p + c); });
        if (const size_t rest = g_.out_channels - c)
            fn(
                c, [&](const float* p) HWY_ATTR { return load_first(d, p + c, rest); },
                [&](TileVec v, float* p) HWY_ATTR { store_first(v, d, p + c, rest); });
    }

    template <class Load>
    HWY_INLINE TileVec start(Load load) const {
        return g_.bias ? load(g_.bias) : hn::Zero(TileTag());
    }
    // For the pixel whose first channel is y[at].
    template <class Load, class Store>
    HWY_INLINE void finish_pixel(TileVec sum, size_t at, Load load, Store store) const {
        store(epilogue_.apply(sum, [&](const float* residual) HWY_ATTR { return load(residual + at); }),
              g_.y + at);
    }

    void pixel(size_t x) const {
        const Taps columns = inside(left(x), g_.kernel_w, g_.dilation_w, g_.in_w);
        const Windows t =
            windows(left(x) + static_cast<ptrdiff_t>(columns.first * g_.dilation_w), columns.first);
        const size_t at = y_ + x * g_.out_channels;
        for_each_vector([&](size_t, auto load, auto store) HWY_ATTR {
            TileVec sum = start(load);
            for (size_t ky = 0; ky < t.rows; ++ky)
                for (size_t kx = 0; kx < columns.count; ++kx)
                    sum = hn::MulAdd(load(t.x + ky * t.row_step + kx * t.column_step),
                                     load(t.w + (ky * g_.kernel_w + kx) * t.channels), sum);
            finish_pixel(sum, at, load, store);
        });
    }

    void neighbors(size_t x) const {
        if (g_.kernel_w == 3)
            g_.stride_w == 1 ? neighbors_of<3, 1>(x) : neighbors_of<3, 2>(x);
        else
            g_.stride_w == 1 ? neighbors_of<5, 1>(x) : neighbors_of<5, 2>(x);
    }
    template <size_t kWidth, size_t kStride>
    void neighbors_of(size_t x) const {
        const Windows t = windows(left(x), 0);
        const size_t at = y_ + x * g_.out_channels;
        for_each_vector([&](size_t, auto load, auto store) HWY_ATTR {
            TileVec sum[kPixelsAtOnce];
            for (TileVec& s : sum) s = start(load);
            sum_windows<kWidth, kStride>(t, load, sum);
            HWY_UNROLL(4)
            for (size_t p = 0; p < kPixelsAtOnce; ++p)
                finish_pixel(sum[p], at + p * g_.out_channels, load, store);
        });
    }

    const Conv2dArgs& g_;
    const float* image_;
    ptrdiff_t top_;
    Taps rows_;
    size_t y_;
    NhwcEpilogue epilogue_;
};

}  // namespace

void nhwc_depthwise(const Conv2dArgs& g, int ith, int nth) {
    const size_t rows = g.batch * g.out_h;
    for (size_t row = rows * ith / nth; row < rows * (ith + 1) / nth; ++row) DepthwiseRow(g, row).run();
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(nhwc_depthwise);

void nhwc_depthwise_conv2d_f32(const Conv2dArgs& args, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(nhwc_depthwise)(args, ith, nth);
}

}  // namespace headrace::kernels
#endif
