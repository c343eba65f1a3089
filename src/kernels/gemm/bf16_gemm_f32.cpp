#include "kernels/gemm/bf16_gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "base/cpu_features.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/bf16_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/bf16_pairs-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

// One panel of B, whose columns are neighbours: rows of pairs from rows that lie `stride` apart.
void pack_rows(const float* b, ptrdiff_t stride, size_t k, size_t cols, uint32_t* panel) {
    const TileTag d;
    const hn::RebindToUnsigned<TileTag> d32;
    const hn::Repartition<uint16_t, TileTag> d16;
    const hn::Half<decltype(d16)> lanes16;
    const size_t width = packed_width(cols);
    for (size_t i = 0; i < k; i += 2, b += 2 * stride, panel += width)
        for (size_t col = 0; col < cols; col += kLanes) {
            const size_t count = std::min(kLanes, cols - col);
            const TileVec first = load_first(d, b + col, count);
            const TileVec second = i + 1 < k ? load_first(d, b + stride + col, count) : hn::Zero(d);
            const auto both = hn::BitCast(d16, Bf16Pairs::round(first, second));
            const auto low = hn::PromoteTo(d32, hn::LowerHalf(lanes16, both));
            const auto high = hn::PromoteTo(d32, hn::UpperHalf(lanes16, both));
            hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), d32, panel + col);
        }
}

// The same where the rows of a column are neighbours, and columns lie `stride` apart.
void pack_columns(const float* b, ptrdiff_t stride, size_t k, size_t cols, uint32_t* panel) {
    constexpr size_t kDepth = 128;  // elements at a time, which stay in the L1 cache
    alignas(64) uint16_t rounded[kPanelWidth * kDepth];
    const size_t width = packed_width(cols);
    for (size_t first = 0; first < k; first += kDepth) {
        const size_t depth = std::min(kDepth, k - first), pairs = divide_up(depth, 2);
        for (size_t col = 0; col < cols; ++col)
            round_elements(b + static_cast<ptrdiff_t>(col) * stride + first, depth, rounded + col * kDepth);
        uint32_t* to = panel + first / 2 * width;
        transpose_block(reinterpret_cast<const float*>(rounded), kDepth / 2, cols, pairs,
                        reinterpret_cast<float*>(to), static_cast<ptrdiff_t>(width));
        if (cols == width) continue;
        for (size_t i = 0; i < pairs; ++i)
            std::memset(to + i * width + cols, 0, (width - cols) * sizeof(*to));
    }
}

}  // namespace

void bf16_gemm(const GemmArgs& args, const uint16_t* packed, int ith, int nth) {
    GemmArgs pairs = args;
    pairs.k = divide_up(args.k, 2);
    const auto round_row = [&](size_t row, size_t first, size_t end, uint16_t* to) HWY_ATTR {
        round_elements(args.a + static_cast<ptrdiff_t>(row) * args.lda + first, end - first, to);
    };
    for_each_rect(1, args.m, args.n, tile_rows(kTileVecs), ith, nth, [&](const Rect& rect) {
        multiply_rounded(pairs, finish_of(args), args.k, packed, rect, round_row);
    });
}

void pack_rounded(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
                  uint16_t* packed) {
    const size_t pairs = divide_up(k, 2);
    for (size_t col = 0; col < n; col += kPanelWidth) {
        const size_t cols = std::min(kPanelWidth, n - col);
        const float* from = b + static_cast<ptrdiff_t>(col) * stride_n;
        uint32_t* panel = reinterpret_cast<uint32_t*>(packed) + col * pairs;
        if (stride_k == 1)
            pack_columns(from, stride_n, k, cols, panel);
        else
            pack_rows(from, stride_k, k, cols, panel);
    }
}

bool multiplies_bf16() { return cpu_features().avx512_bf16; }

#else

void bf16_gemm(const GemmArgs&, const uint16_t*, int, int) {}
void pack_rounded(const float*, ptrdiff_t, ptrdiff_t, size_t, size_t, uint16_t*) {}
bool multiplies_bf16() { return false; }

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(bf16_gemm);
HWY_EXPORT(pack_rounded);
HWY_EXPORT(multiplies_bf16);

bool has_bf16_gemm() { return HWY_DYNAMIC_DISPATCH(multiplies_bf16)(); }

size_t packed_bf16_bytes(size_t k, size_t n) { return (k + 1) / 2 * packed_width(n) * sizeof(uint32_t); }

void pack_bf16(const uint16_t* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
               uint16_t* packed) {
    pack_16_bits<2>(b, stride_k, stride_n, k, n, packed);
}

void pack_as_bf16(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
                  uint16_t* packed) {
    HWY_DYNAMIC_DISPATCH(pack_rounded)(b, stride_k, stride_n, k, n, packed);
}

void bf16_gemm_f32(const GemmArgs& args, const uint16_t* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(bf16_gemm)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
