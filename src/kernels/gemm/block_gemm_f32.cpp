#include "kernels/gemm/block_gemm_f32.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ir/block_group.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/block_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/dequantized_gemm-inl.h"
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

// Blocks of 32 with one scale whose codes lie in whole bytes: elements are scale · code + low, where codes of
// 4 bits have no sign.
template <BlockFormat kFormat>
class PlainBlock {
    using enum BlockFormat;
    static constexpr bool kIsHalf = is_of_ggml(kFormat), kHasMinimum = kFormat == q4_1 || kFormat == q4_1_f32;
    static constexpr size_t kNumber = kIsHalf ? 2 : 4;

public:
    static constexpr bool kNibbles = kFormat != q8_0 && kFormat != q8_0_f32;
    static constexpr size_t kVecs = kBlock / kLanes;
    static constexpr bool kIsCentered = kNibbles && !kHasMinimum;  // elements are scale · (code - 8)

    HWY_INLINE explicit PlainBlock(const std::byte* block)
        : scale_(number(block)),
          low_(kHasMinimum ? number(block + kNumber)
               : kNibbles  ? -8 * scale_
                           : 0) {
        const std::byte* from = block + kNumber * (kHasMinimum ? 2 : 1);
        if constexpr (kNibbles) {
            const hn::CappedTag<uint8_t, 16> d8;
            const auto mask = hn::Set(d8, uint8_t{15});
            for (size_t i = 0; i < 16; i += hn::Lanes(d8)) {
                const auto both = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(from) + i);
                hn::Store(hn::And(both, mask), d8, nibbles_ + i);
                hn::Store(hn::ShiftRight<4>(both), d8, nibbles_ + 16 + i);
            }
        } else {
            bytes_ = reinterpret_cast<const int8_t*>(from);
        }
    }
    HWY_INLINE TileVec codes(size_t vec) const {
        const TileTag d;
        const hn::Rebind<int32_t, TileTag> d32;
        if constexpr (kNibbles) {
            const hn::Rebind<uint8_t, TileTag> d8;
            return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, nibbles_ + vec * kLanes)));
        } else {
            const hn::Rebind<int8_t, TileTag> d8;
            return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, bytes_ + vec * kLanes)));
        }
    }
    HWY_INLINE float scale() const { return scale_; }
    HWY_INLINE float low() const { return low_; }

    HWY_INLINE void expand(float* to) const {
        const TileTag d;
        const TileVec scale = hn::Set(d, scale_), low = hn::Set(d, low_);
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) hn::StoreU(hn::MulAdd(scale, codes(v), low), d, to + v * kLanes);
    }

private:
    static HWY_INLINE float number(const std::byte* from) {
        if constexpr (kIsHalf) return load_half(from);
        float value;
        std::memcpy(&value, from, sizeof(value));
        return value;
    }

    float scale_, low_;
    const int8_t* bytes_ = nullptr;
    alignas(16) uint8_t nibbles_[kNibbles ? kBlock : 1];
};

// Calls fn.operator()<PlainBlock<format>>() for formats that are such; false for others.
template <class Fn>
HWY_INLINE bool with_plain_blocks(BlockFormat format, Fn fn) {
    using enum BlockFormat;
    switch (format) {
        case q8_0: fn.template operator()<PlainBlock<q8_0>>(); return true;
        case q4_0: fn.template operator()<PlainBlock<q4_0>>(); return true;
        case q4_1: fn.template operator()<PlainBlock<q4_1>>(); return true;
        case q8_0_f32: fn.template operator()<PlainBlock<q8_0_f32>>(); return true;
        case q4_0_f32: fn.template operator()<PlainBlock<q4_0_f32>>(); return true;
        case q4_1_f32: fn.template operator()<PlainBlock<q4_1_f32>>(); return true;
        default: return false;
    }
}

// Elements [32 · group, 32 · group + 32) of a row.
HWY_INLINE void expand_group(BlockFormat format, const std::byte* row, size_t group, float* to) {
    if (with_plain_blocks(
            format, [&]<class Block>() HWY_ATTR { Block(row + group * block_bytes(format)).expand(to); }))
        return;
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

template <size_t kRows>
HWY_INLINE void store_four(const GemmArgs& g, const TileVec (&sums)[kRows][4], size_t row, size_t col,
                           size_t end) {
    for (size_t r = 0; r < kRows; ++r) {
        float products[4];
        store_sums_of_lanes(sums[r], products);
        for (size_t j = 0; j < std::min<size_t>(4, end - col); ++j)
            g.c[static_cast<ptrdiff_t>(row + r) * g.ldc + col + j] =
                products[j] + (g.bias ? g.bias[col + j] : 0);
    }
}

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
    store_four<kRows>(g, sums, row, col, end);
}

// The same for plain blocks: codes are multiplied first, and the sums of a block by its scale.
template <class Block, size_t kRows>
HWY_NOINLINE void dot_four_plain(const GemmArgs& g, size_t block_bytes, const std::byte* b, size_t row,
                                 size_t col, size_t end) {
    const TileTag d;
    const size_t row_bytes = g.k / kBlock * block_bytes;
    const std::byte* columns[4];
    for (size_t j = 0; j < 4; ++j) columns[j] = b + std::min(col + j, end - 1) * row_bytes;
    TileVec sums[kRows][4];
    for (auto& of_row : sums)
        for (TileVec& sum : of_row) sum = hn::Zero(d);
    for (size_t group = 0; group < g.k / kBlock; ++group) {
        const float* a = g.a + static_cast<ptrdiff_t>(row) * g.lda + group * kBlock;
        TileVec whole[kRows], center[kRows];  // sums of a, which lows are multiplied with
        HWY_UNROLL(2)
        for (size_t r = 0; r < kRows; ++r) {
            whole[r] = hn::Zero(d);
            HWY_UNROLL(4)
            for (size_t v = 0; v < Block::kVecs; ++v)
                whole[r] =
                    hn::Add(whole[r], hn::LoadU(d, a + static_cast<ptrdiff_t>(r) * g.lda + v * kLanes));
            center[r] = hn::Mul(hn::Set(d, -8.0f), whole[r]);
        }
        HWY_UNROLL(4)
        for (size_t j = 0; j < 4; ++j) {
            const std::byte* at = columns[j] + group * block_bytes;
            // Four rows at a time are no order that the CPU foresees: half the time went into waiting.
            hwy::Prefetch(at + 4 * row_bytes);
            const Block block(at);
            TileVec dot[kRows];
            for (size_t r = 0; r < kRows; ++r) dot[r] = Block::kIsCentered ? center[r] : hn::Zero(d);
            HWY_UNROLL(4)
            for (size_t v = 0; v < Block::kVecs; ++v) {
                const TileVec codes = block.codes(v);
                HWY_UNROLL(2)
                for (size_t r = 0; r < kRows; ++r)
                    dot[r] = hn::MulAdd(
                        codes, hn::LoadU(d, a + static_cast<ptrdiff_t>(r) * g.lda + v * kLanes), dot[r]);
            }
            HWY_UNROLL(2)
            for (size_t r = 0; r < kRows; ++r) {
                sums[r][j] = hn::MulAdd(hn::Set(d, block.scale()), dot[r], sums[r][j]);
                if constexpr (Block::kNibbles && !Block::kIsCentered)
                    sums[r][j] = hn::MulAdd(hn::Set(d, block.low()), whole[r], sums[r][j]);
            }
        }
    }
    store_four<kRows>(g, sums, row, col, end);
}

template <size_t kRows>
void dot_columns(const GemmArgs& g, BlockFormat format, const std::byte* b, size_t row, size_t begin,
                 size_t end) {
    const bool is_plain = with_plain_blocks(format, [&]<class Block>() HWY_ATTR {
        for (size_t col = begin; col < end; col += 4)
            dot_four_plain<Block, kRows>(g, block_bytes(format), b, row, col, end);
    });
    for (size_t col = begin; !is_plain && col < end; col += 4) dot_four<kRows>(g, format, b, row, col, end);
}

void dot_rows(const GemmArgs& g, BlockFormat format, const std::byte* b, const Rect& rect) {
    const size_t begin = rect.panel * kPanelWidth, end = std::min(g.n, rect.panel_end * kPanelWidth);
    if (rect.row_end - rect.row == 2)
        dot_columns<2>(g, format, b, rect.row, begin, end);
    else
        dot_columns<1>(g, format, b, rect.row, begin, end);
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
