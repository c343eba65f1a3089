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
#include <type_traits>

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
        // A float so large that its last bit is worth 1 takes the integer nearest to what is added, at no
        // cost for numbers that are out of an int's range.
        const Int8Vec bits = hn::BitCast(Int8Tag(), hn::Add(limited, hn::Set(d, kWhole)));
        return hn::Sub(bits, hn::Set(Int8Tag(), kWholeBits - zero_));
    }

private:
    static constexpr float kWhole = 12582912;  // 1.5 * 2^23
    static constexpr int32_t kWholeBits = 0x4B400000;

    int32_t zero_;
    float low_, high_;
};

// Stores the lanes of numbers that fit.
template <class T>
HWY_INLINE void store_bytes(Int8Vec x, T* y) {
    const hn::Rebind<T, Int8Tag> d;
    hn::StoreU(hn::DemoteTo(d, x), d, y);
}
// Vectors of numbers that fit, one after the other.
template <class T, size_t kCount>
HWY_INLINE void store_byte_vectors(const Int8Vec (&x)[kCount], T* y) {
#if HWY_TARGET == HWY_AVX2
    if constexpr (kCount == 2) {
        const __m256i words = _mm256_packs_epi32(x[0].raw, x[1].raw);  // quarters: 0, 2, 1, 3
        const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
        const __m128i bytes = std::is_signed_v<T> ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm_shuffle_epi32(bytes, _MM_SHUFFLE(3, 1, 2, 0)));
        return;
    }
#endif
    HWY_UNROLL(16)
    for (size_t v = 0; v < kCount; ++v) store_bytes(x[v], y + v * kLanes);
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
