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

#include "hwy/cache_control.h"
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

// Rows of A, of pairs, times a panel, or several that lie one after the other. Or of quads of bytes, which
// take as much.
struct PairTile {
    const std::byte* a;
    size_t lda;  // of bytes
    const void* b;
    size_t panel_step;  // from one panel to the next, of elements
    size_t pairs;
    const std::byte* ahead;  // of several panels: what is read after them, fetched meanwhile
    size_t ahead_step;       // bytes of it for each pair
    const int32_t* init;     // a row that is added to each row of sums; null: they go on from `sums`
    int32_t* sums;  // a row of all panels each, where they are left unless this is the last slice of depth
    // Read with the last slice only:
    const float *bias, *scale;  // of the panels' channels
    const Rounder* round;       // read where results are bytes
    void* y;
    size_t ldy, channels;  // fewer than the panels have in the last ones
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

// Writes the panels' row of results, in Y: bytes, (sum + bias) * scale rounded; real numbers, sum * scale +
// bias; or the sums.
template <class Y, size_t kVecs>
HWY_INLINE void store_panel_row(const PairTile& t, const Int8Vec (&sum)[kVecs], Y* y) {
    constexpr size_t kChannels = kVecs / kPanelVecs * kPairPanel;
    const TileTag d;
    Y lanes[kChannels];
    Y* to = t.channels == kChannels ? y : lanes;
    Int8Vec rounded[kVecs];
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVecs; ++v) {
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

#if HWY_TARGET == HWY_AVX3
// Block i of 16 bytes of x, or two of them.
template <size_t kPanels>
HWY_INLINE auto blocks_of(Int8Vec x, size_t i) {
    const hn::CappedTag<uint8_t, kPanels * kPairPanel> d;
    const auto bytes = hn::BitCast(hn::Repartition<uint8_t, Int8Tag>(), x);
    if constexpr (kPanels == 2) {
        return i == 0 ? hn::LowerHalf(bytes) : hn::UpperHalf(d, bytes);
    } else {
        const hn::Half<hn::Repartition<uint8_t, Int8Tag>> half;
        const auto two = i < 2 ? hn::LowerHalf(bytes) : hn::UpperHalf(half, bytes);
        return i % 2 == 0 ? hn::LowerHalf(two) : hn::UpperHalf(d, two);
    }
}

// Rows of bytes, as many at a time as four vectors hold.
template <class Y, size_t kRows, size_t kPanels>
HWY_INLINE void store_byte_rows(const PairTile& t, const Int8Vec (&total)[kRows][kPanels]) {
    constexpr size_t kTogether = 4 / kPanels, kChannels = kPanels * kPairPanel;
    const TileTag d;
    const hn::CappedTag<uint8_t, kChannels> d8;
    const FourRounder<Y> round(*t.round);
    alignas(64) static constexpr int32_t kOrder[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const auto order = hn::SetTableIndices(Int8Tag(), kOrder);
    const auto mask = hn::FirstN(d8, t.channels);
    TileVec bias[4], scale[4];
    HWY_UNROLL(4)
    for (size_t i = 0; i < 4; ++i)
        bias[i] = hn::LoadU(d, t.bias + i % kPanels * kLanes),
        scale[i] = hn::LoadU(d, t.scale + i % kPanels * kLanes);
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; r += kTogether) {
        Int8Vec sums[4];
        HWY_UNROLL(4)
        for (size_t i = 0; i < 4; ++i)  // the last row once more where there are too few
            sums[i] = total[HWY_MIN(r + i / kPanels, kRows - 1)][i % kPanels];
        const Int8Vec rows = hn::TableLookupLanes(round(sums, bias, scale), order);
        HWY_UNROLL(4)
        for (size_t i = 0; i < HWY_MIN(kTogether, kRows - r); ++i) {
            auto* y = reinterpret_cast<uint8_t*>(static_cast<Y*>(t.y) + (r + i) * t.ldy);
            const auto bytes = blocks_of<kPanels>(rows, i);
            t.channels == kChannels ? hn::StoreU(bytes, d8, y) : hn::BlendedStore(bytes, mask, d8, y);
        }
    }
}
#endif

// Whether rows of a tile are rounded together.
template <class Y>
inline constexpr bool kStoredAtOnce = HWY_TARGET == HWY_AVX3 &&
                                      (std::is_same_v<Y, int8_t> || std::is_same_v<Y, uint8_t>);

// Sum: of what lanes hold. W: of the panels. Y: of the results for the last slice of depth, else void.
template <class Sum, class W, class Y, size_t kRows, size_t kPanels>
HWY_NOINLINE void pair_tile(const PairTile& t) {
    constexpr size_t kVecs = kPanels * kPanelVecs;
    const Int8Tag d;
    Sum sum[kRows][kVecs];
    const std::byte* a = t.a;
    const W* b = static_cast<const W*>(t.b);
    HWY_UNROLL(2)
    for (size_t p = 0; p < t.pairs; ++p, a += sizeof(int32_t), b += 2 * kPairPanel) {
        if constexpr (kPanels > 1) hwy::Prefetch(t.ahead + p * t.ahead_step);
        Int8Vec row[kVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v)
            row[v] = load_pairs(b + v / kPanelVecs * t.panel_step + 2 * (v % kPanelVecs) * kLanes);
        HWY_UNROLL(16)
        for (size_t r = 0; r < kRows; ++r) {
            int32_t pair;
            std::memcpy(&pair, a + r * t.lda, sizeof(pair));
            const Int8Vec both = hn::Set(d, pair);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) sum[r][v].add(both, row[v]);
        }
    }
    Int8Vec total[kRows][kVecs];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        int32_t* sums = t.sums + r * kPanels * kPairPanel;
        const int32_t* from = t.init ? t.init : sums;
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) {
            total[r][v] = hn::Add(sum[r][v].total(), hn::LoadU(d, from + v * kLanes));
            if constexpr (std::is_void_v<Y>) hn::StoreU(total[r][v], d, sums + v * kLanes);
        }
        if constexpr (!kStoredAtOnce<Y> && !std::is_void_v<Y>)
            store_panel_row(t, total[r], static_cast<Y*>(t.y) + r * t.ldy);
    }
#if HWY_TARGET == HWY_AVX3
    if constexpr (kStoredAtOnce<Y>) store_byte_rows<Y, kRows, kPanels>(t, total);
#endif
}

using PairTileFunction = void (*)(const PairTile&);

// For 1 to kPairRows rows.
template <class Sum, class W, class Y, size_t kPanels>
PairTileFunction find_pair_tile(size_t rows) {
    return []<size_t... i>(std::index_sequence<i...>, size_t n) {
        static constexpr PairTileFunction kTiles[] = {&pair_tile<Sum, W, Y, i + 1, kPanels>...};
        return kTiles[n - 1];
    }
    (std::make_index_sequence<kPairRows>(), rows);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_PAIR_TILE_INL_H_
