// Sums of products of codes of B, without a sign, and codes of A: what each instruction set has for them.
// Included once per SIMD target.
#if defined(HEADRACE_KERNELS_INT8_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_INT8_DOT_INL_H_
#undef HEADRACE_KERNELS_INT8_DOT_INL_H_
#else
#define HEADRACE_KERNELS_INT8_DOT_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "hwy/highway.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/memory-inl.h"

#if HWY_ARCH_ARM_A64 && HWY_OS_LINUX
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#undef HEADRACE_HAS_INT8_DOT
#define HEADRACE_HAS_INT8_DOT \
    (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

#if HEADRACE_HAS_INT8_DOT

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Int32Tag = hn::RebindToSigned<TileTag>;
using Int32Vec = hn::Vec<Int32Tag>;

// with_int8_dot(variant, fn) calls fn.operator()<Sums>() with one of the int8_dot_variants() that this CPU
// has: 0 is the fastest, others are what lesser CPUs take. A struct of sums says how large its tiles are:
// kRows by kVecs vectors of columns, and kGemvVecs for up to kGemvRows rows, which wait for memory. What is
// read of A stays in kBlockBytes, of the L2 cache.
//
// kTakesBytes: one sum takes codes of 8 bits; else these come in halves, with a sum for each. kTakesSigned:
// such codes have their zero taken away, and need no correction. Highway 1.0.3 names no such products.

#if HWY_TARGET == HWY_AVX3

// Highway's AVX3 leaves VNNI out.
#define HEADRACE_INT8_DOT __attribute__((target(HWY_TARGET_STR ",avx512vnni")))

struct VnniSums {
    static constexpr bool kTakesBytes = true, kTakesSigned = false;
    // The sums, the products and both halves of the codes are kept in registers. Few rows take a panel's
    // lines as they lie.
    static constexpr size_t kRows = 6, kVecs = 2, kGemvRows = 2, kGemvVecs = kPanelWidth / kLanes;
    static constexpr size_t kBlockBytes = 768 << 10;
    Int32Vec sums;

    HEADRACE_INT8_DOT HWY_INLINE void start(int32_t correction) { sums = hn::Set(Int32Tag(), correction); }
    HEADRACE_INT8_DOT HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        sums.raw = _mm512_dpbusd_epi32(sums.raw, b.raw, a.raw);
    }
    HEADRACE_INT8_DOT HWY_INLINE static Int32Vec total(const VnniSums (&of)[1], int32_t) {
        return of[0].sums;
    }
};

inline int int8_dot_variants() { return cpu_features().avx512_vnni ? 1 : 0; }

template <class Fn>
void with_int8_dot(int, Fn fn) {
    fn.template operator()<VnniSums>();
}

#else

#define HEADRACE_INT8_DOT

#endif

#if HWY_TARGET == HWY_AVX2

// Two neighbours' products are added up in 16 bits, where those of a group's codes of 4 bits have room:
// 32 / 2 · 15 · 127 < 2^15.
struct PairSums {
    static constexpr bool kTakesBytes = false, kTakesSigned = false;
    // One vector of columns beside four rows keeps the sums of both halves of codes in registers.
    static constexpr size_t kRows = 4, kVecs = 1, kGemvRows = 1, kGemvVecs = kPanelWidth / kLanes;
    static constexpr size_t kBlockBytes = 256 << 10;
    __m256i sums;

    HWY_INLINE void start(int32_t) { sums = _mm256_setzero_si256(); }
    HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(b.raw, a.raw));
        // Without this g++ adds the products of many quads up as a tree, for which there are too few
        // registers.
        asm("" : "+x"(sums));
    }
    HWY_INLINE static Int32Vec total(const PairSums (&of)[1], int32_t correction) {
        return Int32Vec{_mm256_add_epi32(_mm256_set1_epi32(correction), of[0].times(1))};
    }
    HWY_INLINE static Int32Vec total(const PairSums (&of)[2], int32_t correction) {
        return Int32Vec{_mm256_add_epi32(_mm256_set1_epi32(correction),
                                         _mm256_add_epi32(of[0].times(1), of[1].times(16)))};
    }

private:
    HWY_INLINE __m256i times(int16_t factor) const {
        return _mm256_madd_epi16(sums, _mm256_set1_epi16(factor));
    }
};

// VNNI in 256 bits, as CPUs without AVX-512 have it since Alder Lake, in VEX encoding. Those with AVX-512
// have the same in EVEX encoding, and come here only where a test chooses AVX2.
template <bool kVex>
struct QuadSums {
    static constexpr bool kTakesBytes = true, kTakesSigned = false;
    static constexpr size_t kRows = 4, kVecs = 2, kGemvRows = 1, kGemvVecs = kPanelWidth / kLanes;
    static constexpr size_t kBlockBytes = 256 << 10;
    __m256i sums;

    HWY_INLINE void start(int32_t correction) { sums = _mm256_set1_epi32(correction); }
    // Not as an intrinsic: all that is inlined around it would have to be compiled for such CPUs.
    HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        if constexpr (kVex)
            asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(b.raw), "x"(a.raw));
        else
            asm("vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(b.raw), "x"(a.raw));
    }
    HWY_INLINE static Int32Vec total(const QuadSums (&of)[1], int32_t) { return Int32Vec{of[0].sums}; }
};

inline bool has_vex_vnni() { return cpu_features().avx_vnni; }
inline bool has_evex_vnni() { return cpu_features().avx512_vnni_vl; }

inline int int8_dot_variants() { return has_vex_vnni() || has_evex_vnni() ? 2 : 1; }

template <class Fn>
void with_int8_dot(int variant, Fn fn) {
    if (variant == 0 && has_vex_vnni())
        fn.template operator()<QuadSums<true>>();
    else if (variant == 0 && has_evex_vnni())
        fn.template operator()<QuadSums<false>>();
    else
        fn.template operator()<PairSums>();
}

#endif

#if HWY_TARGET == HWY_NEON

// Products are added up in 16 bits, where those of a group's codes of 4 bits have room: 8 · 15 · 127 < 2^15.
struct WideningSums {
    static constexpr bool kTakesBytes = false, kTakesSigned = false;
    static constexpr size_t kRows = 4, kVecs = 1, kGemvRows = 1, kGemvVecs = 2;
    static constexpr size_t kBlockBytes = 256 << 10;
    int16x8_t low, high;  // of the vector's columns

    HWY_INLINE void start(int32_t) { low = high = vdupq_n_s16(0); }
    HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        const int8x16_t of_b = vreinterpretq_s8_s32(b.raw), of_a = vreinterpretq_s8_s32(a.raw);
        low = vmlal_s8(low, vget_low_s8(of_b), vget_low_s8(of_a));
        high = vmlal_high_s8(high, of_b, of_a);
        asm volatile("" : "+w"(low), "+w"(high));
    }
    HWY_INLINE static Int32Vec total(const WideningSums (&of)[1], int32_t correction) {
        return Int32Vec{vaddq_s32(vdupq_n_s32(correction), of[0].columns())};
    }
    HWY_INLINE static Int32Vec total(const WideningSums (&of)[2], int32_t correction) {
        const int32x4_t whole = vaddq_s32(vdupq_n_s32(correction), of[0].columns());
        return Int32Vec{vaddq_s32(whole, vshlq_n_s32(of[1].columns(), 4))};
    }

private:
    HWY_INLINE int32x4_t columns() const { return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)); }
};

// What the assembler must be told. A whole architecture forbids what the compiler may use of others around
// it, and so A64FX, which has SVE without these products, gets the extension alone; Binutils take that from
// Armv8.2 on.
#if defined(__ARM_FEATURE_DOTPROD)
#define HEADRACE_ALLOW_DOT ""
#elif defined(__ARM_FEATURE_SVE)
#define HEADRACE_ALLOW_DOT ".arch_extension dotprod\n\t"
#else
#define HEADRACE_ALLOW_DOT ".arch armv8.2-a+dotprod\n\t"
#endif

// CPUs since Armv8.2 multiply four pairs of signed bytes at once, and codes of 4 bits are the same with a
// sign.
struct DotSums {
    static constexpr bool kTakesBytes = true, kTakesSigned = true;
    static constexpr size_t kRows = 6, kVecs = 2, kGemvRows = 2, kGemvVecs = 4;
    static constexpr size_t kBlockBytes = 256 << 10;
    int32x4_t sums;

    HWY_INLINE void start(int32_t correction) { sums = vdupq_n_s32(correction); }
    // Not as an intrinsic: all that is inlined around it would have to be compiled for such CPUs. Volatile
    // keeps the order; else g++ loads the codes of many quads first, for which there are too few registers.
    HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        asm volatile(HEADRACE_ALLOW_DOT "sdot %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(b.raw), "w"(a.raw));
    }
    HWY_INLINE static Int32Vec total(const DotSums (&of)[1], int32_t) { return Int32Vec{of[0].sums}; }
};

inline bool has_dot_products() {
#if defined(__ARM_FEATURE_DOTPROD)  // what the compiler was told to build for: all of Apple's
    return true;
#elif HWY_OS_LINUX
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

inline int int8_dot_variants() { return has_dot_products() ? 2 : 1; }

template <class Fn>
void with_int8_dot(int variant, Fn fn) {
    if (variant == 0 && has_dot_products())
        fn.template operator()<DotSums>();
    else
        fn.template operator()<WideningSums>();
}

#endif

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_HAS_INT8_DOT
#endif  // HEADRACE_KERNELS_INT8_DOT_INL_H_
