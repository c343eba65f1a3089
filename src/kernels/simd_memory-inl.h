// Loads and stores of the first few lanes of a vector, which touch no memory beyond them.
// Included once per SIMD target.
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

// Lanes from `count` on are 0. Highway's own MaskedLoad reads the whole vector on targets without masked loads.
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

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_MEMORY_INL_H_
