// Which queries of an attention are computed together, and which keys of a cache they see. Included once per
// SIMD target.
#ifndef HEADRACE_KERNELS_SEEN_KEYS_SCRATCH
#define HEADRACE_KERNELS_SEEN_KEYS_SCRATCH

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::kernels {

// Queries that read the same keys: `rows` of a run of tokens from `token` on, in which a head of keys has
// `group` rows a token, from row `first` on.
struct QueryTile {
    size_t token, first, rows;
};

// What a thread keeps from one call to the next.
struct AttentionScratch {
    std::vector<QueryTile> tiles;
    std::vector<uint32_t> keys;   // that any row of the tile sees, then padding
    std::vector<float> masks;     // of those, for each token of the tile
    std::vector<float> scores;    // of those, for each row; then weights
    std::vector<double> weights;  // rounded
};

}  // namespace headrace::kernels

#endif  // HEADRACE_KERNELS_SEEN_KEYS_SCRATCH

#if defined(HEADRACE_KERNELS_TENSOR_SEEN_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_TENSOR_SEEN_KEYS_INL_H_
#undef HEADRACE_KERNELS_TENSOR_SEEN_KEYS_INL_H_
#else
#define HEADRACE_KERNELS_TENSOR_SEEN_KEYS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "base/half.h"
#include "hwy/highway.h"
#include "kernels/simd/memory-inl.h"
#include "kernels/tensor/decode_attention.h"

// Where sums of doubles are as fast as the attention wants them.
#undef HEADRACE_HAS_ORDER_FREE
#define HEADRACE_HAS_ORDER_FREE \
    (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

#if HEADRACE_HAS_ORDER_FREE

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Args = DecodeAttentionArgs<uint16_t>;

constexpr size_t kTileRows = 4;  // of queries
constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr uint16_t kHidden = 0xFC00;  // a mask's -infinity

bool is_hidden(uint16_t mask) { return mask == kHidden; }

const uint16_t* mask_of(const Args& g, size_t token) {
    return g.mask + static_cast<ptrdiff_t>(token) * g.mask_token;
}

// The first key that a token sees; g.keys if none.
size_t first_seen(const Args& g, size_t token) {
    const hn::ScalableTag<uint16_t> d;
    const uint16_t* mask = mask_of(g, token);
    size_t j = 0;
    while (j + hn::Lanes(d) <= g.keys && hn::AllTrue(d, hn::Eq(hn::LoadU(d, mask + j), hn::Set(d, kHidden))))
        j += hn::Lanes(d);
    while (j < g.keys && is_hidden(mask[j])) ++j;
    return j;
}

// Tokens that see a key in common are of one sequence, or share a beginning: they share tiles.
void find_tiles(const Args& g, std::vector<QueryTile>& tiles) {
    const size_t group = g.heads / g.kv_heads;
    tiles.clear();
    for (size_t token = 0; token < g.tokens;) {
        const size_t first_key = g.mask ? first_seen(g, token) : 0;
        size_t end = token + 1;
        while (end < g.tokens && first_key < g.keys && !(g.mask && is_hidden(mask_of(g, end)[first_key])))
            ++end;
        const size_t rows = (end - token) * group;
        for (size_t first = 0; first < rows; first += kTileRows)
            tiles.push_back({token, first, std::min(kTileRows, rows - first)});
        token = end;
    }
}

// One tile, for one head of keys after the other.
struct Job {
    const Args& g;
    AttentionScratch& scratch;
    size_t group, first_token, tokens, row, rows;  // row: of first_token's
    size_t count, padded;                          // keys, and with what fills the last vector up

    size_t token_of(size_t r) const { return (row + r) / group; }  // counted from first_token
    size_t head_of(size_t kv_head, size_t r) const { return kv_head * group + (row + r) % group; }
    float* scores(size_t r) const { return scratch.scores.data() + r * padded; }
    double* weights(size_t r) const { return scratch.weights.data() + r * padded; }
};

// Which keys any row of the tile sees.
void find_keys(Job& job) {
    const Args& g = job.g;
    std::vector<uint32_t>& keys = job.scratch.keys;
    keys.resize(g.keys + 2 * kLanes);
    const hn::CappedTag<uint32_t, kLanes> d;
    const hn::Rebind<uint16_t, decltype(d)> d16;
    size_t count = 0, j = 0;
    const auto mask = [&](size_t token) { return mask_of(g, job.first_token + token); };
    for (; g.mask && j + kLanes <= g.keys; j += kLanes) {
        const auto hidden = hn::Set(d, uint32_t{kHidden});
        auto all = hn::Eq(hn::PromoteTo(d, hn::LoadU(d16, mask(0) + j)), hidden);
        for (size_t t = 1; t < job.tokens; ++t)
            all = hn::And(all, hn::Eq(hn::PromoteTo(d, hn::LoadU(d16, mask(t) + j)), hidden));
        if (hn::AllTrue(d, all)) continue;
        const auto seen = hn::Not(all);
        hn::StoreU(hn::Compress(hn::Iota(d, static_cast<uint32_t>(j)), seen), d, keys.data() + count);
        count += hn::CountTrue(d, seen);
    }
    for (; j < g.keys; ++j) {
        bool seen = !g.mask;
        for (size_t t = 0; t < job.tokens && !seen; ++t) seen = !is_hidden(mask(t)[j]);
        if (seen) keys[count++] = static_cast<uint32_t>(j);
    }
    job.count = count, job.padded = divide_up(count, kLanes) * kLanes;
    for (j = count; j < job.padded; ++j) keys[j] = count > 0 ? keys[count - 1] : 0;
}

// Collects for every token of the tile what its mask adds to the keys; padding is hidden.
void gather_masks(const Job& job) {
    std::vector<float>& masks = job.scratch.masks;
    masks.resize(std::max(masks.size(), job.tokens * job.padded));
    for (size_t t = 0; t < job.tokens; ++t) {
        float* to = masks.data() + t * job.padded;
        const uint16_t* from = job.g.mask ? mask_of(job.g, job.first_token + t) : nullptr;
        for (size_t i = 0; i < job.count; ++i) {
            const uint16_t mask = from ? from[job.scratch.keys[i]] : 0;
            to[i] = mask == 0 ? 0.0f : is_hidden(mask) ? kMasked : half_to_float(mask);
        }
        std::fill(to + job.count, to + job.padded, kMasked);
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_HAS_ORDER_FREE
#endif  // HEADRACE_KERNELS_TENSOR_SEEN_KEYS_INL_H_
