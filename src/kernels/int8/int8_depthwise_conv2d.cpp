#include <algorithm>
#include <type_traits>
#include <vector>

#include "hwy/cache_control.h"
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
#if HWY_TARGET != HWY_SCALAR
// Channels that slide together: a vector of 16 bits.
inline constexpr size_t kSlidingChannels = 2 * kLanes;
// Bytes of a cache line, as far as is fetched ahead.
inline constexpr size_t kLine = 64;
using WideVec = hn::Vec<hn::Repartition<int16_t, Int8Tag>>;
#endif

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
#if HWY_TARGET != HWY_SCALAR
        if (slides()) order_filters();
#endif
    }

    void run(size_t row) {
#if HWY_TARGET != HWY_SCALAR
        if (slides()) return g_.stride_w == 1 ? slide<1>(row) : slide<2>(row);
#endif
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

    // --- three by three taps: columns of the image are widened once for all windows that they are in

#if HWY_TARGET != HWY_SCALAR
    bool slides() const {
        return g_.kernel_h == 3 && g_.kernel_w == 3 && g_.dilation_w == 1 && g_.stride_w <= 2 &&
               channels_ >= kSlidingChannels;
    }

    // What the sums of kSlidingChannels channels meet, in the order of interleaved vectors: in each pair the
    // first is of channels 0 to 3 of all blocks of 8, the second of 4 to 7.
    struct SlidingFilter {
        int32_t taps[6][2][kLanes], init[2][kLanes];
        float bias[2][kLanes], scale[2][kLanes];
    };
    size_t sliding_channel(size_t i) const {
        return std::min(i * kSlidingChannels, channels_ - kSlidingChannels);
    }
    void order_filters() {
        sliding_.resize(divide_up(channels_, kSlidingChannels));
        for (size_t i = 0; i < sliding_.size(); ++i)
            for (size_t c = 0; c < kSlidingChannels; ++c) {
                SlidingFilter& f = sliding_[i];
                const size_t half = c % 8 / 4, lane = c / 8 * 4 + c % 4, channel = sliding_channel(i) + c;
                for (size_t t = 0; t < 6; ++t) f.taps[t][half][lane] = filters_[t * channels_ + channel];
                f.init[half][lane] = -g_.x_zero * sums_[channel];
                f.bias[half][lane] = g_.result.bias ? g_.result.bias[channel] : 0;
                f.scale[half][lane] = g_.result.scale[channel];
            }
    }

    // One column of the image: the pairs of rows 0 and 1, and row 2, whose neighbours the filter multiplies
    // with 0.
    struct Column {
        Int8Vec upper[2], lower[2];
    };
    static HWY_INLINE Column column_of(WideVec first, WideVec second, WideVec third) {
        const hn::Repartition<int16_t, Int8Tag> d16;
        const Int8Tag d;
        return {{hn::BitCast(d, hn::InterleaveLower(d16, first, second)),
                 hn::BitCast(d, hn::InterleaveUpper(d16, first, second))},
                {hn::BitCast(d, hn::InterleaveLower(d16, third, third)),
                 hn::BitCast(d, hn::InterleaveUpper(d16, third, third))}};
    }
    struct Sums {
        PairSum of[2];

        HWY_INLINE Sums() {}
        HWY_INLINE void add(const Column& column, const SlidingFilter& f, size_t tap) {
            const Int8Tag d;
            HWY_UNROLL(2)
            for (size_t h = 0; h < 2; ++h) {
                of[h].add(column.upper[h], hn::LoadU(d, f.taps[tap][h]));
                of[h].add(column.lower[h], hn::LoadU(d, f.taps[3 + tap][h]));
            }
        }
    };

    template <size_t kStride>
    void slide(size_t row) const {
        const size_t oy = row % g_.out_h;
        const X* image = static_cast<const X*>(g_.x.data) + row / g_.out_h * g_.in_h * g_.in_w * channels_;
        const X* const rows[3] = {source(image, oy, 0), source(image, oy, 1), source(image, oy, 2)};
        Y* y = static_cast<Y*>(g_.result.y) + row * g_.out_w * channels_;
        const X* next = source(image, oy + 1, 2);
        for (size_t x = 0; x < g_.out_w; x += kSlidingPixels) {
            const size_t count = std::min(kSlidingPixels, g_.out_w - x);
            for (size_t i = 0; i < sliding_.size(); ++i) {
                // As many bytes of the next row are about to be read and written as of this one.
                const size_t at = x * channels_ + i * count * kSlidingChannels;
                for (size_t k = 0; k < count * kSlidingChannels; k += kLine) {
                    hwy::Prefetch(next + (at + k) * kStride);
                    hwy::Prefetch(y + g_.out_w * channels_ + at + k);
                }
                slide_vector<kStride>(rows, x, count, sliding_channel(i), sliding_[i], y);
            }
        }
    }

    // kSlidingChannels channels of pixels [x, x + count).
    template <size_t kStride>
    HWY_INLINE void slide_vector(const X* const (&rows)[3], size_t x, size_t count, size_t c,
                                 const SlidingFilter& f, Y* y) const {
        const hn::Repartition<int16_t, Int8Tag> d16;
        const hn::Rebind<X, decltype(d16)> d8;
        const WideVec zero = hn::Set(d16, static_cast<int16_t>(g_.x_zero));
        const auto column = [&](ptrdiff_t at) HWY_ATTR {
            if (at < 0 || at >= static_cast<ptrdiff_t>(g_.in_w)) return column_of(zero, zero, zero);
            const size_t place = static_cast<size_t>(at) * channels_ + c;
            const auto load = [&](const X* p)
                                  HWY_ATTR { return hn::PromoteTo(d16, hn::LoadU(d8, p + place)); };
            return column_of(load(rows[0]), load(rows[1]), load(rows[2]));
        };
        ptrdiff_t at = static_cast<ptrdiff_t>(x * kStride) - g_.pad_left;
        Sums first, second;
        first.add(column(at), f, 0);
        if constexpr (kStride == 1) {
            const Column both = column(at + 1);
            first.add(both, f, 1), second.add(both, f, 0);
        }
        for (size_t p = x; p < x + count; ++p, at += kStride) {
            if constexpr (kStride == 2) first.add(column(at + 1), f, 1);
            const Column last = column(at + 2);
            first.add(last, f, 2);
            Sums next;
            next.add(last, f, 0);
            if constexpr (kStride == 1) second.add(last, f, 1);
            store_sliding(first, f, y + p * channels_ + c);
            first = kStride == 1 ? second : next;
            second = next;
        }
    }
    HWY_INLINE void store_sliding(const Sums& sums, const SlidingFilter& f, Y* y) const {
        const TileTag d;
        const hn::Repartition<int16_t, Int8Tag> d16;
        Int8Vec rounded[2];
        HWY_UNROLL(2)
        for (size_t h = 0; h < 2; ++h) {
            const TileVec real =
                hn::ConvertTo(d, hn::Add(sums.of[h].total(), hn::LoadU(Int8Tag(), f.init[h])));
            rounded[h] = round_(hn::Mul(hn::Add(real, hn::LoadU(d, f.bias[h])), hn::LoadU(d, f.scale[h])));
        }
        const hn::Rebind<Y, decltype(d16)> d8;
        hn::StoreU(hn::DemoteTo(d8, hn::ReorderDemote2To(d16, rounded[0], rounded[1])), d8, y);
    }

    std::vector<SlidingFilter> sliding_;
#endif

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
