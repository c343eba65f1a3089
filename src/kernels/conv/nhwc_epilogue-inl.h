// What follows the sums of a convolution whose output has its channels last. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_NHWC_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_NHWC_EPILOGUE_INL_H_
#undef HEADRACE_KERNELS_NHWC_EPILOGUE_INL_H_
#else
#define HEADRACE_KERNELS_NHWC_EPILOGUE_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_f32.h"
#include "kernels/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Limits and residual, which are applied while the sums are in registers; biases are where sums start. Other
// activations follow over the stored sums, and take the residual with them.
struct NhwcEpilogue {
    const float* residual = nullptr;
    bool residual_first = false, has_limits = false;
    float low = 0, high = 0;

    NhwcEpilogue() = default;
    // For sums that begin at y[at].
    NhwcEpilogue(const Conv2dArgs& g, size_t at) {
        if (is_late(g)) return;
        residual = g.residual ? g.residual + at : nullptr;
        residual_first = g.residual_first;
        has_limits = g.activation != Activation::none;
        const bool is_relu = g.activation == Activation::relu;
        low = is_relu ? 0 : g.clamp_min;
        high = is_relu ? std::numeric_limits<float>::infinity() : g.clamp_max;
    }

    // load(p) gives the residual's elements where the sums' lanes lie.
    template <class Load>
    HWY_INLINE TileVec apply(TileVec sum, Load load) const {
        const TileTag d;
        if (residual && residual_first) sum = hn::Add(sum, load(residual));
        if (has_limits) sum = at_most(d, at_least(d, sum, low), high);
        return residual && !residual_first ? hn::Add(sum, load(residual)) : sum;
    }

    static bool is_late(const Conv2dArgs& g) {
        return g.activation != Activation::none && g.activation != Activation::relu &&
               g.activation != Activation::clamp;
    }

    // What is left for sums of some pixels and channels that are stored at y[at].
    static void finish_rest(const Conv2dArgs& g, size_t pixels, size_t channels, size_t at) {
        if (!is_late(g)) return;
        const auto stride = static_cast<ptrdiff_t>(g.out_channels);
        finish({.activation = g.activation,
                .residual = g.residual ? g.residual + at : nullptr,
                .residual_first = g.residual_first,
                .ldr = stride},
               pixels, channels, g.y + at, stride);
    }
};

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_NHWC_EPILOGUE_INL_H_
