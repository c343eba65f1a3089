#include "kernels/conv/nhwc_winograd_conv2d_f32.h"

#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_winograd_conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nhwc_winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

void nhwc_winograd_conv2d(const Conv2dArgs& g, const float* packed, int ith, int nth) {
    convolve_tiles<PlainTiles>(g, packed, ith, nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(nhwc_winograd_conv2d);

bool has_nhwc_winograd_conv2d(const Conv2dArgs& g) {
    constexpr size_t kChannels = 32, kTiles = 16;
    const size_t tiles = g.batch * ((g.out_h + 1) / 2) * ((g.out_w + 1) / 2),
                 pixels = g.batch * g.out_h * g.out_w;
    return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
           g.dilation_w == 1 && g.in_channels / g.groups >= kChannels &&
           g.out_channels / g.groups >= kChannels && tiles >= kTiles &&
           3 * kProducts * tiles <= 2 * 9 * pixels;
}

size_t packed_winograd_filters_size(size_t in_channels, size_t out_channels, size_t groups) {
    return groups * kProducts * packed_bytes(in_channels, out_channels / groups) / sizeof(float);
}

void pack_winograd_filters(const float* w, size_t in_channels, size_t out_channels, size_t groups,
                           float* packed) {
    const size_t size = packed_bytes(in_channels, out_channels / groups) / sizeof(float);
    pack_filters_of_groups(
        w, in_channels, out_channels, groups, size, packed, [&](const float* product, float* to) {
            pack(product, static_cast<ptrdiff_t>(out_channels), 1, in_channels, out_channels / groups, to);
        });
}

void nhwc_winograd_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(nhwc_winograd_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
