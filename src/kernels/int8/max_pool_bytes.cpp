#include "kernels/int8/max_pool_bytes.h"

#include <algorithm>

#include "base/run_stop.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/max_pool_bytes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The part of a window that lies in the image: rows or columns of it.
struct Inside {
    size_t first, count;

    Inside(size_t at, size_t stride, ptrdiff_t pad, size_t taps, size_t dilation, size_t size) {
        const auto step = static_cast<ptrdiff_t>(dilation), end = static_cast<ptrdiff_t>(size);
        const ptrdiff_t start = static_cast<ptrdiff_t>(at * stride) - pad;
        const ptrdiff_t skipped = start < 0 ? (-start + step - 1) / step : 0;
        const ptrdiff_t reached = start < end ? (end - start + step - 1) / step : 0;
        first = static_cast<size_t>(start + skipped * step);
        count = static_cast<size_t>(
            std::max<ptrdiff_t>(std::min(reached, static_cast<ptrdiff_t>(taps)) - skipped, 0));
    }
};

template <class T>
void largest_of_row(const Pool2dArgs& g, const T* x, T* y, size_t row) {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d), oy = row % g.out_h;
    const Inside rows(oy, g.stride_h, g.pad_top, g.window_h, g.dilation_h, g.in_h);
    const T* image = x + row / g.out_h * g.in_h * g.in_w * g.channels;
    y += row * g.out_w * g.channels;
    StopCheck may_stop;  // a window may be as large as the image
    for (size_t ox = 0; ox < g.out_w; ++ox, y += g.channels) {
        const Inside columns(ox, g.stride_w, g.pad_left, g.window_w, g.dilation_w, g.in_w);
        const T* from = image + (rows.first * g.in_w + columns.first) * g.channels;
        const auto visit = [&](size_t c, auto take) HWY_ATTR {
            may_stop(rows.count * columns.count);
            for (size_t ky = 0; ky < rows.count; ++ky)
                for (size_t kx = 0; kx < columns.count; ++kx)
                    take(from + (ky * g.dilation_h * g.in_w + kx * g.dilation_w) * g.channels + c);
        };
        size_t c = 0;
        for (; c + lanes <= g.channels; c += lanes) {
            auto largest = hn::Set(d, hwy::LimitsMin<T>());
            visit(c, [&](const T* p) HWY_ATTR { largest = hn::Max(largest, hn::LoadU(d, p)); });
            hn::StoreU(largest, d, y + c);
        }
        for (; c < g.channels; ++c) {
            T largest = hwy::LimitsMin<T>();
            visit(c, [&](const T* p) { largest = std::max(largest, *p); });
            y[c] = largest;
        }
    }
}

}  // namespace

void largest_bytes(const Pool2dArgs& g, const Bytes& x, void* y, size_t row) {
    if (x.is_signed)
        largest_of_row(g, static_cast<const int8_t*>(x.data), static_cast<int8_t*>(y), row);
    else
        largest_of_row(g, static_cast<const uint8_t*>(x.data), static_cast<uint8_t*>(y), row);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(largest_bytes);

void max_pool_bytes(const Pool2dArgs& args, const Bytes& x, void* y, int ith, int nth) {
    const size_t rows = args.batch * args.out_h;
    for (size_t row = rows * ith / nth; row < rows * (ith + 1) / nth; ++row)
        HWY_DYNAMIC_DISPATCH(largest_bytes)(args, x, y, row);
}

}  // namespace headrace::kernels
#endif
