#include "kernels/tensor/arg_reduce_f32.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/arg_reduce_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/extremes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// The first position where is_wanted(v) holds for a vector or for an element; there is one.
template <class IsWanted>
HWY_INLINE size_t find_first(const float* x, size_t n, IsWanted is_wanted) {
    const TileTag d;
    const hn::CappedTag<float, 1> one;
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        const intptr_t lane = hn::FindFirstTrue(d, is_wanted(d, hn::LoadU(d, x + i)));
        if (lane >= 0) return i + static_cast<size_t>(lane);
    }
    while (i + 1 < n && !hn::AllTrue(one, is_wanted(one, hn::Load(one, x + i)))) ++i;
    return i;
}

// The values decide on a block that stays in the first cache, and only that one is searched for the position.
template <bool kLargest>
size_t arg_extreme(const float* x, size_t n) {
    constexpr size_t kBlock = 4096;
    size_t block = 0;
    float best = kWorst<kLargest>;
    for (size_t begin = 0; begin < n && !std::isnan(best); begin += kBlock) {
        const float candidate = best_of_run<kLargest>(x + begin, std::min(kBlock, n - begin));
        if (!(kLargest ? candidate > best : candidate < best) && !std::isnan(candidate)) continue;
        best = candidate;
        block = begin;
    }
    const size_t count = std::min(kBlock, n - block);
    if (std::isnan(best))
        return block + find_first(x + block, count, [](auto, auto v) HWY_ATTR { return hn::IsNaN(v); });
    return block + find_first(x + block, count,
                              [best](auto d, auto v) HWY_ATTR { return hn::Eq(v, hn::Set(d, best)); });
}

}  // namespace

size_t arg_extreme_target(bool is_largest, const float* x, size_t n) {
    return is_largest ? arg_extreme<true>(x, n) : arg_extreme<false>(x, n);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(arg_extreme_target);

size_t arg_extreme_f32(bool is_largest, const float* x, size_t n) {
    return HWY_DYNAMIC_DISPATCH(arg_extreme_target)(is_largest, x, n);
}

}  // namespace headrace::kernels
#endif
