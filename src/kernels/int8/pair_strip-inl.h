// Rows of pairs times a panel, in slices of depth and tiles of rows. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_PAIR_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_PAIR_STRIP_INL_H_
#undef HEADRACE_KERNELS_PAIR_STRIP_INL_H_
#else
#define HEADRACE_KERNELS_PAIR_STRIP_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/int8/pair_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Rows that are widened at a time: they stay in the L2 cache beside a panel.
inline constexpr size_t kMostStripRows = 48;
inline constexpr size_t kStripBytes = 192 << 10;
// Of a panel, so many pairs stay in the L1 cache for all rows of the strip.
inline constexpr size_t kSlicePairs = 256;

struct StripScratch {
    std::vector<int16_t> rows;  // of pairs
    std::vector<int32_t> sums;

    // Room for so many rows, and for what is written behind them.
    void reserve(size_t count, size_t pairs) {
        constexpr size_t kBehind = 16;
        if (rows.size() < count * pairs * 2 + kBehind) rows.resize(count * pairs * 2 + kBehind);
        sums.resize(kMostStripRows * kPairPanel);
    }
};

// Calls fn(begin, count) for strips of [first, last), rows of so many pairs.
template <class Fn>
HWY_INLINE void for_each_strip(size_t first, size_t last, size_t pairs, Fn fn) {
    const size_t most =
        std::clamp<size_t>(kStripBytes / (pairs * 2 * sizeof(int16_t)), kPairRows, kMostStripRows);
    const size_t strips = divide_up(last - first, most);
    for (size_t i = 0; i < strips; ++i) {
        const size_t begin = first + i * (last - first) / strips;
        fn(begin, first + (i + 1) * (last - first) / strips - begin);
    }
}

// `count` rows of pairs times a panel of `pairs`, as `tile` says, to y. `sums` holds kPairPanel for each row
// between slices.
template <class Sum = PairSum, class W, class Y>
void multiply_strip(PairTile tile, const int16_t* rows, int32_t* sums, size_t count, const W* panel,
                    size_t pairs, Y* y) {
    const size_t slices = divide_up(pairs, kSlicePairs), tiles = divide_up(count, kPairRows);
    const int32_t* init = tile.init;
    tile.lda = pairs * 2;
    for (size_t s = 0; s < slices; ++s) {
        const size_t begin = s * pairs / slices, end = (s + 1) * pairs / slices;
        tile.b = panel + begin * kPairPanel * 2;
        tile.pairs = end - begin, tile.init = s == 0 ? init : nullptr;
        for (size_t i = 0, row = 0; i < tiles; ++i) {
            const size_t next = (i + 1) * count / tiles;
            tile.a = rows + (row * pairs + begin) * 2;
            tile.sums = sums + row * kPairPanel;
            tile.y = y + row * tile.ldy;
            (s + 1 == slices ? find_pair_tile<Sum, W, Y>(next - row)
                             : find_pair_tile<Sum, W, void>(next - row))(tile);
            row = next;
        }
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_PAIR_STRIP_INL_H_
