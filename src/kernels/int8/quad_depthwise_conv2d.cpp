#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/int8/byte_quads.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/quad_depthwise_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/pair_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

inline constexpr size_t kTaps = 3;
inline constexpr size_t kMostBlock = 64;
// So many pixels of a row share the filters of a block, and what they read stays in the L1 cache for the
// next.
inline constexpr size_t kQuadPixels = 32;

// What the sums of a block of channels are rounded by. Sums lie in four vectors: of each 16 channels, the
// first has channels 0 to 3, the last 12 to 15. So bytes are interleaved within blocks of 16, and narrowed
// again.
struct BlockScales {
    alignas(64) float bias[kMostBlock] = {}, scale[kMostBlock] = {};
};

// kBytes: of a vector, as many as a block has channels. kIsWhole: a block has as many.
template <class X, class Y, size_t kBytes, bool kIsWhole>
class DepthwiseBlock {
    using Bytes8 = hn::CappedTag<uint8_t, kBytes>;
    using Sums32 = hn::Repartition<int32_t, Bytes8>;
    using Reals = hn::RebindToFloat<Sums32>;
    using ByteVec = hn::Vec<Bytes8>;
    using SumVec = hn::Vec<Sums32>;
    using RealVec = hn::Vec<Reals>;

public:
    // `packed`: the block's filters. Rows of the image begin with the block.
    DepthwiseBlock(const Int8Conv2dArgs& g, const std::byte* packed, const BlockScales& scales,
                   const X* const (&rows)[kTaps], size_t channels)
        : g_(g), rows_{rows[0], rows[1], rows[2]}, channels_(channels), round_(g.result) {
        const Bytes8 d8;
        const Sums32 d;
        const int32_t zero = g.x_zero + (std::is_signed_v<X> ? 128 : 0);
        HWY_UNROLL(3)
        for (size_t t = 0; t < kTaps; ++t) {
            HWY_UNROLL(4)
            for (size_t v = 0; v < 4; ++v)
                taps_[t][v] = hn::BitCast(
                    d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(packed) + (t * 4 + v) * kBytes));
        }
        const auto* sums = reinterpret_cast<const int32_t*>(packed + kTaps * 4 * kBytes);
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) {
            const size_t at = v * hn::Lanes(d);
            init_[v] = hn::Mul(hn::LoadU(d, sums + at), hn::Set(d, -zero));
            bias_[v] = hn::LoadU(Reals(), scales.bias + at),
            scale_[v] = hn::LoadU(Reals(), scales.scale + at);
        }
    }

    // Pixels [x, x + count) of a row of the output, which begins with the block.
    template <size_t kStride>
    HWY_INLINE void run(size_t x, size_t count, Y* y) const {
        ptrdiff_t at = static_cast<ptrdiff_t>(x * kStride) - g_.pad_left;
        Sums first = start(), second = start();
        first.add(column(at), taps_[0]);
        if constexpr (kStride == 1) {
            const Column both = column(at + 1);
            first.add(both, taps_[1]), second.add(both, taps_[0]);
        }
        for (size_t p = x; p < x + count; ++p, at += kStride) {
            if constexpr (kStride == 2) first.add(column(at + 1), taps_[1]);
            const Column last = column(at + 2);
            first.add(last, taps_[2]);
            Sums next = start();
            next.add(last, taps_[0]);
            if constexpr (kStride == 1) second.add(last, taps_[1]);
            store(first, y + p * g_.out_channels);
            first = kStride == 1 ? second : next;
            second = next;
        }
    }

private:
    // One column of the image: the bytes of the three rows and a fourth one, which the filter multiplies
    // with 0.
    struct Column {
        SumVec quads[4];
    };
    // As QuadSum, of any size.
    struct Sums {
        SumVec of[4];

        HWY_INLINE void add(const Column& column, const SumVec (&taps)[4]) {
            HWY_UNROLL(4)
            for (size_t v = 0; v < 4; ++v) {
                auto sum = of[v].raw;
                asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(column.quads[v].raw), "v"(taps[v].raw));
                of[v].raw = sum;
            }
        }
    };
    HWY_INLINE Sums start() const { return {{init_[0], init_[1], init_[2], init_[3]}}; }

    HWY_INLINE Column column(ptrdiff_t at) const {
        const Bytes8 d8;
        const hn::Repartition<uint16_t, Bytes8> d16;
        const Sums32 d;
        if (at < 0 || at >= static_cast<ptrdiff_t>(g_.in_w)) {
            const auto zero = hn::Set(d8, static_cast<uint8_t>(g_.x_zero + (std::is_signed_v<X> ? 128 : 0)));
            const SumVec all = hn::BitCast(d, zero);
            return {{all, all, all, all}};
        }
        const size_t place = static_cast<size_t>(at) * g_.in_channels;
        const ByteVec top = load(rows_[0] + place), middle = load(rows_[1] + place),
                      bottom = load(rows_[2] + place);
        const auto low = hn::BitCast(d16, hn::InterleaveLower(d8, top, middle));
        const auto high = hn::BitCast(d16, hn::InterleaveUpper(d8, top, middle));
        const auto low2 = hn::BitCast(d16, hn::InterleaveLower(d8, bottom, bottom));
        const auto high2 = hn::BitCast(d16, hn::InterleaveUpper(d8, bottom, bottom));
        return {{hn::BitCast(d, hn::InterleaveLower(d16, low, low2)),
                 hn::BitCast(d, hn::InterleaveUpper(d16, low, low2)),
                 hn::BitCast(d, hn::InterleaveLower(d16, high, high2)),
                 hn::BitCast(d, hn::InterleaveUpper(d16, high, high2))}};
    }
    HWY_INLINE ByteVec load(const X* x) const {
        const Bytes8 d8;
        const auto* from = reinterpret_cast<const uint8_t*>(x);
        const ByteVec v =
            kIsWhole ? hn::LoadU(d8, from) : hn::MaskedLoad(hn::FirstN(d8, channels_), d8, from);
        return std::is_signed_v<X> ? hn::Xor(v, hn::Set(d8, uint8_t{128})) : v;
    }
    HWY_INLINE void store(const Sums& sums, Y* y) const {
        const Bytes8 d8;
        const ByteVec bytes = hn::BitCast(d8, round_(sums.of, bias_, scale_));
        auto* to = reinterpret_cast<uint8_t*>(y);
        kIsWhole ? hn::StoreU(bytes, d8, to) : hn::BlendedStore(bytes, hn::FirstN(d8, channels_), d8, to);
    }

    const Int8Conv2dArgs& g_;
    const X* rows_[kTaps];
    size_t channels_;
    FourRounder<Y, Sums32> round_;
    SumVec taps_[kTaps][4], init_[4];
    RealVec bias_[4], scale_[4];
};

struct DepthwiseScratch {
    std::vector<BlockScales> scales;
    std::vector<int8_t> outside;
};

// Channels from `first` on that are summed up together.
size_t block_bytes(size_t first, size_t channels) { return depthwise_block(channels - first); }

template <class X, class Y>
class QuadDepthwise {
public:
    QuadDepthwise(const Int8Conv2dArgs& g, const std::byte* packed, DepthwiseScratch& scratch)
        : g_(g), packed_(packed), scratch_(scratch), blocks_(divide_up(g.in_channels, kMostBlock)) {
        scratch.outside.assign(g.in_w * g.in_channels, static_cast<int8_t>(g.x_zero));
        scratch.scales.resize(blocks_);
        for (size_t b = 0; b < blocks_; ++b) order_scales(b * kMostBlock, scratch.scales[b]);
    }
    size_t blocks() const { return blocks_; }

    // Blocks [first, last) of a row of the output.
    void run(size_t row, size_t first, size_t last) const {
        const size_t oy = row % g_.out_h, of_row = g_.in_w * g_.in_channels;
        const X* image = static_cast<const X*>(g_.x.data) + row / g_.out_h * g_.in_h * of_row;
        const X* rows[kTaps];
        for (size_t ky = 0; ky < kTaps; ++ky) {
            const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g_.stride_h + ky * g_.dilation_h) - g_.pad_top;
            rows[ky] = y >= 0 && y < static_cast<ptrdiff_t>(g_.in_h)
                           ? image + static_cast<size_t>(y) * of_row
                           : reinterpret_cast<const X*>(scratch_.outside.data());
        }
        Y* y = static_cast<Y*>(g_.result.y) + row * g_.out_w * g_.out_channels;
        for (size_t x = 0; x < g_.out_w; x += kQuadPixels) {
            const size_t count = std::min(kQuadPixels, g_.out_w - x);
            for (size_t b = first; b < last; ++b) {
                const size_t channel = b * kMostBlock, channels = g_.in_channels - channel;
                switch (block_bytes(channel, g_.in_channels)) {
                    case 64:
                        channels >= 64 ? block<64, true>(rows, channel, x, count, y)
                                       : block<64, false>(rows, channel, x, count, y);
                        break;
                    case 32:
                        channels == 32 ? block<32, true>(rows, channel, x, count, y)
                                       : block<32, false>(rows, channel, x, count, y);
                        break;
                    default:
                        channels == 16 ? block<16, true>(rows, channel, x, count, y)
                                       : block<16, false>(rows, channel, x, count, y);
                }
            }
        }
    }

private:
    // Within a block's vectors as DepthwiseBlock has the channels.
    void order_scales(size_t first, BlockScales& to) const {
        const size_t channels = std::min(g_.in_channels - first, kMostBlock);
        BlockScales plain;
        if (g_.result.bias) std::copy_n(g_.result.bias + first, channels, plain.bias);
        std::copy_n(g_.result.scale + first, channels, plain.scale);
        const size_t bytes = block_bytes(first, g_.in_channels), lanes = bytes / 4;
        for (size_t c = 0; c < bytes; c += 4) {
            const size_t place = c % 16 / 4 * lanes + c / 16 * 4;
            std::copy_n(plain.bias + c, 4, to.bias + place);
            std::copy_n(plain.scale + c, 4, to.scale + place);
        }
    }
    template <size_t kBytes, bool kIsWhole>
    void block(const X* const (&rows)[kTaps], size_t channel, size_t x, size_t count, Y* y) const {
        const X* const from[kTaps] = {rows[0] + channel, rows[1] + channel, rows[2] + channel};
        const DepthwiseBlock<X, Y, kBytes, kIsWhole> filter(g_, packed_ + channel * kBytesOfChannel,
                                                            scratch_.scales[channel / kMostBlock], from,
                                                            g_.in_channels - channel);
        g_.stride_w == 1 ? filter.template run<1>(x, count, y + channel)
                         : filter.template run<2>(x, count, y + channel);
    }

    static constexpr size_t kBytesOfChannel = kTaps * 4 + sizeof(int32_t);

    const Int8Conv2dArgs& g_;
    const std::byte* packed_;
    DepthwiseScratch& scratch_;
    size_t blocks_;
};

template <class X, class Y>
void convolve_depthwise(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local DepthwiseScratch scratch;
    const QuadDepthwise<X, Y> depthwise(g, packed, scratch);
    // Blocks of rows are dealt out, since a small image has few rows.
    const size_t blocks = depthwise.blocks(), all = g.batch * g.out_h * blocks;
    const size_t end = all * (ith + 1) / nth;
    for (size_t at = all * ith / nth; at < end;) {
        const size_t first = at % blocks, last = std::min(blocks, first + end - at);
        depthwise.run(at / blocks, first, last);
        at += last - first;
    }
}

}  // namespace

void convolve_depthwise_quads(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    if (g.x.is_signed)
        g.result.is_signed ? convolve_depthwise<int8_t, int8_t>(g, packed, ith, nth)
                           : convolve_depthwise<int8_t, uint8_t>(g, packed, ith, nth);
    else
        g.result.is_signed ? convolve_depthwise<uint8_t, int8_t>(g, packed, ith, nth)
                           : convolve_depthwise<uint8_t, uint8_t>(g, packed, ith, nth);
}

#else

void convolve_depthwise_quads(const Int8Conv2dArgs&, const std::byte*, int, int) {}

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(convolve_depthwise_quads);

size_t packed_depthwise_quads_bytes(size_t channels) {
    const size_t whole = channels / 64 * 64, rest = channels - whole;
    return (whole + (rest ? depthwise_block(rest) : 0)) * (3 * 4 + sizeof(int32_t));
}

void pack_depthwise_quads(const int8_t* w, size_t channels, std::byte* packed) {
    std::memset(packed, 0, packed_depthwise_quads_bytes(channels));
    for (size_t first = 0; first < channels; first += 64) {
        const size_t bytes = depthwise_block(channels - first);
        auto* taps = reinterpret_cast<int8_t*>(packed + first * 16);
        auto* sums = reinterpret_cast<int32_t*>(packed + first * 16 + bytes * 12);
        for (size_t c = 0; c < std::min(bytes, channels - first); ++c) {
            const size_t vector = c % 16 / 4, lane = c / 16 * 4 + c % 4;
            for (size_t ky = 0; ky < 3; ++ky)
                for (size_t kx = 0; kx < 3; ++kx) {
                    const int8_t number = w[(first + c) * 9 + ky * 3 + kx];
                    taps[(kx * 4 + vector) * bytes + lane * 4 + ky] = number;
                    sums[vector * bytes / 4 + lane] += number;
                }
        }
    }
}

void quad_depthwise_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(convolve_depthwise_quads)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
