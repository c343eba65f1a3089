#include "kernels/cached_attention_f16.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/simd_targets.h"

#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cached_attention_f16.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd_halves-inl.h"
#include "kernels/simd_math-inl.h"
#include "kernels/simd_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kBlock = 64;       // keys whose scores are in the first cache at a time
constexpr size_t kMostWidth = 512;  // of a row of values
constexpr size_t kAhead = 16;       // keys between what is read and what is fetched
constexpr uint16_t kMaskedHalf = 0xFC00;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The queries of kRows heads and tokens that read the same keys, and what is known of their softmax.
template <size_t kRows>
struct Tile {
    const float* q[kRows];
    const uint16_t* mask[kRows];
    float most[kRows], sum[kRows];
    alignas(64) float scores[kRows][kBlock];  // of the block's keys; then weights of those in `live`
    uint8_t live[kBlock];
    alignas(64) float o[kRows][kMostWidth];
};

// Rows of a head lie too far apart for the processor to foresee them.
HWY_INLINE void fetch(const uint16_t* row, size_t width) {
    for (size_t i = 0; i < width; i += 32) hwy::Prefetch(row + i);
}

// Scores of kKeys keys that lie one after the other.
template <size_t kRows, size_t kKeys>
HWY_INLINE void score(const CachedAttentionArgs& g, const uint16_t* k, Tile<kRows>& tile, size_t at) {
    const TileTag d;
    TileVec sums[kRows][kKeys];
    for (size_t r = 0; r < kRows; ++r)
        for (size_t j = 0; j < kKeys; ++j) sums[r][j] = hn::Zero(d);
    for (size_t i = 0; i < g.width; i += kLanes) {
        TileVec keys[kKeys];
        for (size_t j = 0; j < kKeys; ++j)
            keys[j] = widen<hwy::float16_t>(k + static_cast<ptrdiff_t>(j) * g.k_row + i);
        for (size_t r = 0; r < kRows; ++r) {
            const TileVec query = hn::LoadU(d, tile.q[r] + i);
            for (size_t j = 0; j < kKeys; ++j) sums[r][j] = hn::MulAdd(query, keys[j], sums[r][j]);
        }
    }
    for (size_t r = 0; r < kRows; ++r)
        for (size_t j = 0; j < kKeys; ++j)
            tile.scores[r][at + j] = hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
}

template <size_t kRows>
void score_block(const CachedAttentionArgs& g, const uint16_t* k, Tile<kRows>& tile, size_t count) {
    constexpr size_t kKeys = kRows == 1 ? 4 : HWY_TARGET == HWY_AVX3 ? 4 : 2;
    size_t j = 0;
    for (; j + kKeys <= count; j += kKeys) {
        const uint16_t* keys = k + static_cast<ptrdiff_t>(j) * g.k_row;
        for (size_t ahead = kAhead; ahead < kAhead + kKeys; ++ahead)
            fetch(keys + static_cast<ptrdiff_t>(ahead) * g.k_row, g.width);
        score<kRows, kKeys>(g, keys, tile, j);
    }
    for (; j < count; ++j) score<kRows, 1>(g, k + static_cast<ptrdiff_t>(j) * g.k_row, tile, j);
}

// Scores become weights, relative to the largest score up to here; what is there of the output and of the sum
// is scaled accordingly. False: there are none, as the row's keys are all masked or one gives NaN, which the
// sum keeps.
template <size_t kRows>
bool weigh(const CachedAttentionArgs& g, Tile<kRows>& tile, size_t r, size_t first, size_t count) {
    const TileTag d;
    float* scores = tile.scores[r];
    const float cap = g.softcap;
    std::fill(scores + count, scores + kBlock, 0.0f);
    for (size_t j = 0; j < kBlock; j += kLanes) {
        TileVec s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, cap != 0 ? g.scale / cap : g.scale));
        if (cap != 0) s = hn::Mul(hn::Set(d, cap), vec_tanh(d, s));
        hn::Store(s, d, scores + j);
    }
    if (tile.mask[r]) {
        const uint16_t* mask = tile.mask[r] + first;
        size_t j = 0;
        const TileVec hidden =
            hn::Set(d, kMasked);  // whatever the score is: caches hold other sequences' keys
        for (; j + kLanes <= count; j += kLanes) {
            const TileVec m = widen<hwy::float16_t>(mask + j), s = hn::Add(hn::Load(d, scores + j), m);
            hn::Store(hn::IfThenElse(hn::Eq(m, hidden), hidden, s), d, scores + j);
        }
        for (; j < count; ++j)
            scores[j] = mask[j] == kMaskedHalf ? kMasked : scores[j] + half_to_float(mask[j]);
    }
    std::fill(scores + count, scores + kBlock, kMasked);
    TileVec largest = hn::Load(d, scores);
    bool has_nan = false;
    for (size_t j = 0; j < kBlock; j += kLanes) {
        const TileVec s = hn::Load(d, scores + j);
        largest = hn::Max(largest, s);
        has_nan |= !hn::AllFalse(d, hn::IsNaN(s));
    }
    if (has_nan) {
        tile.sum[r] = std::numeric_limits<float>::quiet_NaN();
        return false;
    }
    const float most = std::max(tile.most[r], hn::GetLane(hn::MaxOfLanes(d, largest)));
    if (most == kMasked) return false;
    if (most > tile.most[r]) {
        const float factor = std::exp(tile.most[r] - most);
        tile.most[r] = most;
        tile.sum[r] *= factor;
        for (size_t i = 0; i < g.width_v; i += kLanes)
            hn::Store(hn::Mul(hn::Load(d, tile.o[r] + i), hn::Set(d, factor)), d, tile.o[r] + i);
    }
    TileVec sum = hn::Zero(d);
    for (size_t j = 0; j < kBlock; j += kLanes) {
        const TileVec p = exp_of_nonpositive(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, most)));
        hn::Store(p, d, scores + j);
        sum = hn::Add(sum, p);
    }
    tile.sum[r] += hn::GetLane(hn::SumOfLanes(d, sum));
    return true;
}

// Leaves the keys that have weight for any row: values of the others may be anything.
template <size_t kRows>
size_t keep_live(Tile<kRows>& tile, size_t count) {
    size_t live = 0;
    for (size_t j = 0; j < count; ++j) {
        bool any = false;
        for (size_t r = 0; r < kRows; ++r) any |= tile.scores[r][j] != 0;
        if (!any) continue;
        tile.live[live] = static_cast<uint8_t>(j);
        for (size_t r = 0; r < kRows; ++r) tile.scores[r][live] = tile.scores[r][j];
        ++live;
    }
    return live;
}

// o += weights · values for kVecs vectors of the rows from column `at` on.
template <size_t kRows, size_t kVecs>
HWY_INLINE void add_values(const CachedAttentionArgs& g, const uint16_t* v, Tile<kRows>& tile, size_t at,
                           size_t count) {
    const TileTag d;
    TileVec sums[kRows][kVecs];
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < kVecs; ++c) sums[r][c] = hn::Load(d, tile.o[r] + at + c * kLanes);
    for (size_t j = 0; j < count; ++j) {
        const uint16_t* row = v + static_cast<ptrdiff_t>(tile.live[j]) * g.v_row + at;
        TileVec values[kVecs];
        for (size_t c = 0; c < kVecs; ++c) values[c] = widen<hwy::float16_t>(row + c * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
            const TileVec weight = hn::Set(d, tile.scores[r][j]);
            for (size_t c = 0; c < kVecs; ++c) sums[r][c] = hn::MulAdd(weight, values[c], sums[r][c]);
        }
    }
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < kVecs; ++c) hn::Store(sums[r][c], d, tile.o[r] + at + c * kLanes);
}

template <size_t kRows>
void add_block(const CachedAttentionArgs& g, const uint16_t* v, Tile<kRows>& tile, size_t count) {
    constexpr size_t kVecs = HWY_TARGET == HWY_AVX3 ? 4 : 2;
    size_t at = 0;
    for (; at + kVecs * kLanes <= g.width_v; at += kVecs * kLanes)
        add_values<kRows, kVecs>(g, v, tile, at, count);
    for (; at < g.width_v; at += kLanes) add_values<kRows, 1>(g, v, tile, at, count);
}

template <size_t kRows>
bool sees_any(const Tile<kRows>& tile, size_t first, size_t count) {
    int seen = 0;
    for (size_t r = 0; r < kRows; ++r) {
        if (!tile.mask[r]) return true;
        if (r > 0 && tile.mask[r] == tile.mask[r - 1]) continue;
        for (size_t j = 0; j < count; ++j) seen |= tile.mask[r][first + j] != kMaskedHalf;
    }
    return seen != 0;
}

// False: something is not finite.
template <size_t kRows>
bool finish(const CachedAttentionArgs& g, Tile<kRows>& tile, size_t r, size_t head, float* o) {
    const TileTag d;
    float sum = tile.sum[r], factor = 1;
    if (g.sinks) {
        const float most = std::max(tile.most[r], g.sinks[head]);
        factor = std::exp(tile.most[r] - most);
        sum = sum * factor + std::exp(g.sinks[head] - most);
    }
    const TileVec scale = hn::Set(d, sum == 0 ? 0 : factor / sum);
    TileVec check = hn::Zero(d);
    for (size_t i = 0; i < g.width_v; i += kLanes) {
        const TileVec y = hn::Mul(hn::Load(d, tile.o[r] + i), scale);
        check = hn::MulAdd(y, hn::Zero(d), check);
        hn::StoreU(y, d, o + i);
    }
    return hn::GetLane(hn::SumOfLanes(d, check)) == 0;
}

// kRows queries of a head of keys, from the one of that number on: heads that share the keys come first, then
// tokens.
template <size_t kRows>
void run_tile(const CachedAttentionArgs& g, size_t kv_head, size_t row) {
    const size_t group = g.heads / g.kv_heads;
    Tile<kRows> tile;
    for (size_t r = 0; r < kRows; ++r) {
        const auto token = static_cast<ptrdiff_t>((row + r) / group);
        const auto head = static_cast<ptrdiff_t>(kv_head * group + (row + r) % group);
        tile.q[r] = g.q + token * g.q_token + head * g.q_head;
        tile.mask[r] = g.mask ? g.mask + token * g.mask_token : nullptr;
        tile.most[r] = kMasked, tile.sum[r] = 0;
        std::fill_n(tile.o[r], g.width_v, 0.0f);
    }
    const uint16_t* k = g.k + static_cast<ptrdiff_t>(kv_head) * g.k_head;
    const uint16_t* v = g.v + static_cast<ptrdiff_t>(kv_head) * g.v_head;
    for (size_t first = 0; first < g.keys; first += kBlock) {
        const size_t count = std::min(kBlock, g.keys - first);
        if (!sees_any(tile, first, count)) continue;
        for (size_t j = 0; j < count; ++j) fetch(v + static_cast<ptrdiff_t>(first + j) * g.v_row, g.width_v);
        score_block(g, k + static_cast<ptrdiff_t>(first) * g.k_row, tile, count);
        for (size_t r = 0; r < kRows; ++r)
            if (!weigh(g, tile, r, first, count)) std::fill_n(tile.scores[r], kBlock, 0.0f);
        add_block(g, v + static_cast<ptrdiff_t>(first) * g.v_row, tile, keep_live(tile, count));
    }
    for (size_t r = 0; r < kRows; ++r) {
        const size_t token = (row + r) / group, head = kv_head * group + (row + r) % group;
        float* o = g.o + static_cast<ptrdiff_t>(token) * g.o_token + static_cast<ptrdiff_t>(head) * g.o_head;
        // A value that is not finite reaches the rows beside it that do not see its key.
        if (!finish(g, tile, r, head, o) && kRows > 1) run_tile<1>(g, kv_head, row + r);
    }
}

}  // namespace

bool has_target(size_t width, size_t width_v) {
    return kHasHalves && width % kLanes == 0 && width_v % kLanes == 0 && width > 0 && width_v > 0 &&
           width_v <= kMostWidth;
}

void run_target(const CachedAttentionArgs& g, int ith, int nth) {
    constexpr size_t kRows = 4;
    const size_t rows = g.tokens * (g.heads / g.kv_heads), tiles = divide_up(rows, kRows);
    // Turn by turn: with causal masks later tiles are longer.
    for (size_t task = static_cast<size_t>(ith); task < g.kv_heads * tiles;
         task += static_cast<size_t>(nth)) {
        const size_t head = task / tiles, row = task % tiles * kRows;
        switch (std::min(kRows, rows - row)) {
            case 1: run_tile<1>(g, head, row); break;
            case 2: run_tile<2>(g, head, row); break;
            case 3: run_tile<3>(g, head, row); break;
            default: run_tile<kRows>(g, head, row);
        }
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(has_target);
HWY_EXPORT(run_target);

bool has_cached_attention_f16(size_t width, size_t width_v) {
    return HWY_DYNAMIC_DISPATCH(has_target)(width, width_v);
}

void cached_attention_f16(const CachedAttentionArgs& g, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(run_target)(g, ith, nth);
}

}  // namespace headrace::kernels
#endif
