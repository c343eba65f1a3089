// Some rounded rows of A times some columns of a packed panel of codes. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_INT8_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_INT8_TILE_INL_H_
#undef HEADRACE_KERNELS_INT8_TILE_INL_H_
#else
#define HEADRACE_KERNELS_INT8_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/highway.h"
#include "kernels/gemm_f32.h"
#include "kernels/rounded_rows-inl.h"
#include "kernels/simd_memory-inl.h"

#undef HEADRACE_HAS_INT8_TILE
#define HEADRACE_HAS_INT8_TILE (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)

#if HEADRACE_HAS_INT8_TILE

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Int32Tag = hn::RebindToSigned<TileTag>;
using Int32Vec = hn::Vec<Int32Tag>;

// Sums of products of codes of B, without a sign, and codes of A. Highway 1.0.3 has no name for products of
// bytes, and its AVX3 leaves VNNI out.
#if HWY_TARGET == HWY_AVX3

#define HEADRACE_BYTES __attribute__((target(HWY_TARGET_STR ",avx512vnni")))

// Two vectors of columns beside six rows keep the sums, the products and both halves of the codes in
// registers. Few rows wait for memory, and so take a panel's lines as they lie. For a slice of depth a
// panel's codes stay in the L1 cache, those of rows in the L2 cache.
inline constexpr size_t kInt8Rows = 6, kInt8Vecs = 2, kFewRows = 2, kFewRowsVecs = kPanelWidth / kLanes;
inline constexpr size_t kSliceGroups = 16, kInt8BlockBytes = 768 << 10;

struct ByteSums {
    static constexpr bool kTakesBytes = true;
    Int32Vec sums;

    HEADRACE_BYTES HWY_INLINE void start(int32_t correction) { sums = hn::Set(Int32Tag(), correction); }
    HEADRACE_BYTES HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        sums.raw = _mm512_dpbusd_epi32(sums.raw, b.raw, a.raw);
    }
    HEADRACE_BYTES HWY_INLINE static Int32Vec total(const ByteSums (&of)[1], int32_t) { return of[0].sums; }
};

inline bool multiplies_bytes() { return __builtin_cpu_supports("avx512vnni"); }

#else

#define HEADRACE_BYTES

// One vector of columns beside four rows keeps the sums of both halves of codes in registers.
inline constexpr size_t kInt8Rows = 4, kInt8Vecs = 1, kFewRows = 1, kFewRowsVecs = kPanelWidth / kLanes;
inline constexpr size_t kSliceGroups = 16, kInt8BlockBytes = 256 << 10;

// Two neighbours' products are added up in 16 bits, where those of a group's codes of 4 bits have room:
// 32 / 2 · 15 · 127 < 2^15. Codes of 8 bits come in halves.
struct ByteSums {
    static constexpr bool kTakesBytes = false;
    __m256i sums;

    HWY_INLINE void start(int32_t) { sums = _mm256_setzero_si256(); }
    HWY_INLINE void add(Int32Vec b, Int32Vec a) {
        sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(b.raw, a.raw));
        // Else g++ adds the products of many quads up as a tree, for which there are too few registers.
        asm("" : "+x"(sums));
    }
    HWY_INLINE static Int32Vec total(const ByteSums (&of)[1], int32_t correction) {
        return Int32Vec{_mm256_add_epi32(_mm256_set1_epi32(correction), of[0].times(1))};
    }
    HWY_INLINE static Int32Vec total(const ByteSums (&of)[2], int32_t correction) {
        return Int32Vec{_mm256_add_epi32(_mm256_set1_epi32(correction),
                                         _mm256_add_epi32(of[0].times(1), of[1].times(16)))};
    }

private:
    HWY_INLINE __m256i times(int16_t factor) const {
        return _mm256_madd_epi16(sums, _mm256_set1_epi16(factor));
    }
};

inline bool multiplies_bytes() { return true; }

#endif

// What lies in a panel: codes of 4 bits or 8, minima, scales in f32 or in f16.
struct ByteCodes {
    static constexpr bool nibbles = false, minima = false, wide = false;
};
struct NibbleCodes {
    static constexpr bool nibbles = true, minima = false, wide = false;
};
struct NibblesAndMinima {
    static constexpr bool nibbles = true, minima = true, wide = false;
};
struct NibblesOfK {
    static constexpr bool nibbles = true, minima = true, wide = true;
};

inline constexpr size_t kLineBytes = 64;

// A slice of depth of some rows of A times some columns of a panel.
struct Int8Job {
    size_t groups;  // of 32 elements
    const int8_t* a;
    size_t lda;
    const RoundedRows::Group* a_groups;
    size_t a_group_stride;
    const std::byte* b;  // codes of the first column, of the first group
    size_t quad_bytes, group_bytes;
    const std::byte* scales;  // of the same
    size_t scale_bytes;
    const std::byte* ahead;  // what is read next: for each group so many lines are fetched, group_bytes apart
    size_t ahead_lines;
    const float* init;  // null: sums go on from c; else a row that each starts from
    float* c;
    ptrdiff_t ldc;
};

template <bool kWide>
HWY_INLINE TileVec load_scales(const std::byte* from) {
    const TileTag d;
    if constexpr (kWide) {
        return hn::LoadU(d, reinterpret_cast<const float*>(from));
    } else {
        const hn::Rebind<hwy::float16_t, TileTag> d16;
        return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
    }
}

// The products of a group's codes, for some rows and columns.
template <class L, size_t kRows, size_t kVecs>
class GroupSums {
public:
    HEADRACE_BYTES HWY_INLINE void add(const Int8Job& job, const int8_t* a, size_t group,
                                       const std::byte* b) {
        HWY_UNROLL(16)
        for (size_t r = 0; r < kRows; ++r) {
            const int32_t correction = job.a_groups[r * job.a_group_stride + group].correction;
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v)
                for (size_t i = 0; i < kSums; ++i) sums_[r][v][i].start(correction);
        }
        HWY_UNROLL(4)
        for (size_t q = 0; q < (L::nibbles ? 4 : 8); ++q) add_quad(job, a, q, b + q * job.quad_bytes);
    }
    HEADRACE_BYTES HWY_INLINE Int32Vec total(size_t row, size_t vec, int32_t correction) const {
        return ByteSums::total(sums_[row][vec], correction);
    }

private:
    // Codes of 4 bits share a byte with those 16 places on; bytes in two halves share the place.
    static constexpr size_t kPieces = L::nibbles || !ByteSums::kTakesBytes ? 2 : 1;
    static constexpr size_t kSums = L::nibbles || ByteSums::kTakesBytes ? 1 : 2;

    HEADRACE_BYTES HWY_INLINE void add_quad(const Int8Job& job, const int8_t* a, size_t quad,
                                            const std::byte* b) {
        const Int32Tag d32;
        Int32Vec codes[kPieces][kVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) {
            const Int32Vec both = hn::LoadU(d32, reinterpret_cast<const int32_t*>(b + v * kLanes * 4));
            codes[0][v] = both;
            if constexpr (kPieces == 2) {
                const Int32Vec mask = hn::Set(d32, 0x0F0F0F0F);
                codes[0][v] = hn::And(both, mask);
                codes[1][v] = hn::And(hn::ShiftRight<4>(both), mask);
            }
        }
        HWY_UNROLL(16)
        for (size_t r = 0; r < kRows; ++r) {
            HWY_UNROLL(2)
            for (size_t piece = 0; piece < kPieces; ++piece) {
                int32_t four;
                std::memcpy(&four, a + r * job.lda + 4 * (quad + (L::nibbles ? 4 * piece : 0)), 4);
                const Int32Vec x = hn::Set(d32, four);
                HWY_UNROLL(16)
                for (size_t v = 0; v < kVecs; ++v) sums_[r][v][piece % kSums].add(codes[piece][v], x);
            }
        }
    }

    ByteSums sums_[kRows][kVecs][kSums];
};

template <class L, size_t kRows, size_t kVecs>
HEADRACE_BYTES HWY_NOINLINE void int8_tile(const Int8Job& job) {
    const TileTag d;
    TileVec sum[kRows][kVecs];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v)
            sum[r][v] = hn::LoadU(
                d, (job.init ? job.init : job.c + static_cast<ptrdiff_t>(r) * job.ldc) + v * kLanes);
    }
    const std::byte* b = job.b;
    const std::byte* scales = job.scales;
    for (size_t g = 0; g < job.groups; ++g, b += job.group_bytes, scales += job.group_bytes) {
        for (size_t line = 0; line < job.ahead_lines; ++line)
            __builtin_prefetch(job.ahead + g * job.group_bytes + line * kLineBytes, 0, 2);
        GroupSums<L, kRows, kVecs> dot;
        dot.add(job, job.a + g * kBlockElements, g, b);
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) {
            const TileVec scale = load_scales<L::wide>(scales + v * kLanes * (L::wide ? 4 : 2));
            HWY_UNROLL(16)
            for (size_t r = 0; r < kRows; ++r) {
                const RoundedRows::Group& of_a = job.a_groups[r * job.a_group_stride + g];
                sum[r][v] = hn::MulAdd(hn::ConvertTo(d, dot.total(r, v, of_a.correction)),
                                       hn::Mul(scale, hn::Set(d, of_a.scale)), sum[r][v]);
                if constexpr (L::minima) {
                    const TileVec least =
                        load_scales<L::wide>(scales + job.scale_bytes + v * kLanes * (L::wide ? 4 : 2));
                    sum[r][v] = hn::MulAdd(least, hn::Set(d, of_a.sum), sum[r][v]);
                }
            }
        }
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v)
            hn::StoreU(sum[r][v], d, job.c + static_cast<ptrdiff_t>(r) * job.ldc + v * kLanes);
    }
}

template <class L, size_t... kRows>
HWY_INLINE void run_few_rows(size_t rows, const Int8Job& job, std::index_sequence<kRows...>) {
    using Fn = void (*)(const Int8Job&);
    static constexpr Fn tiles[] = {&int8_tile<L, kRows + 1, kFewRowsVecs>...};
    tiles[rows - 1](job);
}

template <class L, size_t... kRows>
HWY_INLINE void run_tile(size_t rows, size_t vecs, const Int8Job& job, std::index_sequence<kRows...>) {
    using Fn = void (*)(const Int8Job&);
    static constexpr Fn one[] = {&int8_tile<L, kRows + 1, 1>...},
                        whole[] = {&int8_tile<L, kRows + 1, kInt8Vecs>...};
    if (vecs == kFewRowsVecs) return run_few_rows<L>(rows, job, std::make_index_sequence<kFewRows>());
    (vecs == 1 ? one : whole)[rows - 1](job);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_HAS_INT8_TILE
#endif  // HEADRACE_KERNELS_INT8_TILE_INL_H_
