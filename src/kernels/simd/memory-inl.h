// Vectors of fixed size, loads and stores of their first few lanes, which touch no memory beyond them, and
// strided copies. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_SIMD_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_SIMD_MEMORY_INL_H_
#undef HEADRACE_KERNELS_SIMD_MEMORY_INL_H_
#else
#define HEADRACE_KERNELS_SIMD_MEMORY_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A tag of fixed size, so that arrays of vectors are possible.
using TileTag = hn::CappedTag<float, HWY_LANES(float)>;
using TileVec = hn::Vec<TileTag>;
inline constexpr size_t kLanes = HWY_LANES(float);

constexpr size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

// Lanes from `count` on are 0. Highway's own MaskedLoad reads the whole vector on
// targets without masked loads.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_first(D d, const T* p, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#else
    HWY_ALIGN T lanes[HWY_LANES(T)] = {};
    std::memcpy(lanes, p, count * sizeof(T));
    return hn::Load(d, lanes);
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_first(hn::Vec<D> v, D d, T* p, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#else
    HWY_ALIGN T lanes[HWY_LANES(T)];
    hn::Store(v, d, lanes);
    std::memcpy(p, lanes, count * sizeof(T));
#endif
}

// dst[i] = src[i * stride] for i < count, at most one vector of them.
HWY_INLINE void copy_vector(const float* src, size_t stride, size_t count, float* dst) {
    const hn::ScalableTag<float> d;
    if (stride == 1) {
        store_first(load_first(d, src, count), d, dst, count);
        return;
    }
#if HWY_TARGET != HWY_SCALAR
    if (stride == 2) {
        const size_t lanes = hn::Lanes(d), span = 2 * count - 1, low = span < lanes ? span : lanes;
        const auto first = load_first(d, src, low), second = load_first(d, src + low, span - low);
        store_first(hn::ConcatEven(d, second, first), d, dst, count);
        return;
    }
#endif
    for (size_t i = 0; i < count; ++i) dst[i] = src[i * stride];
}

// The same for any count.
HWY_INLINE void copy_strided(const float* src, size_t stride, size_t count, float* dst) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        if (stride == 1)
            hn::StoreU(hn::LoadU(d, src + i), d, dst + i);
        else
            copy_vector(src + i * stride, stride, lanes, dst + i);
    }
    if (i < count) copy_vector(src + i * stride, stride, count - i, dst + i);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_MEMORY_INL_H_
