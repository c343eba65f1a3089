// Sums of products as bytes. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_REQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_REQUANTIZE_INL_H_
#undef HEADRACE_KERNELS_REQUANTIZE_INL_H_
#else
#define HEADRACE_KERNELS_REQUANTIZE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/int8/requantization.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Int8Tag = hn::RebindToSigned<TileTag>;
using Int8Vec = hn::Vec<Int8Tag>;

// Limits that hold before the zero point is added, where integers of any size are still floats.
class Rounder {
public:
    explicit Rounder(const Requantization& r)
        : zero_(r.zero),
          low_(static_cast<float>(r.low - r.zero)),
          high_(static_cast<float>(r.high - r.zero)) {}

    HWY_INLINE Int8Vec operator()(TileVec x) const {
        const TileTag d;
        const TileVec limited = hn::Min(hn::Max(x, hn::Set(d, low_)), hn::Set(d, high_));
        return hn::Add(hn::NearestInt(limited), hn::Set(Int8Tag(), zero_));
    }

private:
    int32_t zero_;
    float low_, high_;
};

// Stores the lanes of numbers that fit.
template <class T>
HWY_INLINE void store_bytes(Int8Vec x, T* y) {
    const hn::Rebind<T, Int8Tag> d;
    hn::StoreU(hn::DemoteTo(d, x), d, y);
}
template <class T>
HWY_INLINE void store_first_bytes(Int8Vec x, T* y, size_t count) {
    if constexpr (kLanes > 1) {
        T lanes[kLanes];
        store_bytes(x, lanes);
        std::memcpy(y, lanes, count);
    }
}

template <class T>
HWY_INLINE Int8Vec load_bytes(const T* x) {
    return hn::PromoteTo(Int8Tag(), hn::LoadU(hn::Rebind<T, Int8Tag>(), x));
}
template <class T>
HWY_INLINE Int8Vec load_first_bytes(const T* x, size_t count) {
    T lanes[kLanes] = {};
    if constexpr (kLanes > 1) std::memcpy(lanes, x, count);
    return load_bytes(lanes);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_REQUANTIZE_INL_H_
