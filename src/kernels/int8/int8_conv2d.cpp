#include "kernels/int8/int8_conv2d.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/conv/conv_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/int8_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/pair_tile-inl.h"
#include "kernels/int8/widened_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

static_assert(kPairPanel == kFilterPanel);  // conv_share() deals out panels

// Pixels whose windows are copied at a time: what they meet stays in the L2 cache beside a panel.
inline constexpr size_t kInt8Strip = 48;
inline constexpr size_t kWindowBytes = 192 << 10;
// Of a panel, so many pairs stay in the L1 cache for all pixels of the strip.
inline constexpr size_t kSlicePairs = 256;

struct Int8Scratch {
    std::vector<int16_t> windows;
    std::vector<int32_t> sums;
};

// One image's part of one group.
class Int8Convolution {
public:
    Int8Convolution(const Int8Conv2dArgs& g, const std::byte* packed, size_t image, size_t group,
                    Int8Scratch& scratch)
        : g_(g),
          image_(image),
          group_(group),
          pairs_((g.depth() + 1) / 2),
          of_group_(g.out_channels / g.groups),
          panels_(reinterpret_cast<const int16_t*>(packed) +
                  group * divide_up(of_group_, kPairPanel) * pairs_ * 2 * kPairPanel),
          channel_sums_(sums_of_pairs(packed, g.out_channels, g.groups, g.depth()) +
                        group * divide_up(of_group_, kPairPanel) * kPairPanel),
          round_(g.result),
          scratch_(scratch) {}

    // Pixels [first, last) of the image, output channels [out, out_end) of the group.
    void run(size_t first, size_t last, size_t out, size_t out_end) {
        const size_t most =
            std::clamp<size_t>(kWindowBytes / (pairs_ * 2 * sizeof(int16_t)), kPairRows, kInt8Strip);
        const size_t strips = divide_up(last - first, most);
        for (size_t i = 0; i < strips; ++i) {
            const size_t begin = first + i * (last - first) / strips;
            const size_t count = first + (i + 1) * (last - first) / strips - begin;
            if (scratch_.windows.size() < count * pairs_ * 2) scratch_.windows.resize(count * pairs_ * 2);
            scratch_.sums.resize(kInt8Strip * kPairPanel);
            const WindowCopier copier(g_, image_, group_, pairs_ * 2);
            if (g_.x.is_signed)
                copier.copy<int8_t>(begin, count, scratch_.windows.data());
            else
                copier.copy<uint8_t>(begin, count, scratch_.windows.data());
            for (size_t o = out; o < out_end; o += kPairPanel)
                panel(begin, count, o, std::min(kPairPanel, of_group_ - o));
        }
    }

private:
    void panel(size_t first, size_t count, size_t out, size_t channels) {
        alignas(64) int32_t init[kPairPanel];
        alignas(64) float bias[kPairPanel] = {}, scale[kPairPanel] = {};
        const size_t channel = group_ * of_group_ + out, tiles = divide_up(count, kPairRows);
        for (size_t c = 0; c < kPairPanel; ++c)
            init[c] = static_cast<int32_t>(-static_cast<uint32_t>(g_.x_zero) *
                                           static_cast<uint32_t>(channel_sums_[out + c]));
        if (g_.result.bias) std::copy_n(g_.result.bias + channel, channels, bias);
        std::copy_n(g_.result.scale + channel, channels, scale);
        PairTile tile{.lda = pairs_ * 2, .bias = bias, .scale = scale, .round = &round_};
        tile.ldy = g_.out_channels, tile.channels = channels;
        auto* y = static_cast<std::byte*>(g_.result.y) +
                  (image_ * g_.out_h * g_.out_w + first) * g_.out_channels + channel;
        const size_t slices = divide_up(pairs_, kSlicePairs);
        for (size_t s = 0; s < slices; ++s) {
            const size_t begin = s * pairs_ / slices, end = (s + 1) * pairs_ / slices;
            tile.b = panels_ + (out * pairs_ + begin * kPairPanel) * 2;
            tile.pairs = end - begin, tile.init = s == 0 ? init : nullptr;
            for (size_t i = 0, row = 0; i < tiles; ++i) {
                const size_t next = (i + 1) * count / tiles;
                tile.a = scratch_.windows.data() + (row * pairs_ + begin) * 2;
                tile.sums = scratch_.sums.data() + row * kPairPanel;
                tile.y = y + row * g_.out_channels;
                find_tile(s + 1 == slices, next - row)(tile);
                row = next;
            }
        }
    }

    PairTileFunction find_tile(bool is_last_slice, size_t rows) const {
        if (!is_last_slice) return find_pair_tile<void>(rows);
        return g_.result.is_signed ? find_pair_tile<int8_t>(rows) : find_pair_tile<uint8_t>(rows);
    }

    const Int8Conv2dArgs& g_;
    size_t image_, group_, pairs_, of_group_;
    const int16_t* panels_;
    const int32_t* channel_sums_;
    Rounder round_;
    Int8Scratch& scratch_;
};

}  // namespace

void convolve_int8(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local Int8Scratch scratch;
    const size_t pixels = g.out_h * g.out_w;
    const ConvShare share =
        conv_share({g.batch * g.groups * pixels, g.out_channels / g.groups, g.depth()}, ith, nth);
    if (share.out == share.out_end) return;
    for (size_t at = share.pixel; at < share.pixel_end;) {
        const size_t first = at % pixels, count = std::min(pixels - first, share.pixel_end - at);
        const size_t image = at / pixels / g.groups, group = at / pixels % g.groups;
        Int8Convolution(g, packed, image, group, scratch).run(first, first + count, share.out, share.out_end);
        at += count;
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(convolve_int8);

void int8_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(convolve_int8)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
