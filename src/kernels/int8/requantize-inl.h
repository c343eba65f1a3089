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

    float high() const { return high_; }
    int32_t zero() const { return zero_; }
    int32_t lowest() const { return static_cast<int32_t>(low_) + zero_; }

private:
    static constexpr float kWhole = 12582912;  // 1.5 * 2^23
    static constexpr int32_t kWholeBits = 0x4B400000;

    int32_t zero_;
    float low_, high_;
};

#if HWY_TARGET == HWY_AVX3
// Halves to even; numbers beyond an int become the lowest.
HWY_INLINE __m512i to_whole(__m512 x) { return _mm512_cvtps_epi32(x); }
HWY_INLINE __m256i to_whole(__m256 x) { return _mm256_cvtps_epi32(x); }
HWY_INLINE __m128i to_whole(__m128 x) { return _mm_cvtps_epi32(x); }
HWY_INLINE __m512i pack_words(__m512i a, __m512i b) { return _mm512_packs_epi32(a, b); }
HWY_INLINE __m256i pack_words(__m256i a, __m256i b) { return _mm256_packs_epi32(a, b); }
HWY_INLINE __m128i pack_words(__m128i a, __m128i b) { return _mm_packs_epi32(a, b); }
template <class T>
HWY_INLINE __m512i pack_bytes(__m512i a, __m512i b) {
    return std::is_signed_v<T> ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
}
template <class T>
HWY_INLINE __m256i pack_bytes(__m256i a, __m256i b) {
    return std::is_signed_v<T> ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
}
template <class T>
HWY_INLINE __m128i pack_bytes(__m128i a, __m128i b) {
    return std::is_signed_v<T> ? _mm_packs_epi16(a, b) : _mm_packus_epi16(a, b);
}

// Four vectors of sums at once: what is too large is left to the instructions that narrow, except above,
// where the conversion has no room. D: of the sums.
template <class T, class D = Int8Tag>
class FourRounder {
public:
    using Sums = hn::Vec<D>;
    using Reals = hn::Vec<hn::RebindToFloat<D>>;

    explicit FourRounder(const Requantization& r)
        : FourRounder(static_cast<float>(r.high - r.zero), r.zero, r.low) {}
    explicit FourRounder(const Rounder& r) : FourRounder(r.high(), r.zero(), r.lowest()) {}

    // Each block of 16 bytes of y takes four bytes of each vector, from the same block there.
    HWY_INLINE Sums operator()(const Sums (&sum)[4], const Reals (&bias)[4], const Reals (&scale)[4]) const {
        const hn::Repartition<T, D> d8;
        Sums whole[4];
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) {
            const Reals real =
                hn::Mul(hn::Add(hn::ConvertTo(hn::RebindToFloat<D>(), sum[v]), bias[v]), scale[v]);
            // Min in this order keeps a NaN, which the conversion turns into the lowest integer.
            whole[v].raw = to_whole(hn::Min(high_, real).raw);
        }
        Words low, high;
        low.raw = pack_words(whole[0].raw, whole[1].raw), high.raw = pack_words(whole[2].raw, whole[3].raw);
        low = hn::SaturatedAdd(low, zero_), high = hn::SaturatedAdd(high, zero_);
        hn::Vec<decltype(d8)> bytes;
        bytes.raw = pack_bytes<T>(low.raw, high.raw);
        return hn::BitCast(D(), hn::Max(bytes, lowest_));
    }

private:
    using Words = hn::Vec<hn::Repartition<int16_t, D>>;

    FourRounder(float high, int32_t zero, int32_t lowest)
        : high_(hn::Set(hn::RebindToFloat<D>(), high)),
          zero_(hn::Set(hn::Repartition<int16_t, D>(), static_cast<int16_t>(zero))),
          lowest_(hn::Set(hn::Repartition<T, D>(), static_cast<T>(lowest))) {}

    Reals high_;
    Words zero_;
    hn::Vec<hn::Repartition<T, D>> lowest_;
};
#endif

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
