#include "kernels/tensor/order_free_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/order_free_attention.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/half_floats-inl.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"
#include "kernels/simd/transpose-inl.h"
#include "kernels/tensor/seen_keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

#if HEADRACE_HAS_ORDER_FREE

using WideTag = hn::CappedTag<double, HWY_LANES(double)>;
using WideVec = hn::Vec<WideTag>;

constexpr size_t kScored = 4;   // keys whose scores are computed at a time
constexpr size_t kBlock = 128;  // keys whose values are added at a time
constexpr size_t kAhead = 8;    // keys that are fetched before they are needed
constexpr size_t kFewTiles = 16;
constexpr size_t kMostWidth = 512;  // of a row of values
constexpr size_t kWideLanes = HWY_LANES(double);

// A weight has this many bits behind the point, and a value of f16 has 24, too. Sums of fewer than 2^20
// weights, which are about 1 together, times values below kPlainBound have 53 bits then: what a double holds.
constexpr int kWeightBits = 24, kPlainExponent = 4;
constexpr float kPlainBound = 1 << kPlainExponent;

HWY_INLINE void fetch(const uint16_t* row, size_t width) {
    for (size_t i = 0; i < width; i += 32) __builtin_prefetch(row + i, 0, 2);
}

// Products of kRows queries and kKeys keys, lane by lane.
template <size_t kRows, size_t kKeys>
HWY_INLINE void multiply(size_t width, const float* const (&q)[kTileRows], const uint16_t* const* k,
                         TileVec (&sums)[kRows][kScored], size_t at) {
    const TileTag d;
    for (size_t r = 0; r < kRows; ++r)
        for (size_t j = 0; j < kKeys; ++j) sums[r][at + j] = hn::Zero(d);
    for (size_t i = 0; i < width; i += kLanes) {
        TileVec keys[kKeys];
        for (size_t j = 0; j < kKeys; ++j) keys[j] = widen<hwy::float16_t>(k[j] + i);
        for (size_t r = 0; r < kRows; ++r) {
            const TileVec query = hn::LoadU(d, q[r] + i);
            for (size_t j = 0; j < kKeys; ++j) sums[r][at + j] = hn::MulAdd(query, keys[j], sums[r][at + j]);
        }
    }
}

// Lanes are added up in the same order for whatever rows and keys.
template <size_t kRows>
void score(const Job& job, const uint16_t* k, const float* const (&q)[kTileRows]) {
    constexpr size_t kKeys = HWY_TARGET == HWY_AVX2 ? 2 : kScored;
    const uint32_t* keys = job.scratch.keys.data();
    for (size_t i = 0; i < job.padded; i += kScored) {
        const uint16_t* rows[kScored];
        for (size_t j = 0; j < kScored; ++j) {
            rows[j] = k + static_cast<ptrdiff_t>(keys[i + j]) * job.g.k_row;
            if (i + j + kAhead < job.count)
                fetch(k + static_cast<ptrdiff_t>(keys[i + j + kAhead]) * job.g.k_row, job.g.width);
        }
        TileVec sums[kRows][kScored];
        for (size_t j = 0; j < kScored; j += kKeys) multiply<kRows, kKeys>(job.g.width, q, rows + j, sums, j);
        for (size_t r = 0; r < kRows; ++r) store_sums_of_lanes(sums[r], job.scores(r) + i);
    }
}

// What is known of a row's softmax.
struct Softmax {
    double scale = 0;  // of the sums of weighted values
    bool has_nan = false;
};

// Scores, scaled and masked, and the largest of them; true if one is NaN.
bool finish_scores(const Args& g, const float* masks, float* scores, size_t padded, float& most) {
    const TileTag d;
    const TileVec hidden = hn::Set(d, kMasked),
                  scale = hn::Set(d, g.softcap != 0 ? g.scale / g.softcap : g.scale);
    TileVec largest = hidden;
    bool has_nan = false;
    for (size_t i = 0; i < padded; i += kLanes) {
        TileVec s = hn::Mul(hn::LoadU(d, scores + i), scale);
        if (g.softcap != 0) s = hn::Mul(hn::Set(d, g.softcap), vec_tanh(d, s));
        const TileVec mask = hn::LoadU(d, masks + i);
        s = hn::IfThenElse(hn::Eq(mask, hidden), hidden, hn::Add(s, mask));
        has_nan |= !hn::AllFalse(d, hn::IsNaN(s));
        largest = hn::Max(largest, s);
        hn::StoreU(s, d, scores + i);
    }
    most = hn::GetLane(hn::MaxOfLanes(d, largest));
    return has_nan;
}

// Whole numbers, of which sums are exact.
HWY_INLINE WideVec sum_of_halves(hn::Vec<hn::RebindToSigned<TileTag>> x, WideVec& low) {
    const hn::RebindToSigned<TileTag> d32;
    const hn::Half<decltype(d32)> half;
    low = hn::PromoteTo(WideTag(), hn::LowerHalf(half, x));
    return hn::PromoteTo(WideTag(), hn::UpperHalf(half, x));
}

// Scores become weights: e^(score - most) and then, as all of them together are known, whole numbers.
// Compiled once, so that products and sums are fused in the same places for whatever tile.
HWY_NOINLINE Softmax weigh(const Args& g, size_t head, const float* masks, float* scores, double* weights,
                           size_t padded) {
    const TileTag d;
    const WideTag wide;
    float most;
    if (finish_scores(g, masks, scores, padded, most)) return {.has_nan = true};
    if (most == kMasked) return {};
    if (g.sinks) most = std::max(most, g.sinks[head]);
    WideVec sum = hn::Zero(wide), low;
    for (size_t i = 0; i < padded; i += kLanes) {
        const TileVec w = exp_of_nonpositive(d, hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, most)));
        hn::StoreU(w, d, scores + i);
        const WideVec high = sum_of_halves(hn::NearestInt(hn::Mul(w, hn::Set(d, 0x1p30f))), low);
        sum = hn::Add(sum, hn::Add(low, high));
    }
    const double sink = g.sinks ? std::exp(static_cast<double>(g.sinks[head]) - most) : 0;
    int exponent;
    std::frexp(hn::GetLane(hn::SumOfLanes(wide, sum)) * 0x1p-30 + sink, &exponent);
    const double factor = std::ldexp(1.0, kWeightBits - exponent);
    sum = hn::Zero(wide);
    for (size_t i = 0; i < padded; i += kLanes) {
        const TileVec w = hn::Mul(hn::LoadU(d, scores + i), hn::Set(d, static_cast<float>(factor)));
        const WideVec high = sum_of_halves(hn::NearestInt(w), low);
        hn::StoreU(low, wide, weights + i);
        hn::StoreU(high, wide, weights + i + kWideLanes);
        sum = hn::Add(sum, hn::Add(low, high));
    }
    return {.scale = 1 / (hn::GetLane(hn::SumOfLanes(wide, sum)) + sink * factor)};
}

// How values are made ready for sums: as they are, or rounded to fewer bits behind the point.
struct PlainValues {
    HWY_INLINE WideVec operator()(WideVec v) const { return v; }
};
struct RoundedValues {
    double to_round;  // 1.5 · 2^52 times what values are rounded to
    HWY_INLINE WideVec operator()(WideVec v) const {
        const WideVec shift = hn::Set(WideTag(), to_round);
        return hn::Sub(hn::Add(v, shift), shift);
    }
};

using RowSums = double[kMostWidth];

// o += weights · values of the keys [begin, end) for kVecs vectors of columns from `at` on; largest: of all
// magnitudes among the values.
template <size_t kRows, size_t kVecs, class Rounding>
HWY_INLINE void add_values(const Job& job, const uint16_t* v, size_t begin, size_t end, size_t at,
                           const double* const (&weights)[kTileRows], Rounding rounding, RowSums* o,
                           TileVec& largest) {
    const WideTag wide;
    const hn::Half<TileTag> half;
    WideVec sums[kRows][2 * kVecs];
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < 2 * kVecs; ++c) sums[r][c] = hn::LoadU(wide, o[r] + at + c * kWideLanes);
    const uint32_t* keys = job.scratch.keys.data();
    for (size_t j = begin; j < end; ++j) {
        const uint16_t* row = v + static_cast<ptrdiff_t>(keys[j]) * job.g.v_row;
        if (at == 0 && j + kAhead < job.count)
            fetch(v + static_cast<ptrdiff_t>(keys[j + kAhead]) * job.g.v_row, job.g.width_v);
        WideVec values[2 * kVecs];
        for (size_t c = 0; c < kVecs; ++c) {
            const TileVec value = widen<hwy::float16_t>(row + at + c * kLanes);
            largest = hn::Max(largest, hn::Abs(value));
            values[2 * c] = rounding(hn::PromoteTo(wide, hn::LowerHalf(half, value)));
            values[2 * c + 1] = rounding(hn::PromoteTo(wide, hn::UpperHalf(half, value)));
        }
        for (size_t r = 0; r < kRows; ++r) {
            const WideVec weight = hn::Set(wide, weights[r][j]);
            for (size_t c = 0; c < 2 * kVecs; ++c) sums[r][c] = hn::MulAdd(weight, values[c], sums[r][c]);
        }
    }
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < 2 * kVecs; ++c) hn::StoreU(sums[r][c], wide, o[r] + at + c * kWideLanes);
}

// Returns the largest magnitude among the values; NaN may hide.
template <size_t kRows, class Rounding>
float add_all_values(const Job& job, const uint16_t* v, const double* const (&weights)[kTileRows],
                     Rounding rounding, RowSums* o) {
    constexpr size_t kVecs = HWY_TARGET == HWY_AVX2 ? 1 : 2;
    TileVec largest = hn::Zero(TileTag());
    for (size_t begin = 0; begin < job.count; begin += kBlock) {
        const size_t end = std::min(job.count, begin + kBlock);
        size_t at = 0;
        for (; at + kVecs * kLanes <= job.g.width_v; at += kVecs * kLanes)
            add_values<kRows, kVecs>(job, v, begin, end, at, weights, rounding, o, largest);
        for (; at < job.g.width_v; at += kLanes)
            add_values<kRows, 1>(job, v, begin, end, at, weights, rounding, o, largest);
    }
    return hn::GetLane(hn::MaxOfLanes(TileTag(), largest));
}

float* output_of(const Job& job, size_t kv_head, size_t r) {
    return job.g.o + static_cast<ptrdiff_t>(job.first_token + job.token_of(r)) * job.g.o_token +
           static_cast<ptrdiff_t>(job.head_of(kv_head, r)) * job.g.o_head;
}

// False: something is not finite.
bool store_row(const Job& job, const double* sums, double scale, float* o) {
    const WideTag wide;
    const hn::Rebind<float, WideTag> narrow;
    auto check = hn::Zero(narrow);
    for (size_t i = 0; i < job.g.width_v; i += kWideLanes) {
        const auto y = hn::DemoteTo(narrow, hn::Mul(hn::LoadU(wide, sums + i), hn::Set(wide, scale)));
        check = hn::MulAdd(y, hn::Zero(narrow), check);
        hn::StoreU(y, narrow, o + i);
    }
    return hn::GetLane(hn::SumOfLanes(narrow, check)) == 0;
}

// The largest magnitude among the values that a row gives weight to; infinity where one is not finite.
float largest_value(const Job& job, const uint16_t* v, const double* weights) {
    uint16_t largest = 0;  // magnitudes have the order of their bits
    for (size_t j = 0; j < job.count; ++j) {
        if (weights[j] == 0) continue;
        const uint16_t* row = v + static_cast<ptrdiff_t>(job.scratch.keys[j]) * job.g.v_row;
        for (size_t i = 0; i < job.g.width_v; ++i)
            largest = std::max<uint16_t>(largest, static_cast<uint16_t>(row[i] & 0x7FFF));
    }
    return largest >= 0x7C00 ? std::numeric_limits<float>::infinity() : half_to_float(largest);
}

// A row beside whose values, or those of rows beside it, are large ones: they are rounded to as many bits as
// sums have room for, by what the row itself sees.
void add_row_again(Job& job, const uint16_t* v, size_t r, double scale, float* o) {
    const float largest = largest_value(job, v, job.weights(r));
    if (!std::isfinite(largest) || !std::isfinite(scale)) {
        std::fill_n(o, job.g.width_v, std::numeric_limits<float>::quiet_NaN());
        return;
    }
    // Keys without weight may have values that are not finite.
    std::vector<uint32_t>& keys = job.scratch.keys;
    const std::vector<uint32_t> all(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(job.padded));
    std::vector<double> weights;
    const size_t count = job.count;
    for (size_t j = 0; j < count; ++j)
        if (job.weights(r)[j] != 0) keys[weights.size()] = all[j], weights.push_back(job.weights(r)[j]);
    job.count = weights.size();
    alignas(64) RowSums sums[1] = {};
    const double* const row[kTileRows] = {weights.data()};
    int exponent;
    std::frexp(largest, &exponent);
    if (exponent <= kPlainExponent)
        add_all_values<1>(job, v, row, PlainValues{}, sums);
    else
        add_all_values<1>(job, v, row,
                          RoundedValues{std::ldexp(1.5, 52 + exponent - kPlainExponent - kWeightBits)}, sums);
    store_row(job, sums[0], scale, o);
    job.count = count;
    std::copy(all.begin(), all.end(), keys.begin());
}

// kRows queries of a head of keys.
template <size_t kRows>
void run_tile(Job& job, size_t kv_head) {
    const Args& g = job.g;
    const uint16_t* k = g.k + static_cast<ptrdiff_t>(kv_head) * g.k_head;
    const uint16_t* v = g.v + static_cast<ptrdiff_t>(kv_head) * g.v_head;
    const float* q[kTileRows] = {};
    const double* weights[kTileRows] = {};
    for (size_t r = 0; r < kRows; ++r) {
        q[r] = g.q + static_cast<ptrdiff_t>(job.first_token + job.token_of(r)) * g.q_token +
               static_cast<ptrdiff_t>(job.head_of(kv_head, r)) * g.q_head;
        weights[r] = job.weights(r);
    }
    score<kRows>(job, k, q);
    Softmax softmax[kRows];
    for (size_t r = 0; r < kRows; ++r) {
        const float* masks = job.scratch.masks.data() + job.token_of(r) * job.padded;
        softmax[r] = weigh(g, job.head_of(kv_head, r), masks, job.scores(r), job.weights(r), job.padded);
        if (softmax[r].scale == 0) std::fill_n(job.weights(r), job.padded, 0.0);
        if (softmax[r].has_nan) softmax[r].scale = std::numeric_limits<double>::quiet_NaN();
    }
    alignas(64) RowSums sums[kRows];
    for (size_t r = 0; r < kRows; ++r) std::fill_n(sums[r], g.width_v, 0.0);
    const bool is_large = !(add_all_values<kRows>(job, v, weights, PlainValues{}, sums) < kPlainBound);
    for (size_t r = 0; r < kRows; ++r) {
        float* o = output_of(job, kv_head, r);
        if (!store_row(job, sums[r], softmax[r].scale, o) || is_large)
            add_row_again(job, v, r, softmax[r].scale, o);
    }
}

void run_rows(Job& job, size_t kv_head) {
    switch (job.rows) {
        case 1: return run_tile<1>(job, kv_head);
        case 2: return run_tile<2>(job, kv_head);
        case 3: return run_tile<3>(job, kv_head);
        default: run_tile<kTileRows>(job, kv_head);
    }
}

void run(const Args& g, int ith, int nth) {
    static thread_local AttentionScratch scratch;
    find_tiles(g, scratch.tiles);
    const size_t group = g.heads / g.kv_heads;
    Job job{g, scratch, group, 0, 0, 0, 0, 0, 0};
    size_t known = SIZE_MAX;  // the tile whose keys are listed
    // A few tiles list their keys once for all heads; where there are many, a head's keys stay in the cache
    // for all of them. Turn by turn: with causal masks later tiles are longer.
    const size_t tiles = scratch.tiles.size(), heads = g.kv_heads;
    const bool goes_by_heads = tiles > kFewTiles;
    for (size_t task = static_cast<size_t>(ith); task < tiles * heads; task += static_cast<size_t>(nth)) {
        const size_t tile = goes_by_heads ? task % tiles : task / heads;
        if (tile != known) {
            const QueryTile& of = scratch.tiles[tile];
            job.first_token = of.token + of.first / group, job.row = of.first % group, job.rows = of.rows;
            job.tokens = job.token_of(of.rows - 1) + 1;
            find_keys(job);
            gather_masks(job);
            scratch.scores.resize(std::max(scratch.scores.size(), kTileRows * job.padded));
            scratch.weights.resize(std::max(scratch.weights.size(), kTileRows * job.padded));
            known = tile;
        }
        run_rows(job, goes_by_heads ? task / tiles : task % heads);
    }
}

bool has(size_t width, size_t width_v) {
    return width % kLanes == 0 && width_v % kLanes == 0 && width > 0 && width_v > 0 && width_v <= kMostWidth;
}

#else

void run(const DecodeAttentionArgs<uint16_t>&, int, int) {
    HWY_ABORT("order_free_attention needs AVX2 or 64-bit NEON");
}
bool has(size_t, size_t) { return false; }

#endif

}  // namespace

bool has_order_free(size_t width, size_t width_v) { return has(width, width_v); }
void run_order_free(const DecodeAttentionArgs<uint16_t>& g, int ith, int nth) { run(g, ith, nth); }

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(has_order_free);
HWY_EXPORT(run_order_free);

bool has_order_free_attention(size_t width, size_t width_v) {
    return HWY_DYNAMIC_DISPATCH(has_order_free)(width, width_v);
}

void order_free_attention(const DecodeAttentionArgs<uint16_t>& g, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(run_order_free)(g, ith, nth);
}

}  // namespace headrace::kernels
#endif
