#include "kernels/content_hash.h"

#include <array>
#include <cstring>

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/content_hash.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef HEADRACE_KERNELS_CONTENT_HASH
#define HEADRACE_KERNELS_CONTENT_HASH
namespace headrace::kernels {

inline constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t), kStripesPerBlock = 16;
inline constexpr uint64_t kPrime = 0x9E3779B1u;  // of 32 bits

// Arbitrary numbers without a pattern (splitmix64). Stripe s of a block is mixed with those from s on.
inline constexpr auto kSecret = [] {
    std::array<uint64_t, kLanes + kStripesPerBlock> numbers{};
    uint64_t state = 0;
    for (uint64_t& number : numbers) {
        state += 0x9E3779B97F4A7C15u;
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        number = z ^ (z >> 31);
    }
    return numbers;
}();

}  // namespace headrace::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds `stripes` stripes, which begin a block, to the lanes: the product of the halves of each mixed word,
// and the word itself to the other lane of its pair, where that product cannot cancel it.
#if HWY_TARGET == HWY_SCALAR
void add_stripes(const uint8_t* data, size_t stripes, uint64_t* lanes) {
    for (size_t s = 0; s < stripes; ++s) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
            uint64_t word = 0;
            std::memcpy(&word, data + s * kStripe + lane * sizeof(word), sizeof(word));
            const uint64_t mixed = word ^ kSecret[s % kStripesPerBlock + lane];
            lanes[lane] += (mixed & 0xFFFFFFFFu) * (mixed >> 32);
            lanes[lane ^ 1] += word;
        }
        if (s % kStripesPerBlock + 1 < kStripesPerBlock) continue;
        for (size_t lane = 0; lane < kLanes; ++lane)
            lanes[lane] = (lanes[lane] ^ (lanes[lane] >> 47) ^ kSecret[kStripesPerBlock + lane]) * kPrime;
    }
}
#else
using Tag = hn::CappedTag<uint64_t, kLanes>;
inline constexpr size_t kStep = HWY_LANES(uint64_t) < kLanes ? HWY_LANES(uint64_t) : kLanes;
inline constexpr size_t kVectors = kLanes / kStep;

void add_stripes(const uint8_t* data, size_t stripes, uint64_t* lanes) {
    const Tag d;
    const hn::Repartition<uint32_t, Tag> d32;
    const hn::Repartition<uint8_t, Tag> d8;
    const auto prime = hn::BitCast(d32, hn::Set(d, kPrime));
    hn::Vec<Tag> sums[kVectors];
    for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, lanes + v * kStep);
    for (size_t s = 0; s < stripes; ++s) {
        for (size_t v = 0; v < kVectors; ++v) {
            const auto word =
                hn::BitCast(d, hn::LoadU(d8, data + s * kStripe + v * kStep * sizeof(uint64_t)));
            const auto mixed = hn::Xor(word, hn::LoadU(d, kSecret.data() + s % kStripesPerBlock + v * kStep));
            const auto product =
                hn::MulEven(hn::BitCast(d32, mixed), hn::BitCast(d32, hn::ShiftRight<32>(mixed)));
            sums[v] = hn::Add(sums[v], hn::Add(product, hn::Shuffle01(word)));
        }
        if (s % kStripesPerBlock + 1 < kStripesPerBlock) continue;
        for (size_t v = 0; v < kVectors; ++v) {
            const auto key = hn::LoadU(d, kSecret.data() + kStripesPerBlock + v * kStep);
            const auto mixed = hn::Xor(hn::Xor(sums[v], hn::ShiftRight<47>(sums[v])), key);
            // By halves: not every instruction set multiplies 64 bits.
            const auto low = hn::MulEven(hn::BitCast(d32, mixed), prime);
            const auto high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(mixed)), prime);
            sums[v] = hn::Add(low, hn::ShiftLeft<32>(high));
        }
    }
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, lanes + v * kStep);
}
#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(add_stripes);

namespace {

uint64_t folded_product(uint64_t a, uint64_t b) {
    uint64_t high = 0;
    const uint64_t low = hwy::Mul128(a, b, &high);
    return low ^ high;
}

uint64_t merged(const uint64_t* lanes, size_t secret, uint64_t start) {
    for (size_t i = 0; i < kLanes; i += 2)
        start += folded_product(lanes[i] ^ kSecret[secret + i], lanes[i + 1] ^ kSecret[secret + i + 1]);
    start = (start ^ (start >> 37)) * 0x165667919E3779F9u;
    return start ^ (start >> 32);
}

}  // namespace

ContentHash content_hash(const void* data, size_t bytes) {
    alignas(64) uint64_t lanes[kLanes];
    std::memcpy(lanes, kSecret.data(), sizeof(lanes));
    const auto* at = static_cast<const uint8_t*>(data);
    const size_t whole = bytes / kStripe;
    if (whole) HWY_DYNAMIC_DISPATCH(add_stripes)(at, whole, lanes);
    if (const size_t rest = bytes % kStripe) {
        uint8_t last[kStripe] = {};
        std::memcpy(last, at + whole * kStripe, rest);
        HWY_DYNAMIC_DISPATCH(add_stripes)(last, 1, lanes);
    }
    const uint64_t length = bytes * 0x9E3779B185EBCA87u;
    return {merged(lanes, 3, length), merged(lanes, 11, ~length)};
}

}  // namespace headrace::kernels
#endif
