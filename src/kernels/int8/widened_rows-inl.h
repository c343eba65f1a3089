// What windows of an image of bytes meet, in 16 bits or as it is. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_WIDENED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_WIDENED_ROWS_INL_H_
#undef HEADRACE_KERNELS_WIDENED_ROWS_INL_H_
#else
#define HEADRACE_KERNELS_WIDENED_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/int8/int8_conv2d.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using WideTag = hn::CappedTag<int16_t, 16>;

template <class T>
HWY_INLINE hn::Vec<WideTag> load_widened(const T* x) {
    return hn::PromoteTo(WideTag(), hn::LoadU(hn::Rebind<T, WideTag>(), x));
}

// Touches nothing beyond either list.
template <class T>
HWY_INLINE void widen(const T* x, size_t n, int16_t* y) {
    const WideTag d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(load_widened(x + i), d, y + i);
    if (i == n) return;
    if (n >= lanes) {
        hn::StoreU(load_widened(x + n - lanes), d, y + n - lanes);
    } else {
        for (; i < n; ++i) y[i] = x[i];
    }
}

// How windows are copied: widened.
struct WidenedRows {
    using To = int16_t;
    // So many numbers are written for rows of a window that are shorter.
    static constexpr size_t kShortRow = 16;

    static int16_t zero(const Int8Conv2dArgs& g) { return static_cast<int16_t>(g.x_zero); }
    template <class T>
    static HWY_INLINE void copy(const T* x, size_t n, int16_t* y) {
        widen(x, n, y);
    }
    // All of x [kShortRow]; of y those too many are written anew afterwards.
    template <class T>
    static HWY_INLINE void copy_short(const T* x, int16_t* y) {
        const WideTag d;
        HWY_UNROLL(2)
        for (size_t i = 0; i < kShortRow; i += hn::Lanes(d)) hn::StoreU(load_widened(x + i), d, y + i);
    }
};

// Windows of neighbouring pixels of the output as rows [kernel_h][kernel_w][channels of a group] of `length`
// numbers, which end in zeros. Up to Rows::kShortRow numbers behind them are overwritten, too.
template <class Rows = WidenedRows>
class WindowCopier {
public:
    using To = typename Rows::To;

    WindowCopier(const Int8Conv2dArgs& g, size_t image, size_t group, size_t length)
        : g_(g),
          channels_(g.in_channels / g.groups),
          start_(image * g.in_h * g.in_w * g.in_channels + group * channels_),
          length_(length),
          is_matrix_(g.groups == 1 && g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 &&
                     g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 && g.out_h == g.in_h &&
                     g.out_w == g.in_w) {}

    // Whether the image's pixels are the windows, one after the other.
    bool copies_all() const { return is_matrix_ && length_ == channels_; }
    // Where a window of those begins.
    const void* window_of(size_t pixel) const {
        return static_cast<const std::byte*>(g_.x.data) + start_ + pixel * channels_;
    }

    template <class T>
    void copy(size_t first, size_t count, To* to) const {
        const T* x = static_cast<const T*>(g_.x.data) + start_;
        if (copies_all()) return Rows::copy(x + first * channels_, count * channels_, to);
        const size_t depth = g_.depth();
        size_t oy = first / g_.out_w, ox = first % g_.out_w;
        for (size_t p = 0; p < count; ++p, to += length_) {
            window(x, oy, ox, to);
            for (size_t i = depth; i < length_; ++i) to[i] = 0;
            if (++ox == g_.out_w) ox = 0, ++oy;
        }
    }

private:
    template <class T>
    void window(const T* x, size_t oy, size_t ox, To* to) const {
        const auto in_h = static_cast<ptrdiff_t>(g_.in_h), in_w = static_cast<ptrdiff_t>(g_.in_w);
        const ptrdiff_t top = static_cast<ptrdiff_t>(oy * g_.stride_h) - g_.pad_top;
        const ptrdiff_t left = static_cast<ptrdiff_t>(ox * g_.stride_w) - g_.pad_left;
        const ptrdiff_t last = left + static_cast<ptrdiff_t>((g_.kernel_w - 1) * g_.dilation_w);
        const bool is_run = g_.groups == 1 && g_.dilation_w == 1 && left >= 0 && last < in_w;
        const size_t row_length = g_.kernel_w * channels_;
        const ptrdiff_t end = in_h * in_w * static_cast<ptrdiff_t>(g_.in_channels);
        const ptrdiff_t bottom = top + static_cast<ptrdiff_t>((g_.kernel_h - 1) * g_.dilation_h);
        if (is_run && top >= 0 && bottom < in_h)
            return inside(x + (top * in_w + left) * static_cast<ptrdiff_t>(g_.in_channels), row_length,
                          end - (bottom * in_w + left) * static_cast<ptrdiff_t>(g_.in_channels), to);
        for (size_t ky = 0; ky < g_.kernel_h; ++ky, to += row_length) {
            const ptrdiff_t y = top + static_cast<ptrdiff_t>(ky * g_.dilation_h);
            const ptrdiff_t at = (y * in_w + left) * static_cast<ptrdiff_t>(g_.in_channels);
            if (y < 0 || y >= in_h)
                std::fill_n(to, row_length, Rows::zero(g_));
            else if (is_run && row_length <= Rows::kShortRow &&
                     at + static_cast<ptrdiff_t>(Rows::kShortRow) <= end)
                Rows::copy_short(x + at, to);
            else if (is_run)
                Rows::copy(x + at, row_length, to);
            else
                taps(x, y, left, to);
        }
    }
    // A window that lies in the image; of its last row, so many numbers may be read.
    template <class T>
    HWY_INLINE void inside(const T* x, size_t row_length, ptrdiff_t last_row, To* to) const {
        const size_t step = g_.dilation_h * g_.in_w * g_.in_channels, taps = g_.kernel_h;
        if (row_length <= Rows::kShortRow && last_row >= static_cast<ptrdiff_t>(Rows::kShortRow)) {
            for (size_t ky = 0; ky < taps; ++ky, x += step, to += row_length) Rows::copy_short(x, to);
        } else {
            for (size_t ky = 0; ky < taps; ++ky, x += step, to += row_length) Rows::copy(x, row_length, to);
        }
    }
    template <class T>
    void taps(const T* x, ptrdiff_t y, ptrdiff_t left, To* to) const {
        const auto in_w = static_cast<ptrdiff_t>(g_.in_w);
        for (size_t kx = 0; kx < g_.kernel_w; ++kx, to += channels_) {
            const ptrdiff_t column = left + static_cast<ptrdiff_t>(kx * g_.dilation_w);
            if (column < 0 || column >= in_w)
                std::fill_n(to, channels_, Rows::zero(g_));
            else
                Rows::copy(x + (y * in_w + column) * static_cast<ptrdiff_t>(g_.in_channels), channels_, to);
        }
    }

    const Int8Conv2dArgs& g_;
    size_t channels_, start_, length_;
    bool is_matrix_;
};

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_WIDENED_ROWS_INL_H_
