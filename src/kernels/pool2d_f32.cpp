#include "kernels/pool2d_f32.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/image_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

struct Largest {
    static constexpr float kStart = -std::numeric_limits<float>::infinity();
    // hn::Max would lose a NaN in one of its operands.
    template <class V>
    HWY_INLINE V operator()(V so_far, V x) const {
        return hn::IfThenElse(hn::Or(hn::Gt(x, so_far), hn::IsNaN(x)), x, so_far);
    }
};
struct Sum {
    static constexpr float kStart = 0;
    template <class V>
    HWY_INLINE V operator()(V so_far, V x) const {
        return hn::Add(so_far, x);
    }
};

// The rows or columns of the image in the window at `at`.
struct Span {
    ptrdiff_t first;
    size_t count;

    Span(size_t at, size_t stride, size_t dilation, size_t window, ptrdiff_t pad, size_t size) {
        const auto step = static_cast<ptrdiff_t>(dilation), end = static_cast<ptrdiff_t>(size);
        first = static_cast<ptrdiff_t>(at * stride) - pad;
        const ptrdiff_t before = first < 0 ? (-first + step - 1) / step : 0;
        const ptrdiff_t reached = first < end ? (end - first + step - 1) / step : 0;
        const ptrdiff_t inside = std::min(reached, static_cast<ptrdiff_t>(window)) - before;
        first += before * step;
        count = static_cast<size_t>(std::max<ptrdiff_t>(inside, 0));
    }
};
Span row_span(const Pool2dArgs& g, size_t y) {
    return {y, g.stride_h, g.dilation_h, g.window_h, g.pad_top, g.in_h};
}
Span column_span(const Pool2dArgs& g, size_t x) {
    return {x, g.stride_w, g.dilation_w, g.window_w, g.pad_left, g.in_w};
}

// Sums of windows with `rows` rows each become means.
void divide_row(size_t rows, const std::vector<float>& columns, float* y) {
    for (size_t x = 0; x < columns.size(); ++x) {
        const float count = static_cast<float>(rows) * columns[x];
        y[x] = count > 0 ? y[x] / count : 0.0f;
    }
}

// One row of output: kTaps × kTaps windows in steps of kStride.
template <size_t kTaps, size_t kStride, class Join>
HWY_INLINE void window_row(const Pool2dArgs& g, const ImageTaps<kTaps, kStride>& taps, const float* plane,
                           const Span& rows, size_t x, float* y, Join join) {
    const TileTag d;
    const TileVec start = hn::Set(d, Join::kStart);
    TileVec joined = start;
    for (size_t i = 0; i < rows.count; ++i) {
        TileVec tap[kTaps];
        taps.load(plane + (static_cast<size_t>(rows.first) + i) * g.in_w, start, tap);
        HWY_UNROLL(4)
        for (size_t k = 0; k < kTaps; ++k) joined = join(joined, tap[k]);
    }
    store_first(joined, d, y + x, std::min(kLanes, g.out_w - x));
}

// Channels first: a thread's rows of all planes, one after the other.
template <size_t kTaps, size_t kStride, class Join>
HWY_NOINLINE void pool_windows(const Pool2dArgs& g, int ith, int nth) {
    const ImageTaps<kTaps, kStride> first(0, g.pad_left, g.in_w);
    std::vector<float> columns(g.is_max ? 0 : g.out_w);  // of the image in each window
    for (size_t x = 0; x < columns.size(); ++x) columns[x] = static_cast<float>(column_span(g, x).count);
    const size_t rows = g.batch * g.channels * g.out_h, end = rows * (ith + 1) / nth;
    size_t at = rows * ith / nth, plane = at / g.out_h, row = at % g.out_h;
    for (; at < end; ++at) {
        const float* x = g.x + plane * g.in_h * g.in_w;
        float* y = g.y + at * g.out_w;
        const Span span = row_span(g, row);
        window_row(g, first, x, span, 0, y, Join());
        for (size_t column = kLanes; column < g.out_w; column += kLanes)
            window_row(g, ImageTaps<kTaps, kStride>(column, g.pad_left, g.in_w), x, span, column, y, Join());
        if (!g.is_max) divide_row(span.count, columns, y);
        if (++row == g.out_h) row = 0, ++plane;
    }
}

template <class Join>
HWY_INLINE float join_lanes(TileVec v) {
    const TileTag d;
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, d, lanes);
    const hn::CappedTag<float, 1> one;
    auto joined = hn::Set(one, lanes[0]);
    for (size_t i = 1; i < kLanes; ++i) joined = Join()(joined, hn::Set(one, lanes[i]));
    return hn::GetLane(joined);
}

// Channels first: one number for each plane.
template <class Join>
HWY_NOINLINE void pool_planes(const Pool2dArgs& g, int ith, int nth) {
    const TileTag d;
    const Join join;
    const size_t planes = g.batch * g.channels, pixels = g.in_h * g.in_w;
    for (size_t plane = planes * ith / nth; plane < planes * (ith + 1) / nth; ++plane) {
        const float* x = g.x + plane * pixels;
        TileVec joined[2] = {hn::Set(d, Join::kStart), hn::Set(d, Join::kStart)};
        size_t i = 0;
        for (; i + 2 * kLanes <= pixels; i += 2 * kLanes) {
            joined[0] = join(joined[0], hn::LoadU(d, x + i));
            joined[1] = join(joined[1], hn::LoadU(d, x + i + kLanes));
        }
        for (; i < pixels; i += kLanes) {
            const size_t count = std::min(kLanes, pixels - i);
            const auto inside = hn::FirstN(d, count);
            const TileVec v = hn::IfThenElse(inside, load_first(d, x + i, count), hn::Set(d, Join::kStart));
            joined[0] = join(joined[0], v);
        }
        const float result = join_lanes<Join>(join(joined[0], joined[1]));
        g.y[plane] = g.is_max ? result : result / static_cast<float>(pixels);
    }
}

// Channels last: a pixel of output at a time, whatever the window.
template <class Join>
HWY_NOINLINE void pool_pixels(const Pool2dArgs& g, int ith, int nth) {
    const TileTag d;
    const Join join;
    const size_t pixels = g.batch * g.out_h * g.out_w;
    for (size_t at = pixels * ith / nth; at < pixels * (ith + 1) / nth; ++at) {
        const size_t image = at / g.out_w / g.out_h;
        const Span rows = row_span(g, at / g.out_w % g.out_h), columns = column_span(g, at % g.out_w);
        const size_t count = rows.count * columns.count;
        for (size_t c = 0; c < g.channels; c += kLanes) {
            const size_t lanes = std::min(kLanes, g.channels - c);
            TileVec joined = hn::Set(d, Join::kStart);
            for (size_t i = 0; i < count; ++i) {
                const size_t y = static_cast<size_t>(rows.first) + i / columns.count * g.dilation_h;
                const size_t x = static_cast<size_t>(columns.first) + i % columns.count * g.dilation_w;
                const float* from = g.x + ((image * g.in_h + y) * g.in_w + x) * g.channels + c;
                joined = join(joined, lanes == kLanes ? hn::LoadU(d, from) : load_first(d, from, lanes));
            }
            if (!g.is_max && count) joined = hn::Div(joined, hn::Set(d, static_cast<float>(count)));
            store_first(joined, d, g.y + at * g.channels + c, lanes);
        }
    }
}

bool is_whole(const Pool2dArgs& g) {
    return g.window_h == g.in_h && g.window_w == g.in_w && g.out_h == 1 && g.out_w == 1 && g.pad_top == 0 &&
           g.pad_left == 0 && g.dilation_h == 1 && g.dilation_w == 1;
}

using PoolFn = void (*)(const Pool2dArgs&, int, int);

// The function for these windows, or null.
template <class Join>
PoolFn find_pool(const Pool2dArgs& g) {
    if (g.channels_last) return &pool_pixels<Join>;
    if (is_whole(g)) return &pool_planes<Join>;
    const bool is_square = g.window_h == g.window_w && g.stride_h == g.stride_w;
    if (!kHasTaps || !is_square || g.dilation_h != 1 || g.dilation_w != 1) return nullptr;
    if (g.window_w == 2 && g.stride_w == 1) return &pool_windows<2, 1, Join>;
    if (g.window_w == 2 && g.stride_w == 2) return &pool_windows<2, 2, Join>;
    if (g.window_w == 3 && g.stride_w == 1) return &pool_windows<3, 1, Join>;
    if (g.window_w == 3 && g.stride_w == 2) return &pool_windows<3, 2, Join>;
    return nullptr;
}

PoolFn find_pool_of(const Pool2dArgs& g) { return g.is_max ? find_pool<Largest>(g) : find_pool<Sum>(g); }

}  // namespace

bool pool2d_applies(const Pool2dArgs& g) { return find_pool_of(g) != nullptr; }

void pool2d(const Pool2dArgs& g, int ith, int nth) { find_pool_of(g)(g, ith, nth); }

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(pool2d_applies);
HWY_EXPORT(pool2d);

bool pool2d_f32_applies(const Pool2dArgs& args) { return HWY_DYNAMIC_DISPATCH(pool2d_applies)(args); }
void pool2d_f32(const Pool2dArgs& args, int ith, int nth) { HWY_DYNAMIC_DISPATCH(pool2d)(args, ith, nth); }

}  // namespace headrace::kernels
#endif
