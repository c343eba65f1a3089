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
// So many pairs of a panel, or of several, stay in the L1 cache for all rows of the strip.
constexpr size_t slice_pairs(size_t panels) { return panels == 1 ? 256 : 160; }
inline constexpr size_t kMostPanels = 2;

struct StripScratch {
    std::vector<int16_t> rows;  // of pairs
    std::vector<int32_t> sums;

    // Room for so many rows, and for what is written behind them.
    void reserve(size_t count, size_t pairs) {
        constexpr size_t kBehind = 16;
        if (rows.size() < count * pairs * 2 + kBehind) rows.resize(count * pairs * 2 + kBehind);
        sums.resize(kMostStripRows * kPairPanel * kMostPanels);
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

// The share of tile i of what two panels are going to read from `next` on: the first half of the tiles
// fetches of the first panel. A tile has as many pairs as are read of each panel next.
template <class W>
HWY_INLINE void fetch_ahead(PairTile& tile, const W* next, size_t i, size_t tiles) {
    const size_t half = divide_up(tiles, 2), among = i < half ? half : tiles - half;
    constexpr size_t kPairBytes = 2 * kPairPanel * sizeof(W);
    tile.ahead_step = kPairBytes / among;
    tile.ahead = reinterpret_cast<const std::byte*>(i < half ? next : next + tile.panel_step) +
                 (i < half ? i : i - half) * tile.pairs * tile.ahead_step;
}

// `count` rows of pairs times a panel of `pairs`, or several, as `tile` says, to y. `sums` holds kPairPanel
// of each panel for each row between slices.
template <class Sum = PairSum, size_t kPanels = 1, class W, class Y>
void multiply_strip(PairTile tile, const void* rows, int32_t* sums, size_t count, const W* panel,
                    size_t pairs, Y* y) {
    const size_t slices = divide_up(pairs, slice_pairs(kPanels)), tiles = divide_up(count, kPairRows);
    const int32_t* init = tile.init;
    tile.lda = pairs * sizeof(int32_t), tile.panel_step = pairs * 2 * kPairPanel;
    for (size_t s = 0; s < slices; ++s) {
        const size_t begin = s * pairs / slices, end = (s + 1) * pairs / slices;
        tile.b = panel + begin * kPairPanel * 2;
        tile.pairs = end - begin, tile.init = s == 0 ? init : nullptr;
        for (size_t i = 0, row = 0; i < tiles; ++i) {
            const size_t next = (i + 1) * count / tiles;
            tile.a = static_cast<const std::byte*>(rows) + (row * pairs + begin) * sizeof(int32_t);
            tile.sums = sums + row * kPairPanel * kPanels;
            if constexpr (kPanels == 2)
                fetch_ahead(tile, s + 1 < slices ? panel + end * kPairPanel * 2 : panel + 2 * tile.panel_step,
                            i, tiles);
            tile.y = y + row * tile.ldy;
            (s + 1 == slices ? find_pair_tile<Sum, W, Y, kPanels>(next - row)
                             : find_pair_tile<Sum, W, void, kPanels>(next - row))(tile);
            row = next;
        }
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_PAIR_STRIP_INL_H_
