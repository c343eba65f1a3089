// Vectors of 16-bit floats widened to f32. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_SIMD_HALF_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_SIMD_HALF_FLOATS_INL_H_
#undef HEADRACE_KERNELS_SIMD_HALF_FLOATS_INL_H_
#else
#define HEADRACE_KERNELS_SIMD_HALF_FLOATS_INL_H_
#endif

#include <cstdint>

#include "base/half.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Highway's stand-in for instructions that convert f16 flushes subnormals and knows neither infinity nor NaN.
inline constexpr bool kConvertsHalfFloats =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON;

// Widens one vector of Half, which is hwy::float16_t or hwy::bfloat16_t.
template <class Half>
HWY_INLINE TileVec widen(const uint16_t* from) {
    const TileTag d;
    if constexpr (kConvertsHalfFloats || !hwy::IsSame<Half, hwy::float16_t>()) {
        const hn::Rebind<Half, TileTag> d16;
        return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const Half*>(from)));
    } else {
        alignas(64) float lanes[kLanes];
        for (size_t i = 0; i < kLanes; ++i) lanes[i] = half_to_float(from[i]);
        return hn::Load(d, lanes);
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_HALF_FLOATS_INL_H_
