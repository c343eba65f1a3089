// How a convolution of integers is dealt out to threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/conv/conv_share.h"
#include "kernels/int8/int8_conv2d.h"

namespace headrace::kernels {

static_assert(kPairPanel == kFilterPanel);  // conv_share() deals out panels

// Calls run(image, group, first, last, share) for each image's part of a group of which thread ith of nth
// computes pixels [first, last), of the output channels that the share has.
template <class Run>
void for_each_group_share(const Int8Conv2dArgs& g, int ith, int nth, Run run) {
    const size_t pixels = g.out_h * g.out_w;
    const ConvShare share =
        conv_share({g.batch * g.groups * pixels, g.out_channels / g.groups, g.depth()}, ith, nth);
    if (share.out == share.out_end) return;
    for (size_t at = share.pixel; at < share.pixel_end;) {
        const size_t first = at % pixels, count = std::min(pixels - first, share.pixel_end - at);
        run(at / pixels / g.groups, at / pixels % g.groups, first, first + count, share);
        at += count;
    }
}

}  // namespace headrace::kernels
