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
#include "kernels/gemm/dynamic_quantization-inl.h"
#include "kernels/gemm/int8_dot-inl.h"
#include "kernels/simd/memory-inl.h"

#if HEADRACE_HAS_INT8_DOT

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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
struct WideByteCodes {
    static constexpr bool nibbles = false, minima = false, wide = true;
};
struct WideNibbleCodes {
    static constexpr bool nibbles = true, minima = false, wide = true;
};
struct WideNibblesAndMinima {
    static constexpr bool nibbles = true, minima = true, wide = true;
};

inline constexpr size_t kLineBytes = 64;

// For a slice of depth a panel's codes stay in the L1 cache.
inline constexpr size_t kSliceGroups = 16;

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

// The products of a group's codes, for some rows and columns. S: see int8_dot-inl.h.
template <class S, class L, size_t kRows, size_t kVecs>
class GroupSums {
public:
    HEADRACE_INT8_DOT HWY_INLINE void add(const Int8Job& job, const int8_t* a, size_t group,
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
    HEADRACE_INT8_DOT HWY_INLINE Int32Vec total(size_t row, size_t vec, int32_t correction) const {
        return S::total(sums_[row][vec], correction);
    }

private:
    // Codes of 4 bits share a byte with those 16 places on; bytes in two halves share the place.
    static constexpr size_t kPieces = L::nibbles || !S::kTakesBytes ? 2 : 1;
    static constexpr size_t kSums = L::nibbles || S::kTakesBytes ? 1 : 2;

    HEADRACE_INT8_DOT HWY_INLINE void add_quad(const Int8Job& job, const int8_t* a, size_t quad,
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
            } else if constexpr (S::kTakesSigned) {
                codes[0][v] = hn::Xor(both, hn::Set(d32, static_cast<int32_t>(0x80808080)));
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

    S sums_[kRows][kVecs][kSums];
};

template <class S, class L, size_t kRows, size_t kVecs>
HEADRACE_INT8_DOT HWY_NOINLINE void int8_tile(const Int8Job& job) {
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
        GroupSums<S, L, kRows, kVecs> dot;
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

template <class S, class L, size_t... kRows>
HWY_INLINE void run_gemv(size_t rows, const Int8Job& job, std::index_sequence<kRows...>) {
    using Fn = void (*)(const Int8Job&);
    static constexpr Fn tiles[] = {&int8_tile<S, L, kRows + 1, S::kGemvVecs>...};
    tiles[rows - 1](job);
}

template <class S, class L, size_t... kRows>
HWY_INLINE void run_tile(size_t rows, size_t vecs, const Int8Job& job, std::index_sequence<kRows...>) {
    using Fn = void (*)(const Int8Job&);
    static constexpr Fn one[] = {&int8_tile<S, L, kRows + 1, 1>...},
                        whole[] = {&int8_tile<S, L, kRows + 1, S::kVecs>...};
    if (vecs == S::kGemvVecs) return run_gemv<S, L>(rows, job, std::make_index_sequence<S::kGemvRows>());
    (vecs == 1 ? one : whole)[rows - 1](job);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_HAS_INT8_DOT
#endif  // HEADRACE_KERNELS_INT8_TILE_INL_H_
