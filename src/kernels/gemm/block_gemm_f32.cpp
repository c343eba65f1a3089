#include "kernels/gemm/block_gemm_f32.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ir/block_group.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/block_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/expanded_gemm-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kBlock = kBlockElements;

// scale · codes + low for 16 bytes.
HWY_INLINE void expand(const int8_t* codes, float scale, float low, float* to) {
    const hn::CappedTag<float, 16> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<int8_t, decltype(d)> d8;
    const auto s = hn::Set(d, scale), base = hn::Set(d, low);
    for (size_t i = 0; i < 16; i += hn::Lanes(d)) {
        const auto v = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes + i)));
        hn::StoreU(hn::MulAdd(s, v, base), d, to + i);
    }
}

// Elements [32 · group, 32 · group + 32) of a row.
HWY_INLINE void expand_group(BlockFormat format, const std::byte* row, size_t group, float* to) {
    BlockGroup g;
    unpack_group(format, row, static_cast<int64_t>(group), g);
    expand(g.codes, g.scale[0], g.low, to);
    expand(g.codes + 16, g.scale[1], g.low, to + 16);
}

// A slice of depth of one panel of B, as pack() lays it out: [depth][width].
class Panel {
public:
    static constexpr size_t kUnit = kBlock;

    Panel(BlockFormat format, const std::byte* b, size_t k)
        : format_(format), b_(b), row_bytes_(blocks_bytes(format, static_cast<int64_t>(k))) {}

    // Rows [col, col + cols) of B, elements [k0, k1) of each, both multiples of 32.
    void fill(size_t col, size_t cols, size_t width, size_t k0, size_t k1) {
        alignas(64) float rows[kPanelWidth * kBlock];
        if (cols < width) std::memset(rows, 0, sizeof(rows));
        for (size_t at = k0; at < k1; at += kBlock) {
            for (size_t j = 0; j < cols; ++j)
                expand_group(format_, b_ + (col + j) * row_bytes_, at / kBlock, rows + j * kBlock);
            transpose_block(rows, kBlock, width, kBlock, values_ + (at - k0) * width,
                            static_cast<ptrdiff_t>(width));
        }
    }
    const float* values() const { return values_; }

private:
    BlockFormat format_;
    const std::byte* b_;
    size_t row_bytes_;
    alignas(64) float values_[kPanelWidth * kExpandedDepth];
};

// Rows that are multiplied as blocks are unpacked: a panel of f32 would be written for too few readers.
constexpr size_t kDotRows = 2;

// Rows [row, row + kRows) times rows [col, col + 4) of B, of which those from `end` on repeat the last one.
template <size_t kRows>
void dot_four(const GemmArgs& g, BlockFormat format, const std::byte* b, size_t row, size_t col, size_t end) {
    const TileTag d;
    const hn::Rebind<int32_t, TileTag> d32;
    const hn::Rebind<int8_t, TileTag> d8;
    const size_t row_bytes = blocks_bytes(format, static_cast<int64_t>(g.k));
    TileVec sums[kRows][4];
    for (auto& of_row : sums)
        for (TileVec& sum : of_row) sum = hn::Zero(d);
    for (size_t group = 0; group < g.k / kBlock; ++group) {
        const float* a = g.a + static_cast<ptrdiff_t>(row) * g.lda + group * kBlock;
        for (size_t j = 0; j < 4; ++j) {
            BlockGroup u;
            unpack_group(format, b + std::min(col + j, end - 1) * row_bytes, static_cast<int64_t>(group), u);
            const TileVec low = hn::Set(d, u.low);
            for (size_t i = 0; i < kBlock; i += kLanes) {
                const TileVec codes = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, u.codes + i)));
                const TileVec value = hn::MulAdd(hn::Set(d, u.scale[i / 16]), codes, low);
                for (size_t r = 0; r < kRows; ++r)
                    sums[r][j] = hn::MulAdd(value, hn::LoadU(d, a + static_cast<ptrdiff_t>(r) * g.lda + i),
                                            sums[r][j]);
            }
        }
    }
    for (size_t r = 0; r < kRows; ++r) {
        float products[4];
        store_sums_of_lanes(sums[r], products);
        for (size_t j = 0; j < std::min<size_t>(4, end - col); ++j)
            g.c[static_cast<ptrdiff_t>(row + r) * g.ldc + col + j] =
                products[j] + (g.bias ? g.bias[col + j] : 0);
    }
}

void dot_rows(const GemmArgs& g, BlockFormat format, const std::byte* b, const Rect& rect) {
    const size_t begin = rect.panel * kPanelWidth, end = std::min(g.n, rect.panel_end * kPanelWidth);
    for (size_t col = begin; col < end; col += 4) {
        if (rect.row_end - rect.row == 2)
            dot_four<2>(g, format, b, rect.row, col, end);
        else
            dot_four<1>(g, format, b, rect.row, col, end);
    }
    const Finish part = finish_of(g).at(rect.row, begin);
    if (part.needed())
        finish(part, rect.row_end - rect.row, end - begin,
               g.c + static_cast<ptrdiff_t>(rect.row) * g.ldc + begin, g.ldc);
}

}  // namespace

void block_gemm(const GemmArgs& g, BlockFormat format, const std::byte* b, int ith, int nth) {
    if (g.m <= kDotRows)
        return for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth,
                             [&](const Rect& rect) { dot_rows(g, format, b, rect); });
    Panel panel(format, b, g.k);
    for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth,
                  [&](const Rect& rect) { run_expanded(g, panel, rect); });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(block_gemm);

void block_gemm_f32(const GemmArgs& args, BlockFormat format, const std::byte* b, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(block_gemm)(args, format, b, ith, nth);
}

}  // namespace headrace::kernels
#endif
