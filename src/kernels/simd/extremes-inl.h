// The largest and the smallest of f32 vectors and runs, which are NaN if any element is. Included once per
// SIMD target.
#if defined(HEADRACE_KERNELS_SIMD_EXTREMES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_SIMD_EXTREMES_INL_H_
#undef HEADRACE_KERNELS_SIMD_EXTREMES_INL_H_
#else
#define HEADRACE_KERNELS_SIMD_EXTREMES_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kLargest>
inline constexpr float kWorst = kLargest ? -std::numeric_limits<float>::infinity()
                                         : std::numeric_limits<float>::infinity();

// The better one of a and b in each lane, and NaN where b is: that is what x86 gives. Highway's Max and Min
// give the number on Arm and on its fallbacks.
template <bool kLargest, class V>
HWY_INLINE V better_or_second(V a, V b) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    return hn::IfThenElse(kLargest ? hn::Gt(a, b) : hn::Lt(a, b), a, b);
#elif HWY_TARGET == HWY_NEON
    if constexpr (hwy::IsSame<hn::TFromV<V>, double>())
        return V{kLargest ? vmaxq_f64(a.raw, b.raw) : vminq_f64(a.raw, b.raw)};
    else if constexpr (sizeof(V) == 8)  // up to two lanes
        return V{kLargest ? vmax_f32(a.raw, b.raw) : vmin_f32(a.raw, b.raw)};
    else
        return V{kLargest ? vmaxq_f32(a.raw, b.raw) : vminq_f32(a.raw, b.raw)};
#else
    return kLargest ? hn::Max(a, b) : hn::Min(a, b);
#endif
}

// The better one of a and b in each lane.
template <bool kLargest, class D, class V = hn::Vec<D>>
HWY_INLINE V better_of(D d, V a, V b) {
    const V better = better_or_second<kLargest>(a, b);
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    (void)d;
    return hn::IfThenElse(hn::IsNaN(a), a, better);
#elif HWY_TARGET == HWY_NEON
    (void)d;
    return better;  // Arm's own instructions give NaN where either is
#else
    return hn::Or(better, hn::VecFromMask(d, hn::IsNaN(a)));  // a lane whose bits are all set is NaN
#endif
}

// The best of n neighbours.
template <bool kLargest>
HWY_INLINE float best_of_run(const float* x, size_t n) {
    const TileTag d;
    TileVec best[4];
    for (TileVec& b : best) b = hn::Set(d, kWorst<kLargest>);
    size_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v)
            best[v] = better_of<kLargest>(d, best[v], hn::LoadU(d, x + i + v * kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) best[0] = better_of<kLargest>(d, best[0], hn::LoadU(d, x + i));
    best[0] = better_of<kLargest>(d, best[0], best[1]);
    best[2] = better_of<kLargest>(d, best[2], best[3]);
    HWY_ALIGN float lanes[kLanes];
    hn::Store(better_of<kLargest>(d, best[0], best[2]), d, lanes);
    float all = kWorst<kLargest>;
    const auto take = [&all](float v) { all = (kLargest ? v > all : v < all) || v != v ? v : all; };
    for (const float lane : lanes) take(lane);
    for (; i < n; ++i) take(x[i]);
    return all;
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_EXTREMES_INL_H_
