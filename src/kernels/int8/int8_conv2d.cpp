#include "kernels/int8/int8_conv2d.h"

#include <algorithm>

#include "kernels/int8/int8_conv_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/int8_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/pair_strip-inl.h"
#include "kernels/int8/widened_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// One image's part of one group.
class Int8Convolution {
public:
    Int8Convolution(const Int8Conv2dArgs& g, const std::byte* packed, size_t image, size_t group,
                    StripScratch& scratch)
        : g_(g),
          image_(image),
          group_(group),
          pairs_((g.depth() + 1) / 2),
          of_group_(g.out_channels / g.groups),
          panels_(reinterpret_cast<const int16_t*>(packed) +
                  group * divide_up(of_group_, kPairPanel) * pairs_ * 2 * kPairPanel),
          channel_sums_(sums_of_pairs(packed, g.out_channels, g.groups, g.depth(), sizeof(int16_t)) +
                        group * divide_up(of_group_, kPairPanel) * kPairPanel),
          round_(g.result),
          scratch_(scratch) {}

    // Pixels [first, last) of the image, output channels [out, out_end) of the group.
    void run(size_t first, size_t last, size_t out, size_t out_end) {
        for_each_strip(first, last, pairs_, [&](size_t begin, size_t count) {
            scratch_.reserve(count, pairs_);
            const WindowCopier<> copier(g_, image_, group_, pairs_ * 2);
            if (g_.x.is_signed)
                copier.copy<int8_t>(begin, count, scratch_.rows.data());
            else
                copier.copy<uint8_t>(begin, count, scratch_.rows.data());
            for (size_t o = out; o < out_end; o += kPairPanel)
                panel(begin, count, o, std::min(kPairPanel, of_group_ - o));
        });
    }

private:
    void panel(size_t first, size_t count, size_t out, size_t channels) {
        alignas(64) int32_t init[kPairPanel];
        alignas(64) float bias[kPairPanel] = {}, scale[kPairPanel] = {};
        const size_t channel = group_ * of_group_ + out;
        for (size_t c = 0; c < kPairPanel; ++c)
            init[c] = static_cast<int32_t>(-static_cast<uint32_t>(g_.x_zero) *
                                           static_cast<uint32_t>(channel_sums_[out + c]));
        if (g_.result.bias) std::copy_n(g_.result.bias + channel, channels, bias);
        std::copy_n(g_.result.scale + channel, channels, scale);
        PairTile tile{.init = init, .bias = bias, .scale = scale, .round = &round_};
        tile.ldy = g_.out_channels, tile.channels = channels;
        const int16_t* filters = panels_ + out * pairs_ * 2;
        const size_t at = (image_ * g_.out_h * g_.out_w + first) * g_.out_channels + channel;
        if (g_.result.is_signed)
            multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, filters, pairs_,
                           static_cast<int8_t*>(g_.result.y) + at);
        else
            multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, filters, pairs_,
                           static_cast<uint8_t*>(g_.result.y) + at);
    }

    const Int8Conv2dArgs& g_;
    size_t image_, group_, pairs_, of_group_;
    const int16_t* panels_;
    const int32_t* channel_sums_;
    Rounder round_;
    StripScratch& scratch_;
};

}  // namespace

void convolve_int8(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local StripScratch scratch;
    for_each_group_share(
        g, ith, nth, [&](size_t image, size_t group, size_t first, size_t last, const ConvShare& share) {
            Int8Convolution(g, packed, image, group, scratch).run(first, last, share.out, share.out_end);
        });
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
