// Sums of products of pairs of 16-bit numbers: what each instruction set has for them, and a tile of such
// sums. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_PAIR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_PAIR_TILE_INL_H_
#undef HEADRACE_KERNELS_PAIR_TILE_INL_H_
#else
#define HEADRACE_KERNELS_PAIR_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "kernels/int8/pair_panels.h"
#include "kernels/int8/requantize-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// One product of scalars, and x86's instruction, add a pair up; others keep the two halves' sums apart until
// the end.
#undef HEADRACE_HAS_PAIR_SUMS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || \
    HWY_TARGET == HWY_SCALAR
#define HEADRACE_HAS_PAIR_SUMS 1
#else
#define HEADRACE_HAS_PAIR_SUMS 0
#endif

// Each lane holds two numbers of 16 bits; products are added up in 32 bits, exactly as long as sums fit.
// Bytes times bytes could be had in one instruction with sums of 16 bits, where 255 * 127 twice has no room.
class PairSum {
public:
#if HEADRACE_HAS_PAIR_SUMS
    HWY_INLINE PairSum() : sum_(hn::Zero(Int8Tag())) {}
#else
    HWY_INLINE PairSum() : sum_(hn::Zero(Int8Tag())), upper_(hn::Zero(Int8Tag())) {}
#endif
    HWY_INLINE void add(Int8Vec a, Int8Vec b) {
#if HWY_TARGET == HWY_SCALAR
        const auto low = [](Int8Vec v) { return static_cast<int32_t>(static_cast<int16_t>(v.raw)); };
        const auto high = [](Int8Vec v) { return v.raw >> 16; };
        sum_.raw += low(a) * low(b) + high(a) * high(b);
#else
        const hn::Repartition<int16_t, Int8Tag> d16;
#if !HEADRACE_HAS_PAIR_SUMS
        sum_ =
            hn::ReorderWidenMulAccumulate(Int8Tag(), hn::BitCast(d16, a), hn::BitCast(d16, b), sum_, upper_);
#else
        Int8Vec unused = hn::Zero(Int8Tag());
        const Int8Vec products = hn::ReorderWidenMulAccumulate(
            Int8Tag(), hn::BitCast(d16, a), hn::BitCast(d16, b), hn::Zero(Int8Tag()), unused);
        // An instruction in its place; else g++ loads the pairs of all rows first, for which there are too
        // few registers.
        auto sum = sum_.raw;
#if HWY_TARGET == HWY_AVX3
        asm("vpaddd %1, %0, %0" : "+v"(sum) : "v"(products.raw));
#elif HWY_TARGET == HWY_AVX2
        asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products.raw));
#else
        asm("paddd %1, %0" : "+x"(sum) : "x"(products.raw));
#endif
        sum_.raw = sum;
#endif
#endif
    }
    HWY_INLINE Int8Vec total() const {
#if HEADRACE_HAS_PAIR_SUMS
        return sum_;
#else
        return hn::RearrangeToOddPlusEven(sum_, upper_);
#endif
    }

private:
    Int8Vec sum_;
#if !HEADRACE_HAS_PAIR_SUMS
    Int8Vec upper_;  // of the upper half's products
#endif
};

#if HWY_TARGET == HWY_AVX3
// Each lane holds four bytes, of A without a sign and of B with one. Not as an intrinsic: all that is inlined
// around it would have to be compiled for CPUs that have it.
class QuadSum {
public:
    HWY_INLINE QuadSum() : sum_(hn::Zero(Int8Tag())) {}
    HWY_INLINE void add(Int8Vec a, Int8Vec b) {
        auto sum = sum_.raw;
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a.raw), "v"(b.raw));
        sum_.raw = sum;
    }
    HWY_INLINE Int8Vec total() const { return sum_; }

private:
    Int8Vec sum_;
};
#endif

inline constexpr size_t kPanelVecs = kPairPanel / HWY_MIN(kPairPanel, kLanes);
// The sums, a row of the panel, a pair of A and a product are kept in registers.
#if HWY_TARGET == HWY_AVX3
inline constexpr size_t kPairRows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr size_t kPairRows = 6;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr size_t kPairRows = 1;
#else
inline constexpr size_t kPairRows = 3;
#endif

// Rows of A, of pairs, times a panel. Or of quads of bytes, which take as much.
struct PairTile {
    const int16_t* a;
    size_t lda;  // of int16_t
    const void* b;
    size_t pairs;
    const int32_t* init;  // a row that is added to each row of sums; null: they go on from `sums`
    int32_t* sums;        // [rows][kPairPanel], where they are left unless this is the last slice of depth
    // Of the last slice:
    const float *bias, *scale;  // of the panel's channels
    const Rounder* round;       // read where results are bytes
    void* y;
    size_t ldy, channels;  // fewer than kPairPanel in the last panel
};

// kLanes pairs of a panel of W, int16_t or int8_t.
template <class W>
HWY_INLINE Int8Vec load_pairs(const W* b) {
    if constexpr (sizeof(W) == sizeof(int16_t)) {
        return hn::LoadU(Int8Tag(), reinterpret_cast<const int32_t*>(b));
    } else {
#if HWY_TARGET == HWY_SCALAR
        const auto low = static_cast<uint32_t>(static_cast<uint16_t>(int16_t{b[0]}));
        return hn::Set(Int8Tag(), static_cast<int32_t>(low | static_cast<uint32_t>(b[1]) << 16));
#else
        const hn::Repartition<int16_t, Int8Tag> d16;
        return hn::BitCast(Int8Tag(), hn::PromoteTo(d16, hn::LoadU(hn::Rebind<int8_t, decltype(d16)>(), b)));
#endif
    }
}

// Of a panel's row of results, in Y: bytes, (sum + bias) * scale rounded; real numbers, sum * scale + bias;
// or the sums.
template <class Y>
HWY_INLINE void store_panel_row(const PairTile& t, const Int8Vec (&sum)[kPanelVecs], Y* y) {
    const TileTag d;
    Y lanes[kPairPanel];
    Y* to = t.channels == kPairPanel ? y : lanes;
    Int8Vec rounded[kPanelVecs];
    HWY_UNROLL(16)
    for (size_t v = 0; v < kPanelVecs; ++v) {
        if constexpr (std::is_same_v<Y, int32_t>) {
            hn::StoreU(sum[v], Int8Tag(), to + v * kLanes);
        } else {
            const TileVec real = hn::ConvertTo(d, sum[v]), bias = hn::LoadU(d, t.bias + v * kLanes),
                          scale = hn::LoadU(d, t.scale + v * kLanes);
            if constexpr (std::is_same_v<Y, float>)
                hn::StoreU(hn::MulAdd(real, scale, bias), d, to + v * kLanes);
            else
                rounded[v] = (*t.round)(hn::Mul(hn::Add(real, bias), scale));
        }
    }
    if constexpr (sizeof(Y) == 1) store_byte_vectors(rounded, to);
    if (to == lanes) std::memcpy(y, lanes, t.channels * sizeof(Y));
}

// Sum: of what lanes hold. W: of the panel. Y: of the results for the last slice of depth, else void.
template <class Sum, class W, class Y, size_t kRows>
HWY_NOINLINE void pair_tile(const PairTile& t) {
    const Int8Tag d;
    Sum sum[kRows][kPanelVecs];
    const int16_t* a = t.a;
    const W* b = static_cast<const W*>(t.b);
    HWY_UNROLL(2)
    for (size_t p = 0; p < t.pairs; ++p, a += 2, b += 2 * kPairPanel) {
        Int8Vec row[kPanelVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kPanelVecs; ++v) row[v] = load_pairs(b + 2 * v * kLanes);
        HWY_UNROLL(16)
        for (size_t r = 0; r < kRows; ++r) {
            int32_t pair;
            std::memcpy(&pair, a + r * t.lda, sizeof(pair));
            const Int8Vec both = hn::Set(d, pair);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kPanelVecs; ++v) sum[r][v].add(both, row[v]);
        }
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        int32_t* sums = t.sums + r * kPairPanel;
        const int32_t* from = t.init ? t.init : sums;
        Int8Vec total[kPanelVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kPanelVecs; ++v)
            total[v] = hn::Add(sum[r][v].total(), hn::LoadU(d, from + v * kLanes));
        if constexpr (std::is_void_v<Y>) {
            HWY_UNROLL(16)
            for (size_t v = 0; v < kPanelVecs; ++v) hn::StoreU(total[v], d, sums + v * kLanes);
        } else {
            store_panel_row(t, total, static_cast<Y*>(t.y) + r * t.ldy);
        }
    }
}

using PairTileFunction = void (*)(const PairTile&);

// For 1 to kPairRows rows.
template <class Sum, class W, class Y>
PairTileFunction find_pair_tile(size_t rows) {
    return []<size_t... i>(std::index_sequence<i...>, size_t n) {
        static constexpr PairTileFunction kTiles[] = {&pair_tile<Sum, W, Y, i + 1>...};
        return kTiles[n - 1];
    }
    (std::make_index_sequence<kPairRows>(), rows);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_PAIR_TILE_INL_H_
