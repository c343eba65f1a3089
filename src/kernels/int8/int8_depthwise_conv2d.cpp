#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/int8/int8_conv2d.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/int8_depthwise_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/pair_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// So many pixels share the filters of a vector of channels, and what they meet stays in the L1 cache.
inline constexpr size_t kPixelsOfBlock = 16;
// The same where no pairs are written but rows of bytes are read.
inline constexpr size_t kSlidingPixels = 32;

// y[i] = the low 16 bits of a[i], below those of b[i].
template <class T>
HWY_INLINE void pair_up(const T* a, const T* b, size_t n, int32_t* y) {
    const Int8Tag d;
    const Int8Vec mask = hn::Set(d, 0xFFFF);
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        hn::StoreU(hn::Or(hn::And(load_bytes(a + i), mask), hn::ShiftLeft<16>(load_bytes(b + i))), d, y + i);
    for (; i < n; ++i)
        y[i] =
            static_cast<int32_t>((static_cast<uint32_t>(a[i]) & 0xFFFF) | static_cast<uint32_t>(b[i]) << 16);
}

// Rows of an output, one after the other.
template <class X, class Y>
class DepthwiseRows {
public:
    DepthwiseRows(const Int8Conv2dArgs& g, const std::byte* packed, std::vector<int32_t>& pairs)
        : g_(g),
          filters_(reinterpret_cast<const int32_t*>(packed)),
          sums_(sums_of_depthwise_pairs(packed, g.in_channels, g.kernel_h, g.kernel_w)),
          channels_(g.in_channels),
          pair_rows_((g.kernel_h + 1) / 2),
          width_((g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1),
          round_(g.result),
          pairs_(pairs) {
        // Vectors of the last channels reach beyond them.
        if (pairs_.size() < pair_rows_ * width_ * channels_ + kLanes)
            pairs_.resize(pair_rows_ * width_ * channels_ + kLanes);
        outside_.assign(g.in_w * channels_, static_cast<X>(g.x_zero));
    }

    void run(size_t row) {
        if (g_.kernel_h == 3 && g_.kernel_w == 3 && g_.dilation_w == 1 && g_.stride_w <= 2)
            return g_.stride_w == 1 ? slide<1>(row) : slide<2>(row);
        const X* image = static_cast<const X*>(g_.x.data) + row / g_.out_h * g_.in_h * g_.in_w * channels_;
        for (size_t j = 0; j < pair_rows_; ++j) fill(image, row % g_.out_h, j);
        Y* y = static_cast<Y*>(g_.result.y) + row * g_.out_w * channels_;
        for (size_t x = 0; x < g_.out_w; x += kPixelsOfBlock) {
            const size_t count = std::min(kPixelsOfBlock, g_.out_w - x);
            if (g_.kernel_h == 3 && g_.kernel_w == 3)
                block<2, 3>(x, count, y);
            else if (g_.kernel_h == 5 && g_.kernel_w == 5)
                block<3, 5>(x, count, y);
            else
                block<0, 0>(x, count, y);
        }
    }

private:
    // The row of the image under row ky of the filter.
    const X* source(const X* image, size_t oy, size_t ky) const {
        const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g_.stride_h + ky * g_.dilation_h) - g_.pad_top;
        const bool is_inside = ky < g_.kernel_h && y >= 0 && y < static_cast<ptrdiff_t>(g_.in_h);
        return is_inside ? image + static_cast<size_t>(y) * g_.in_w * channels_ : outside_.data();
    }

    // Two rows of the image as pairs, with what lies beyond its sides.
    void fill(const X* image, size_t oy, size_t pair_row) {
        const X *upper = source(image, oy, 2 * pair_row), *lower = source(image, oy, 2 * pair_row + 1);
        const auto zero = static_cast<uint32_t>(g_.x_zero);
        const auto beyond = static_cast<int32_t>((zero & 0xFFFF) | zero << 16);
        const auto width = static_cast<ptrdiff_t>(width_), in_w = static_cast<ptrdiff_t>(g_.in_w);
        const auto begin = static_cast<size_t>(std::clamp<ptrdiff_t>(g_.pad_left, 0, width));
        const auto end = static_cast<size_t>(std::clamp<ptrdiff_t>(in_w + g_.pad_left, 0, width));
        int32_t* to = pairs_.data() + pair_row * width_ * channels_;
        std::fill_n(to, begin * channels_, beyond);
        const size_t skipped = g_.pad_left < 0 ? static_cast<size_t>(-g_.pad_left) * channels_ : 0;
        if (begin < end)
            pair_up(upper + skipped, lower + skipped, (end - begin) * channels_, to + begin * channels_);
        std::fill(to + std::max(begin, end) * channels_, to + width_ * channels_, beyond);
    }

    // Pixels [x, x + count) of the row; with the filter's sizes known, its elements stay in registers.
    template <size_t kPairRowsOfFilter, size_t kWidth>
    void block(size_t x, size_t count, Y* y) const {
        size_t c = 0;
        for (; c + kLanes <= channels_; c += kLanes)
            vector<kPairRowsOfFilter, kWidth>(
                x, count, c,
                [&](const auto* p) HWY_ATTR { return hn::LoadU(hn::Rebind<Of<decltype(p)>, TileTag>(), p); },
                [&](Int8Vec v, size_t at) HWY_ATTR { store_bytes(v, y + at); });
        if (const size_t rest = channels_ - c)
            vector<kPairRowsOfFilter, kWidth>(
                x, count, c,
                [&](const auto* p)
                    HWY_ATTR { return load_first(hn::Rebind<Of<decltype(p)>, TileTag>(), p, rest); },
                [&](Int8Vec v, size_t at) HWY_ATTR { store_first_bytes(v, y + at, rest); });
    }
    template <class P>
    using Of = std::remove_cvref_t<decltype(*std::declval<P>())>;

    template <size_t kPairRowsOfFilter, size_t kWidth, class Load, class Store>
    HWY_INLINE void vector(size_t x, size_t count, size_t c, Load load, Store store) const {
        const TileTag d;
        const Int8Tag d32;
        const size_t rows = kPairRowsOfFilter ? kPairRowsOfFilter : pair_rows_,
                     taps_w = kWidth ? kWidth : g_.kernel_w;
        const Int8Vec init = hn::Mul(load(sums_ + c), hn::Set(d32, -g_.x_zero));
        const TileVec bias = g_.result.bias ? load(g_.result.bias + c) : hn::Zero(d);
        const TileVec scale = load(g_.result.scale + c);
        Int8Vec filter[kPairRowsOfFilter ? kPairRowsOfFilter * kWidth : 1];
        if constexpr (kPairRowsOfFilter > 0)
            for (size_t i = 0; i < kPairRowsOfFilter * kWidth; ++i)
                filter[i] = load(filters_ + i * channels_ + c);
        for (size_t p = x; p < x + count; ++p) {
            PairSum sum;
            for (size_t j = 0; j < rows; ++j) {
                const int32_t* from = pairs_.data() + (j * width_ + p * g_.stride_w) * channels_ + c;
                for (size_t k = 0; k < taps_w; ++k) {
                    const Int8Vec pair = hn::LoadU(d32, from + k * g_.dilation_w * channels_);
                    if constexpr (kPairRowsOfFilter > 0)
                        sum.add(pair, filter[j * kWidth + k]);
                    else
                        sum.add(pair, load(filters_ + (j * taps_w + k) * channels_ + c));
                }
            }
            const TileVec real = hn::ConvertTo(d, hn::Add(sum.total(), init));
            store(round_(hn::Mul(hn::Add(real, bias), scale)), p * channels_ + c);
        }
    }

    // --- three by three taps: columns of the image stay in registers from pixel to pixel

    // Of a column, the pairs of rows 0 and 1, and row 2, whose neighbours the filter multiplies with 0.
    struct Column {
        Int8Vec upper, lower;
    };

    template <size_t kStride>
    void slide(size_t row) const {
        const size_t oy = row % g_.out_h;
        const X* image = static_cast<const X*>(g_.x.data) + row / g_.out_h * g_.in_h * g_.in_w * channels_;
        const X* const rows[3] = {source(image, oy, 0), source(image, oy, 1), source(image, oy, 2)};
        Y* y = static_cast<Y*>(g_.result.y) + row * g_.out_w * channels_;
        for (size_t x = 0; x < g_.out_w; x += kSlidingPixels) {
            const size_t count = std::min(kSlidingPixels, g_.out_w - x);
            size_t c = 0;
            for (; c + kLanes <= channels_; c += kLanes)
                slide_vector<kStride>(
                    rows, x, count, c,
                    [&](const auto* p)
                        HWY_ATTR { return hn::LoadU(hn::Rebind<Of<decltype(p)>, TileTag>(), p); },
                    [&](const X* p) HWY_ATTR { return load_bytes(p); },
                    [&](Int8Vec v, size_t at) HWY_ATTR { store_bytes(v, y + at); });
            if (const size_t rest = channels_ - c)
                slide_vector<kStride>(
                    rows, x, count, c,
                    [&](const auto* p)
                        HWY_ATTR { return load_first(hn::Rebind<Of<decltype(p)>, TileTag>(), p, rest); },
                    [&](const X* p) HWY_ATTR { return load_first_bytes(p, rest); },
                    [&](Int8Vec v, size_t at) HWY_ATTR { store_first_bytes(v, y + at, rest); });
        }
    }

    // kLanes channels of pixels [x, x + count).
    template <size_t kStride, class Load, class LoadPixel, class Store>
    HWY_INLINE void slide_vector(const X* const (&rows)[3], size_t x, size_t count, size_t c, Load load,
                                 LoadPixel load_pixel, Store store) const {
        const TileTag d;
        const Int8Tag d32;
        const Int8Vec init = hn::Mul(load(sums_ + c), hn::Set(d32, -g_.x_zero)), mask = hn::Set(d32, 0xFFFF);
        const TileVec bias = g_.result.bias ? load(g_.result.bias + c) : hn::Zero(d);
        const TileVec scale = load(g_.result.scale + c);
        Int8Vec filter[6];
        HWY_UNROLL(6)
        for (size_t i = 0; i < 6; ++i) filter[i] = load(filters_ + i * channels_ + c);
        const auto pair_of = [&](Int8Vec a, Int8Vec b) HWY_ATTR {
            return hn::Or(std::is_signed_v<X> ? hn::And(a, mask) : a, hn::ShiftLeft<16>(b));
        };
        const Int8Vec zero = hn::Set(d32, g_.x_zero);
        const Column beyond{pair_of(zero, zero), zero};
        const auto column = [&](ptrdiff_t at) HWY_ATTR {
            if (at < 0 || at >= static_cast<ptrdiff_t>(g_.in_w)) return beyond;
            const size_t place = static_cast<size_t>(at) * channels_ + c;
            return Column{pair_of(load_pixel(rows[0] + place), load_pixel(rows[1] + place)),
                          load_pixel(rows[2] + place)};
        };
        ptrdiff_t at = static_cast<ptrdiff_t>(x * kStride) - g_.pad_left;
        Column first = column(at), second = kStride == 1 ? column(at + 1) : beyond, third = beyond;
        for (size_t p = x; p < x + count; ++p, at += kStride) {
            if constexpr (kStride == 2) second = column(at + 1);
            third = column(at + 2);
            PairSum sum;
            sum.add(first.upper, filter[0]);
            sum.add(second.upper, filter[1]);
            sum.add(third.upper, filter[2]);
            sum.add(first.lower, filter[3]);
            sum.add(second.lower, filter[4]);
            sum.add(third.lower, filter[5]);
            const TileVec real = hn::ConvertTo(d, hn::Add(sum.total(), init));
            store(round_(hn::Mul(hn::Add(real, bias), scale)), p * channels_ + c);
            first = kStride == 1 ? second : third;
            second = third;
        }
    }

    const Int8Conv2dArgs& g_;
    const int32_t *filters_, *sums_;
    size_t channels_, pair_rows_, width_;
    Rounder round_;
    std::vector<int32_t>& pairs_;
    std::vector<X> outside_;
};

template <class X, class Y>
void depthwise_rows(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local std::vector<int32_t> pairs;
    const size_t rows = g.batch * g.out_h, first = rows * ith / nth, last = rows * (ith + 1) / nth;
    if (first == last) return;
    DepthwiseRows<X, Y> depthwise(g, packed, pairs);
    for (size_t row = first; row < last; ++row) depthwise.run(row);
}

}  // namespace

void convolve_int8_depthwise(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    if (g.x.is_signed)
        g.result.is_signed ? depthwise_rows<int8_t, int8_t>(g, packed, ith, nth)
                           : depthwise_rows<int8_t, uint8_t>(g, packed, ith, nth);
    else
        g.result.is_signed ? depthwise_rows<uint8_t, int8_t>(g, packed, ith, nth)
                           : depthwise_rows<uint8_t, uint8_t>(g, packed, ith, nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(convolve_int8_depthwise);

void int8_depthwise_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(convolve_int8_depthwise)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
