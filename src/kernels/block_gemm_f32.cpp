#include "kernels/block_gemm_f32.h"

#include <cstdint>
#include <cstring>

#include "ir/block_group.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/expanded_gemm-inl.h"
#include "kernels/simd_transpose-inl.h"

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

}  // namespace

void block_gemm(const GemmArgs& g, BlockFormat format, const std::byte* b, int ith, int nth) {
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
