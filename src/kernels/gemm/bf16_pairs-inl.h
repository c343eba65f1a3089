// Products of bf16 by the processor's own instructions. Included once per SIMD target, and empty but for
// AVX-512's.
#if defined(HEADRACE_KERNELS_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_BF16_PAIRS_INL_H_
#undef HEADRACE_KERNELS_BF16_PAIRS_INL_H_
#else
#define HEADRACE_KERNELS_BF16_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/aligned_buffer.h"
#include "kernels/gemm/packed_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

// Two neighbours of a row of A, or two rows of a column of B, in each lane. The instructions are written out
// since those of this target's own set do not include them, and the compiler takes their names only in
// functions that are marked as using them, which templates shared with other kernels cannot be.
struct Bf16Pairs {
    using Left = uint32_t;
    using Element = uint32_t;
    using Pairs = hn::Vec<hn::RebindToUnsigned<TileTag>>;

    static HWY_INLINE Pairs load(const uint32_t* from) {
        return hn::LoadU(hn::RebindToUnsigned<TileTag>(), from);
    }
    static HWY_INLINE Pairs broadcast(const uint32_t* from) {
        return hn::Set(hn::RebindToUnsigned<TileTag>(), *from);
    }
    static HWY_INLINE TileVec multiply_add(Pairs a, Pairs b, TileVec sum) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
        return sum;
    }
    // 32 neighbours, rounded.
    static HWY_INLINE Pairs round(TileVec first, TileVec second) {
        Pairs pairs;
        asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
        return pairs;
    }
    // 16 of them.
    static HWY_INLINE auto round(TileVec v) {
        hn::Vec<hn::Half<hn::Repartition<uint16_t, TileTag>>> rounded;
        asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(v.raw));
        return rounded;
    }
};

// Elements that a vector holds, rounded. Who rounds writes whole ones: up to so many less one behind the
// last.
inline constexpr size_t kRoundedLanes = 2 * kLanes;

HWY_INLINE void store_rounded(TileVec first, TileVec second, uint16_t* to) {
    const hn::Repartition<uint16_t, TileTag> d;
    hn::StoreU(hn::BitCast(d, Bf16Pairs::round(first, second)), d, to);
}

// Rounds neighbours. What follows them in the last vector becomes 0.
HWY_INLINE HWY_MAYBE_UNUSED void round_elements(const float* from, size_t count, uint16_t* to) {
    const TileTag d;
    size_t i = 0;
    for (; i + kRoundedLanes <= count; i += kRoundedLanes)
        store_rounded(hn::LoadU(d, from + i), hn::LoadU(d, from + i + kLanes), to + i);
    if (i == count) return;
    const size_t rest = count - i, second = rest > kLanes ? rest - kLanes : 0;
    store_rounded(load_first(d, from + i, std::min(rest, kLanes)),
                  second ? load_first(d, from + i + kLanes, second) : hn::Zero(d), to + i);
}

// Rounded rows that a thread keeps from one product to the next, with room behind them for a whole vector.
HWY_MAYBE_UNUSED uint16_t* bf16_row_buffer(size_t elements) {
    static thread_local AlignedBuffer buffer;
    const size_t bytes = (elements + kRoundedLanes) * sizeof(uint16_t);
    if (buffer.bytes() < bytes) {
        auto made = AlignedBuffer::allocate(bytes, "rounded rows");
        if (!made.ok()) throw std::bad_alloc();
        buffer = std::move(made).value();
    }
    return reinterpret_cast<uint16_t*>(buffer.data());
}

// What run_packed() makes of panels of pairs. pairs.k counts pairs; round_row(row, first, end, to) rounds
// elements [first, end) of a row of A, which has `depth`.
template <class RoundRow>
void multiply_rounded(const GemmArgs& pairs, const Finish& finish, size_t depth, const uint16_t* packed,
                      const Rect& rect, RoundRow round_row) {
    const auto rows = [&](size_t row, size_t row_end, size_t k0, size_t k1) {
        const size_t step = k1 - k0;
        uint16_t* block = bf16_row_buffer((row_end - row) * 2 * step);
        for (size_t r = row; r < row_end; ++r)
            round_row(r, 2 * k0, std::min(2 * k1, depth), block + (r - row) * 2 * step);
        return std::pair<const uint32_t*, ptrdiff_t>(reinterpret_cast<const uint32_t*>(block),
                                                     static_cast<ptrdiff_t>(step));
    };
    run_packed<Bf16Pairs>(pairs, reinterpret_cast<const uint32_t*>(packed), rect, rows, finish);
}

#endif

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_BF16_PAIRS_INL_H_
