#include "kernels/int8/byte_quads.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/cpu_features.h"
#include "kernels/int8/int8_conv_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/byte_quads.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/int8/pair_strip-inl.h"
#include "kernels/int8/widened_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

// Bytes without a sign: those with one are 128 larger here, and so is their zero point.
int32_t shifted_zero(int32_t zero, bool is_signed) { return is_signed ? zero + 128 : zero; }

struct ByteRows {
    using To = uint8_t;
    static uint8_t zero(const Int8Conv2dArgs& g) {
        return static_cast<uint8_t>(shifted_zero(g.x_zero, g.x.is_signed));
    }
    static constexpr size_t kShortRow = 32;

    template <class T>
    static HWY_INLINE void copy(const T* x, size_t n, uint8_t* y) {
        const hn::CappedTag<uint8_t, 64> d;
        size_t i = 0;
        for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) copy_vector(d, x + i, y + i);
        if (i == n) return;
        if (i > 0)
            copy_vector(d, x + n - hn::Lanes(d), y + n - hn::Lanes(d));
        else
            store_first(shifted(load_first(d, bytes(x), n), x), d, y, n);
    }
    template <class T>
    static HWY_INLINE void copy_short(const T* x, uint8_t* y) {
        copy_vector(hn::CappedTag<uint8_t, kShortRow>(), x, y);
    }

private:
    template <class T>
    static HWY_INLINE const uint8_t* bytes(const T* x) {
        return reinterpret_cast<const uint8_t*>(x);
    }
    template <class V, class T>
    static HWY_INLINE V shifted(V v, const T*) {
        return std::is_signed_v<T> ? hn::Xor(v, hn::Set(hn::DFromV<V>(), uint8_t{128})) : v;
    }
    template <class D, class T>
    static HWY_INLINE void copy_vector(D d, const T* x, uint8_t* y) {
        hn::StoreU(shifted(hn::LoadU(d, bytes(x)), x), d, y);
    }
};

// Channels that are multiplied together: more products for each byte that is loaded.
inline constexpr size_t kWidePanel = 2 * kPairPanel;

// One image's part of one group, or a matrix: what is multiplied with a panel, and the results that follow.
class Quads {
public:
    Quads(size_t depth, size_t channels, size_t groups, size_t group, const std::byte* packed)
        : quads_(divide_up(depth, 4)) {
        const size_t padded = divide_up(channels / groups, kPairPanel) * kPairPanel;
        panels_ = packed + group * padded * quads_ * 4;
        sums_ = reinterpret_cast<const int32_t*>(packed + groups * padded * quads_ * 4) + group * padded;
    }
    // As pairs are counted.
    size_t count() const { return quads_; }

    // `count` rows of quads times the panels that begin with a column, one or two as `tile` has channels:
    // results in Y as `tile` says.
    template <class Y>
    void multiply(PairTile tile, const void* rows, int32_t* sums, size_t count, size_t column, int32_t zero,
                  Y* y) const {
        const bool is_one = tile.channels <= kPairPanel;
        alignas(64) int32_t init[kWidePanel];
        for (size_t c = 0; c < (is_one ? kPairPanel : kWidePanel); ++c)
            init[c] =
                static_cast<int32_t>(-static_cast<uint32_t>(zero) * static_cast<uint32_t>(sums_[column + c]));
        tile.init = init;
        // A quad of bytes lies as a pair of 16 bits does.
        const auto* panel = reinterpret_cast<const int16_t*>(panels_ + column * quads_ * 4);
        is_one ? multiply_strip<QuadSum>(tile, rows, sums, count, panel, quads_, y)
               : multiply_strip<QuadSum, 2>(tile, rows, sums, count, panel, quads_, y);
    }

private:
    size_t quads_;
    const std::byte* panels_;
    const int32_t* sums_;
};

// Calls fn(y) with the result's place in its type.
template <class Fn>
void with_bytes(const Requantization& r, size_t at, Fn fn) {
    if (r.is_signed)
        fn(static_cast<int8_t*>(r.y) + at);
    else
        fn(static_cast<uint8_t*>(r.y) + at);
}

// What the panels' channels are rounded by, padded.
struct PanelScales {
    alignas(64) float bias[kWidePanel] = {}, scale[kWidePanel] = {};

    PanelScales(const float* biases, const float* scales, size_t first, size_t channels) {
        if (biases) std::copy_n(biases + first, channels, bias);
        if (scales) std::copy_n(scales + first, channels, scale);
    }
};

void convolve_strips(const Int8Conv2dArgs& g, const std::byte* packed, size_t image, size_t group,
                     size_t first, size_t last, size_t out, size_t out_end, StripScratch& scratch) {
    const Quads quads(g.depth(), g.out_channels, g.groups, group, packed);
    const size_t of_group = g.out_channels / g.groups;
    const Rounder round(g.result);
    const WindowCopier<ByteRows> copier(g, image, group, quads.count() * 4);
    for_each_strip(first, last, quads.count(), [&](size_t begin, size_t count) {
        scratch.reserve(count, quads.count());
        auto* copied = reinterpret_cast<uint8_t*>(scratch.rows.data());
        const void* rows = copied;
        if (g.x.is_signed)
            copier.copy<int8_t>(begin, count, copied);
        else if (copier.copies_all())
            rows = copier.window_of(begin);
        else
            copier.copy<uint8_t>(begin, count, copied);
        for (size_t o = out; o < out_end; o += kWidePanel) {
            const size_t channels = std::min(kWidePanel, out_end - o), channel = group * of_group + o;
            const PanelScales scales(g.result.bias, g.result.scale, channel, channels);
            PairTile tile{.bias = scales.bias, .scale = scales.scale, .round = &round};
            tile.ldy = g.out_channels, tile.channels = channels;
            const size_t at = (image * g.out_h * g.out_w + begin) * g.out_channels + channel;
            with_bytes(g.result, at, [&](auto* y) {
                quads.multiply(tile, rows, scratch.sums.data(), count, o,
                               shifted_zero(g.x_zero, g.x.is_signed), y);
            });
        }
    });
}

template <class A>
void copy_rows(const Int8MatMulArgs& g, size_t first, size_t count, size_t length, uint8_t* to) {
    const A* from = static_cast<const A*>(g.a.data) + first * g.k;
    if (length == g.k) return ByteRows::copy(from, count * g.k, to);
    for (size_t r = 0; r < count; ++r, from += g.k, to += length) {
        ByteRows::copy(from, g.k, to);
        std::fill(to + g.k, to + length, uint8_t{0});
    }
}

// Columns of one or two panels of the result, whose rows begin with `first`.
void multiply_panel(const Int8MatMulArgs& g, const Quads& quads, const void* rows, int32_t* sum, size_t first,
                    size_t count, size_t col, size_t columns) {
    const size_t at = first * g.n + col;
    const int32_t zero = shifted_zero(g.a_zero, g.a.is_signed);
    PairTile tile{.ldy = g.n, .channels = columns};
    if (const auto* sums = std::get_if<int32_t*>(&g.result)) {
        quads.multiply(tile, rows, sum, count, col, zero, *sums + at);
    } else if (const auto* real = std::get_if<RealSums>(&g.result)) {
        PanelScales scales(real->bias, real->scale, col, columns);
        for (float& scale : scales.scale) scale *= real->factor;
        tile.bias = scales.bias, tile.scale = scales.scale;
        quads.multiply(tile, rows, sum, count, col, zero, real->y + at);
        // While the rows of the panel are in the L1 cache.
        const Finish f{.activation = real->activation,
                       .residual = real->residual ? real->residual + at : nullptr,
                       .ldr = static_cast<ptrdiff_t>(g.n)};
        if (f.needed()) finish(f, count, columns, real->y + at, static_cast<ptrdiff_t>(g.n));
    } else {
        const auto& bytes = std::get<Requantization>(g.result);
        const PanelScales scales(bytes.bias, bytes.scale, col, columns);
        const Rounder round(bytes);
        tile.bias = scales.bias, tile.scale = scales.scale, tile.round = &round;
        with_bytes(bytes, at, [&](auto* y) { quads.multiply(tile, rows, sum, count, col, zero, y); });
    }
}

StripScratch& strip_scratch() {
    static thread_local StripScratch scratch;
    return scratch;
}

}  // namespace

void convolve_quads(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    for_each_group_share(
        g, ith, nth, [&](size_t image, size_t group, size_t first, size_t last, const ConvShare& share) {
            convolve_strips(g, packed, image, group, first, last, share.out, share.out_end, strip_scratch());
        });
}

void multiply_quads(const Int8MatMulArgs& g, const std::byte* packed, int ith, int nth) {
    const ConvShare share = conv_share({g.m, g.n, g.k}, ith, nth);
    if (share.out == share.out_end || share.pixel == share.pixel_end) return;
    StripScratch& scratch = strip_scratch();
    const Quads quads(g.k, g.n, 1, 0, packed);
    for_each_strip(share.pixel, share.pixel_end, quads.count(), [&](size_t begin, size_t count) {
        scratch.reserve(count, quads.count());
        auto* copied = reinterpret_cast<uint8_t*>(scratch.rows.data());
        const void* rows = copied;
        if (g.a.is_signed)
            copy_rows<int8_t>(g, begin, count, quads.count() * 4, copied);
        else if (g.k % 4 == 0)
            rows = static_cast<const std::byte*>(g.a.data) + begin * g.k;
        else
            copy_rows<uint8_t>(g, begin, count, quads.count() * 4, copied);
        for (size_t col = share.out; col < share.out_end; col += kWidePanel)
            multiply_panel(g, quads, rows, scratch.sums.data(), begin, count, col,
                           std::min(kWidePanel, share.out_end - col));
    });
}

bool sums_up_quads() { return cpu_features().avx512_vnni; }

#else

void convolve_quads(const Int8Conv2dArgs&, const std::byte*, int, int) {}
void multiply_quads(const Int8MatMulArgs&, const std::byte*, int, int) {}
bool sums_up_quads() { return false; }

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(convolve_quads);
HWY_EXPORT(multiply_quads);
HWY_EXPORT(sums_up_quads);

bool has_byte_quads() { return HWY_DYNAMIC_DISPATCH(sums_up_quads)(); }

size_t packed_quads_bytes(size_t out_channels, size_t groups, size_t k) {
    const size_t padded = (out_channels / groups + kPairPanel - 1) / kPairPanel * kPairPanel;
    return groups * padded * ((k + 3) / 4 * 4 + sizeof(int32_t));
}

void pack_quads(const int8_t* w, size_t out_channels, size_t groups, size_t k, std::byte* packed) {
    std::memset(packed, 0, packed_quads_bytes(out_channels, groups, k));
    const size_t quads = (k + 3) / 4, of_group = out_channels / groups;
    const size_t padded = (of_group + kPairPanel - 1) / kPairPanel * kPairPanel;
    auto* to = reinterpret_cast<int8_t*>(packed);
    auto* sums = reinterpret_cast<int32_t*>(packed + groups * padded * quads * 4);
    for (size_t o = 0; o < out_channels; ++o) {
        const size_t channel = o / of_group * padded + o % of_group, lane = channel % kPairPanel;
        int8_t* panel = to + channel / kPairPanel * quads * kPairPanel * 4;
        for (size_t i = 0; i < k; ++i) {
            panel[(i / 4 * kPairPanel + lane) * 4 + i % 4] = w[o * k + i];
            sums[channel] += w[o * k + i];
        }
    }
}

void quad_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(convolve_quads)(args, packed, ith, nth);
}

void quad_matmul(const Int8MatMulArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(multiply_quads)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
