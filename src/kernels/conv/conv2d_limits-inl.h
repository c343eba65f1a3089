// The lower and upper limit that an activation sets to a convolution's sums while they are in registers.
// Included once per SIMD target.
#if defined(HEADRACE_KERNELS_CONV2D_LIMITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_CONV2D_LIMITS_INL_H_
#undef HEADRACE_KERNELS_CONV2D_LIMITS_INL_H_
#else
#define HEADRACE_KERNELS_CONV2D_LIMITS_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_f32.h"
#include "kernels/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Whether the sums leave the registers finished: limits cost two instructions, other activations a pass.
inline bool finishes_in_registers(const Conv2dArgs& g) {
    return !g.residual && (g.activation == Activation::none || g.activation == Activation::relu ||
                           g.activation == Activation::clamp);
}

struct Limits {
    float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();

    explicit Limits(const Conv2dArgs& g) {
        if (!finishes_in_registers(g) || g.activation == Activation::none) return;
        low = g.activation == Activation::relu ? 0 : g.clamp_min;
        if (g.activation == Activation::clamp) high = g.clamp_max;
    }
    HWY_INLINE TileVec operator()(TileVec x) const {
        const TileTag d;
        return at_most(d, at_least(d, x, low), high);
    }
};

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_CONV2D_LIMITS_INL_H_
