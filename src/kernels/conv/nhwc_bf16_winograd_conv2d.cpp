#include "base/half.h"
#include "kernels/conv/nhwc_bf16_conv2d.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_bf16_winograd_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nhwc_winograd-inl.h"
#include "kernels/gemm/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

// Pixels and filters are rounded once they are transformed.
struct RoundedTiles {
    using B = Bf16Pairs;
    using Input = uint16_t;
    static size_t depth(size_t channels) { return divide_up(channels, 2); }
    static size_t width(size_t channels) { return divide_up(channels, kLanes) * kLanes; }
    static HWY_INLINE void store(TileVec v, uint16_t* to) {
        const hn::Half<hn::Repartition<uint16_t, TileTag>> d;
        hn::StoreU(Bf16Pairs::round(v), d, to);
    }
    // Lanes without a channel are 0.
    static HWY_INLINE void store_channels(TileVec v, uint16_t* to, size_t) { store(v, to); }
    static double weight(const uint32_t* panel, size_t width, size_t channel, size_t out) {
        const uint32_t pair = panel[channel / 2 * width + out];
        return bfloat_to_float(static_cast<uint16_t>(channel % 2 ? pair >> 16 : pair));
    }
};

}  // namespace

void bf16_winograd_conv2d(const Conv2dArgs& g, const uint16_t* packed, int ith, int nth) {
    convolve_tiles<RoundedTiles>(g, reinterpret_cast<const uint32_t*>(packed), ith, nth);
}

#else

void bf16_winograd_conv2d(const Conv2dArgs&, const uint16_t*, int, int) {}

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(bf16_winograd_conv2d);

size_t packed_bf16_winograd_filter_bytes(size_t in_channels, size_t out_channels, size_t groups) {
    return groups * kProducts * packed_bf16_bytes(in_channels, out_channels / groups);
}

void pack_bf16_winograd_filters(const float* w, size_t in_channels, size_t out_channels, size_t groups,
                                uint16_t* packed) {
    const size_t size = packed_bf16_bytes(in_channels, out_channels / groups) / sizeof(*packed);
    pack_filters_of_groups(w, in_channels, out_channels, groups, size, packed,
                           [&](const float* product, uint16_t* to) {
                               pack_as_bf16(product, static_cast<ptrdiff_t>(out_channels), 1, in_channels,
                                            out_channels / groups, to);
                           });
}

void nhwc_bf16_winograd_conv2d(const Conv2dArgs& args, const uint16_t* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(bf16_winograd_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
