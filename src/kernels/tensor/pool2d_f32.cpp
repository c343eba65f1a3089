#include "kernels/tensor/pool2d_f32.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/run_stop.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/pool2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/extremes-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

struct Largest {
    static constexpr float kStart = -std::numeric_limits<float>::infinity();
    template <class V>
    HWY_INLINE V operator()(V so_far, V x) const {
        return better_of<true>(hn::DFromV<V>(), so_far, x);
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

// A row of the image with `pad` columns before it that do not count, and as many behind it as whole vectors
// of windows reach: the columns of the rows in a window, joined.
class JoinedRows {
public:
    JoinedRows(const Pool2dArgs& g, float start)
        : in_w_(g.in_w), pad_(static_cast<size_t>(g.pad_left)), start_(start) {
        const size_t reached = divide_up(g.out_w, kLanes) * kLanes * g.stride_w + 2 * kLanes + g.window_w;
        columns_.assign(std::max(reached, pad_ + in_w_), start);
    }
    template <size_t kTaps, class Join>
    HWY_INLINE void join(const float* rows, size_t count) {
        if (count == kTaps)
            join_columns<Join>(rows, [] { return kTaps; });
        else if (count)
            join_columns<Join>(rows, [count] { return count; });
        else
            std::fill_n(columns_.begin() + static_cast<ptrdiff_t>(pad_), in_w_, start_);
    }
    const float* window(size_t at) const { return columns_.data() + at; }

private:
    template <class Join, class Count>
    HWY_INLINE void join_columns(const float* rows, Count count) {
        const TileTag d;
        float* to = columns_.data() + pad_;
        const auto joined = [&](auto load) HWY_ATTR {
            TileVec v = load(rows);
            for (size_t i = 1; i < count(); ++i) v = Join()(v, load(rows + i * in_w_));
            return v;
        };
        size_t x = 0;
        for (; x + kLanes <= in_w_; x += kLanes)
            hn::StoreU(joined([=](const float* row) HWY_ATTR { return hn::LoadU(d, row + x); }), d, to + x);
        const size_t rest = in_w_ - x;
        if (rest)
            store_first(joined([=](const float* row) HWY_ATTR { return load_first(d, row + x, rest); }), d,
                        to + x, rest);
    }

    size_t in_w_, pad_;
    float start_;
    std::vector<float> columns_;
};

// Joins kTaps neighbours for each lane; the windows of neighbouring lanes are kStride apart.
template <size_t kTaps, size_t kStride, class Join>
HWY_INLINE TileVec join_windows(const float* x, Join join) {
    const TileTag d;
    if constexpr (kStride == 1) {
        TileVec joined = hn::LoadU(d, x);
        HWY_UNROLL(8)
        for (size_t k = 1; k < kTaps; ++k) joined = join(joined, hn::LoadU(d, x + k));
        return joined;
    } else {
#if HWY_TARGET != HWY_SCALAR
        static_assert(kStride == 2 && (kTaps == 2 || kTaps == 3));
        const TileVec low = hn::LoadU(d, x), high = hn::LoadU(d, x + kLanes);
        const TileVec joined = join(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
        if constexpr (kTaps == 2) return joined;
        return join(joined, hn::ConcatEven(d, hn::LoadU(d, x + 2 + kLanes), hn::LoadU(d, x + 2)));
#else
        return hn::LoadU(d, x);
#endif
    }
}

// Channels first: a thread's rows of all planes, one after the other.
template <size_t kTaps, size_t kStride, class Join>
HWY_NOINLINE void pool_windows(const Pool2dArgs& g, int ith, int nth) {
    const TileTag d;
    JoinedRows joined(g, Join::kStart);
    std::vector<float> shares(g.is_max ? 0
                                       : divide_up(g.out_w, kLanes) * kLanes);  // of an element in the mean
    size_t rows_of_shares = 0;
    const size_t rows = g.batch * g.channels * g.out_h, end = rows * (ith + 1) / nth;
    size_t at = rows * ith / nth, plane = at / g.out_h, row = at % g.out_h;
    for (; at < end; ++at) {
        const Span span = row_span(g, row);
        const size_t first = span.count ? static_cast<size_t>(span.first) : 0;
        joined.join<kTaps, Join>(g.x + (plane * g.in_h + first) * g.in_w, span.count);
        if (!g.is_max && span.count != rows_of_shares) {
            rows_of_shares = span.count;
            for (size_t x = 0; x < g.out_w; ++x) {
                const size_t count = span.count * column_span(g, x).count;
                shares[x] = count ? 1 / static_cast<float>(count) : 0.0f;
            }
        }
        float* y = g.y + at * g.out_w;
        for (size_t x = 0; x < g.out_w; x += kLanes) {
            TileVec v = join_windows<kTaps, kStride>(joined.window(x * kStride), Join());
            if (!g.is_max) v = hn::Mul(v, hn::LoadU(d, shares.data() + x));
            if (g.out_w - x >= kLanes)
                hn::StoreU(v, d, y + x);
            else
                store_first(v, d, y + x, g.out_w - x);
        }
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
    StopCheck may_stop;  // a window may be as large as the image
    for (size_t at = pixels * ith / nth; at < pixels * (ith + 1) / nth; ++at) {
        const size_t image = at / g.out_w / g.out_h;
        const Span rows = row_span(g, at / g.out_w % g.out_h), columns = column_span(g, at % g.out_w);
        const size_t count = rows.count * columns.count;
        for (size_t c = 0; c < g.channels; c += kLanes) {
            may_stop(count);
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
    // Steps of two are taken apart into even and odd columns, which a vector of one lane does not have.
    constexpr bool kHasWindows = HWY_TARGET != HWY_SCALAR;
    if (!kHasWindows || !is_square || g.dilation_h != 1 || g.dilation_w != 1) return nullptr;
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
