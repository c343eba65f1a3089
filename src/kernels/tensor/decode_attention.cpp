#include "kernels/tensor/decode_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/simd/targets.h"

#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/decode_attention.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/half_floats-inl.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Keys whose scores are computed at a time, and whose values are fetched meanwhile.
template <class Element>
constexpr size_t kBlock = 128 / sizeof(Element);
constexpr size_t kMostWidth = 512;  // of a row of values
constexpr float kMasked = -std::numeric_limits<float>::infinity();

TileVec load(const float* from) { return hn::LoadU(TileTag(), from); }
TileVec load(const uint16_t* from) { return widen<hwy::float16_t>(from); }
float number(float x) { return x; }
float number(uint16_t half) { return half_to_float(half); }
bool is_hidden(float mask) { return mask == kMasked; }
bool is_hidden(uint16_t mask) { return mask == 0xFC00; }

// The queries of kRows heads and tokens that read the same keys, and what is known of their softmax.
template <size_t kRows, class Element>
struct Tile {
    const float* q[kRows];
    const Element* mask[kRows];
    float most[kRows], sum[kRows];
    alignas(64) float scores[kRows][kBlock<Element>];  // of the block's keys; then weights of those in `live`
    uint8_t live[kBlock<Element>];
    alignas(64) float o[kRows][kMostWidth];
};

// Rows of a head may lie too far apart for the processor to foresee them. While scores are computed the
// block's values are fetched, and with the values the next block's keys, so that memory always has something
// to do.
template <class Element>
HWY_INLINE void fetch(const Element* row, size_t width) {
    for (size_t i = 0; i < width; i += 64 / sizeof(Element)) __builtin_prefetch(row + i, 0, 2);
}

// Scores of kKeys keys that lie one after the other.
template <size_t kRows, size_t kKeys, class Element>
HWY_INLINE void score(const DecodeAttentionArgs<Element>& g, const Element* k, Tile<kRows, Element>& tile,
                      size_t at) {
    const TileTag d;
    TileVec sums[kRows][kKeys];
    for (size_t r = 0; r < kRows; ++r)
        for (size_t j = 0; j < kKeys; ++j) sums[r][j] = hn::Zero(d);
    for (size_t i = 0; i < g.width; i += kLanes) {
        TileVec keys[kKeys];
        for (size_t j = 0; j < kKeys; ++j) keys[j] = load(k + static_cast<ptrdiff_t>(j) * g.k_row + i);
        for (size_t r = 0; r < kRows; ++r) {
            const TileVec query = hn::LoadU(d, tile.q[r] + i);
            for (size_t j = 0; j < kKeys; ++j) sums[r][j] = hn::MulAdd(query, keys[j], sums[r][j]);
        }
    }
    for (size_t r = 0; r < kRows; ++r) {
        if constexpr (kKeys == 4) {
            store_sums_of_lanes(sums[r], tile.scores[r] + at);
        } else {
            for (size_t j = 0; j < kKeys; ++j)
                tile.scores[r][at + j] = hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
        }
    }
}

template <size_t kRows, class Element>
void score_block(const DecodeAttentionArgs<Element>& g, const Element* k, const Element* v,
                 Tile<kRows, Element>& tile, size_t count) {
    constexpr size_t kKeys = kRows == 1 ? 4 : HWY_TARGET == HWY_AVX3 ? 4 : 2;
    size_t j = 0;
    for (; j + kKeys <= count; j += kKeys) {
        const Element* keys = k + static_cast<ptrdiff_t>(j) * g.k_row;
        for (size_t ahead = j; ahead < j + kKeys; ++ahead)
            fetch(v + static_cast<ptrdiff_t>(ahead) * g.v_row, g.width_v);
        score<kRows, kKeys>(g, keys, tile, j);
    }
    for (; j < count; ++j) score<kRows, 1>(g, k + static_cast<ptrdiff_t>(j) * g.k_row, tile, j);
}

// Scores become weights, relative to the largest score up to here; what is there of the output and of the sum
// is scaled accordingly. False: there are none, as the row's keys are all masked or one gives NaN, which the
// sum keeps.
template <size_t kRows, class Element>
bool weigh(const DecodeAttentionArgs<Element>& g, Tile<kRows, Element>& tile, size_t r, size_t first,
           size_t count) {
    const TileTag d;
    float* scores = tile.scores[r];
    const float cap = g.softcap;
    std::fill(scores + count, scores + kBlock<Element>, 0.0f);
    for (size_t j = 0; j < kBlock<Element>; j += kLanes) {
        TileVec s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, cap != 0 ? g.scale / cap : g.scale));
        if (cap != 0) s = hn::Mul(hn::Set(d, cap), vec_tanh(d, s));
        hn::Store(s, d, scores + j);
    }
    if (tile.mask[r]) {
        const Element* mask = tile.mask[r] + first;
        size_t j = 0;
        const TileVec hidden =
            hn::Set(d, kMasked);  // whatever the score is: caches hold other sequences' keys
        for (; j + kLanes <= count; j += kLanes) {
            const TileVec m = load(mask + j), s = hn::Add(hn::Load(d, scores + j), m);
            hn::Store(hn::IfThenElse(hn::Eq(m, hidden), hidden, s), d, scores + j);
        }
        for (; j < count; ++j) scores[j] = is_hidden(mask[j]) ? kMasked : scores[j] + number(mask[j]);
    }
    std::fill(scores + count, scores + kBlock<Element>, kMasked);
    TileVec largest = hn::Load(d, scores);
    bool has_nan = false;
    for (size_t j = 0; j < kBlock<Element>; j += kLanes) {
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
    for (size_t j = 0; j < kBlock<Element>; j += kLanes) {
        const TileVec p = exp_of_nonpositive(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, most)));
        hn::Store(p, d, scores + j);
        sum = hn::Add(sum, p);
    }
    tile.sum[r] += hn::GetLane(hn::SumOfLanes(d, sum));
    return true;
}

// Leaves the keys that have weight for any row: values of the others may be anything.
template <size_t kRows, class Element>
size_t keep_live(Tile<kRows, Element>& tile, size_t count) {
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
template <size_t kRows, size_t kVecs, class Element>
HWY_INLINE void add_values(const DecodeAttentionArgs<Element>& g, const Element* v,
                           Tile<kRows, Element>& tile, size_t at, size_t count, const Element* next_keys) {
    const TileTag d;
    TileVec sums[kRows][kVecs];
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < kVecs; ++c) sums[r][c] = hn::Load(d, tile.o[r] + at + c * kLanes);
    for (size_t j = 0; j < count; ++j) {
        if (next_keys) fetch(next_keys + static_cast<ptrdiff_t>(j) * g.k_row, g.width);
        const Element* row = v + static_cast<ptrdiff_t>(tile.live[j]) * g.v_row + at;
        TileVec values[kVecs];
        for (size_t c = 0; c < kVecs; ++c) values[c] = load(row + c * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
            const TileVec weight = hn::Set(d, tile.scores[r][j]);
            for (size_t c = 0; c < kVecs; ++c) sums[r][c] = hn::MulAdd(weight, values[c], sums[r][c]);
        }
    }
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < kVecs; ++c) hn::Store(sums[r][c], d, tile.o[r] + at + c * kLanes);
}

template <size_t kRows, class Element>
void add_block(const DecodeAttentionArgs<Element>& g, const Element* v, Tile<kRows, Element>& tile,
               size_t count, const Element* next_keys) {
    constexpr size_t kVecs = HWY_TARGET == HWY_AVX3 ? 4 : 2;
    size_t at = 0;
    for (; at + kVecs * kLanes <= g.width_v; at += kVecs * kLanes)
        add_values<kRows, kVecs>(g, v, tile, at, count, at == 0 ? next_keys : nullptr);
    for (; at < g.width_v; at += kLanes)
        add_values<kRows, 1>(g, v, tile, at, count, at == 0 ? next_keys : nullptr);
}

template <size_t kRows, class Element>
bool sees_any(const Tile<kRows, Element>& tile, size_t first, size_t count) {
    int seen = 0;
    for (size_t r = 0; r < kRows; ++r) {
        if (!tile.mask[r]) return true;
        if (r > 0 && tile.mask[r] == tile.mask[r - 1]) continue;
        for (size_t j = 0; j < count; ++j) seen |= !is_hidden(tile.mask[r][first + j]);
    }
    return seen != 0;
}

// False: something is not finite.
template <size_t kRows, class Element>
bool finish(const DecodeAttentionArgs<Element>& g, Tile<kRows, Element>& tile, size_t r, size_t head,
            float* o) {
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
template <size_t kRows, class Element>
void run_tile(const DecodeAttentionArgs<Element>& g, size_t kv_head, size_t row) {
    const size_t group = g.heads / g.kv_heads;
    Tile<kRows, Element> tile;
    for (size_t r = 0; r < kRows; ++r) {
        const auto token = static_cast<ptrdiff_t>((row + r) / group);
        const auto head = static_cast<ptrdiff_t>(kv_head * group + (row + r) % group);
        tile.q[r] = g.q + token * g.q_token + head * g.q_head;
        tile.mask[r] = g.mask ? g.mask + token * g.mask_token : nullptr;
        tile.most[r] = kMasked, tile.sum[r] = 0;
        std::fill_n(tile.o[r], g.width_v, 0.0f);
    }
    const Element* k = g.k + static_cast<ptrdiff_t>(kv_head) * g.k_head;
    const Element* v = g.v + static_cast<ptrdiff_t>(kv_head) * g.v_head;
    for (size_t first = 0; first < g.keys; first += kBlock<Element>) {
        const size_t count = std::min(kBlock<Element>, g.keys - first);
        if (!sees_any(tile, first, count)) continue;
        const Element* keys = k + static_cast<ptrdiff_t>(first) * g.k_row;
        const Element* values = v + static_cast<ptrdiff_t>(first) * g.v_row;
        score_block(g, keys, values, tile, count);
        for (size_t r = 0; r < kRows; ++r)
            if (!weigh(g, tile, r, first, count)) std::fill_n(tile.scores[r], kBlock<Element>, 0.0f);
        add_block(g, values, tile, keep_live(tile, count),
                  keys + static_cast<ptrdiff_t>(kBlock<Element>) * g.k_row);
    }
    for (size_t r = 0; r < kRows; ++r) {
        const size_t token = (row + r) / group, head = kv_head * group + (row + r) % group;
        float* o = g.o + static_cast<ptrdiff_t>(token) * g.o_token + static_cast<ptrdiff_t>(head) * g.o_head;
        // A value that is not finite reaches the rows beside it that do not see its key.
        if (!finish(g, tile, r, head, o) && kRows > 1) run_tile<1>(g, kv_head, row + r);
    }
}

template <class Element>
bool has(size_t width, size_t width_v) {
    return (kConvertsHalfFloats || sizeof(Element) == sizeof(float)) && width % kLanes == 0 &&
           width_v % kLanes == 0 && width > 0 && width_v > 0 && width_v <= kMostWidth;
}

template <class Element>
void run(const DecodeAttentionArgs<Element>& g, int ith, int nth) {
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

}  // namespace

bool has_f16(size_t width, size_t width_v) { return has<uint16_t>(width, width_v); }
bool has_f32(size_t width, size_t width_v) { return has<float>(width, width_v); }
void run_f16(const DecodeAttentionArgs<uint16_t>& g, int ith, int nth) { run(g, ith, nth); }
void run_f32(const DecodeAttentionArgs<float>& g, int ith, int nth) { run(g, ith, nth); }

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(has_f16);
HWY_EXPORT(has_f32);
HWY_EXPORT(run_f16);
HWY_EXPORT(run_f32);

template <>
bool has_cached_attention<uint16_t>(size_t width, size_t width_v) {
    return HWY_DYNAMIC_DISPATCH(has_f16)(width, width_v);
}
template <>
bool has_cached_attention<float>(size_t width, size_t width_v) {
    return HWY_DYNAMIC_DISPATCH(has_f32)(width, width_v);
}

void decode_attention(const DecodeAttentionArgs<uint16_t>& g, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(run_f16)(g, ith, nth);
}
void decode_attention(const DecodeAttentionArgs<float>& g, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(run_f32)(g, ith, nth);
}

}  // namespace headrace::kernels
#endif
