#include "kernels/gemm/block_gemm_f32.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

HWY_INLINE float float_at(const std::byte* from) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

// How blocks of 32 lie whose codes are in whole bytes. Elements are scale · (code - zero), with a minimum
// scale · code + low; codes of 4 bits have no sign. Some have a scale and a zero for each half.
template <BlockFormat kFormat>
struct PlainLayout {
    using enum BlockFormat;
    static constexpr bool kIsPair = has_blocks_of_16(kFormat), kIsHalf = is_of_ggml(kFormat);
    static constexpr bool kNibbles = kFormat != q8_0 && kFormat != q8_0_f32 && kFormat != q8_16_f32;
    static constexpr bool kHasMinimum = kFormat == q4_1 || kFormat == q4_1_f32;
    static constexpr size_t kScales = kIsPair ? 2 : 1, kNumber = kIsHalf ? 2 : 4;
    static constexpr size_t kCodeBytes = kNibbles ? 16 : 32;
    static constexpr size_t kBytes = headrace::block_bytes(kFormat), kCodesAt = kBytes - kCodeBytes;

    static HWY_INLINE float number(const std::byte* from) {
        if constexpr (kIsHalf) return load_half(from);
        return float_at(from);
    }
    static HWY_INLINE float scale(const std::byte* block, size_t half) {
        return number(block + half * kNumber);
    }
    static HWY_INLINE float low(const std::byte* block) { return number(block + kNumber); }
    // Zeros are of the block, 4 bits for each half, or 8.
    static constexpr bool kHasZeros = kIsPair && kNibbles;
    static constexpr bool kZeroIsEight = kNibbles && !kHasMinimum && !kHasZeros;
    static HWY_INLINE uint8_t zeros(const std::byte* block) {
        return std::to_integer<uint8_t>(block[kCodesAt - 1]);
    }
};

// Codes of one block as vectors, less zeros that the block has.
template <class Layout>
class BlockCodes {
public:
    HWY_INLINE explicit BlockCodes(const std::byte* block) {
        const std::byte* from = block + Layout::kCodesAt;
        if constexpr (Layout::kNibbles) {
            const hn::CappedTag<uint8_t, 16> d8;
            const auto mask = hn::Set(d8, uint8_t{15});
            for (size_t i = 0; i < 16; i += hn::Lanes(d8)) {
                const auto both = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(from) + i);
                auto low = hn::And(both, mask), high = hn::ShiftRight<4>(both);
                if constexpr (Layout::kHasZeros) {
                    const auto zeros = hn::Set(d8, Layout::zeros(block));
                    low = hn::Sub(low, hn::And(zeros, mask));
                    high = hn::Sub(high, hn::ShiftRight<4>(zeros));
                }
                hn::Store(low, d8, nibbles_ + i);
                hn::Store(high, d8, nibbles_ + 16 + i);
            }
        } else {
            bytes_ = reinterpret_cast<const int8_t*>(from);
        }
    }
    HWY_INLINE TileVec operator()(size_t vec) const {
        const TileTag d;
        const hn::Rebind<int32_t, TileTag> d32;
        const hn::Rebind<int8_t, TileTag> d8;
        const auto* codes = Layout::kNibbles ? reinterpret_cast<const int8_t*>(nibbles_) : bytes_;
        return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes + vec * kLanes)));
    }

private:
    const int8_t* bytes_ = nullptr;
    alignas(16) uint8_t nibbles_[Layout::kNibbles ? kBlock : 1];
};

// A group of 32 elements of up to kPanelWidth plain blocks, one of each row of B, as a panel has them: the
// codes change places four at a time, as words, before they become numbers of four times the size.
template <class Layout>
class PlainPanelGroup {
public:
    HWY_INLINE void read(const std::byte* block, size_t row_bytes, size_t cols) {
        for (size_t j = 0; j < cols; ++j, block += row_bytes) {
            for (size_t half = 0; half < Layout::kScales; ++half)
                scales_[half][j] = Layout::scale(block, half);
            if constexpr (Layout::kHasMinimum) lows_[j] = Layout::low(block);
            if constexpr (Layout::kHasZeros) zeros_[j] = Layout::zeros(block);
            copy_codes(block + Layout::kCodesAt, codes_ + j * kWords);
        }
    }
    // [32][width]
    HWY_INLINE void write(size_t width, float* to) {
        transpose_block(codes_, kWords, width, kWords, words_, kPanelWidth);
        for (size_t col = 0; col < width; col += kLanes) {
            TileVec scale[Layout::kScales], base[Layout::kScales];
            for (size_t half = 0; half < Layout::kScales; ++half) {
                scale[half] = hn::Load(TileTag(), scales_[half] + col);
                base[half] = base_of(half, col);
            }
            HWY_UNROLL(4)
            for (size_t w = 0; w < kWords; ++w) {
                const auto words = hn::BitCast(kCodeTag, hn::Load(TileTag(), words_ + w * kPanelWidth + col));
                write_words(words, w * 4, scale, base, width, to + col);
            }
        }
    }

private:
    static constexpr size_t kWords = Layout::kCodeBytes / 4;
    // Bytes have a sign, which shifts keep.
    static constexpr hn::Rebind<std::conditional_t<Layout::kNibbles, uint32_t, int32_t>, TileTag> kCodeTag{};
    using Words = hn::Vec<std::remove_const_t<decltype(kCodeTag)>>;

    // By vectors: GCC 12 makes aligned loads of what memcpy() reads here.
    static HWY_INLINE void copy_codes(const std::byte* from, float* to) {
        const hn::CappedTag<uint8_t, 16> d;
        for (size_t i = 0; i < Layout::kCodeBytes; i += hn::Lanes(d))
            hn::StoreU(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from) + i), d,
                       reinterpret_cast<uint8_t*>(to) + i);
    }

    // The minimum of the codes, or the code that stands for 0.
    HWY_INLINE TileVec base_of(size_t half, size_t col) const {
        const TileTag d;
        if constexpr (Layout::kHasMinimum) return hn::Load(d, lows_ + col);
        if constexpr (!Layout::kHasZeros) return hn::Set(d, Layout::kZeroIsEight ? 8.0f : 0.0f);
        const hn::Rebind<uint32_t, TileTag> d32;
        const auto both = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<uint8_t, TileTag>(), zeros_ + col));
        const auto zero = half ? hn::ShiftRight<4>(both) : hn::And(both, hn::Set(d32, 15u));
        return hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<TileTag>(), zero));
    }

    // Elements [k, k + 4), of nibbles [k + 16, k + 20), too.
    static HWY_INLINE void write_words(Words words, size_t k, const TileVec* scale, const TileVec* base,
                                       size_t width, float* to) {
        const auto store = [&](Words code, size_t at) HWY_ATTR {
            const size_t half = Layout::kScales == 2 && at >= 16;
            const TileVec value = hn::ConvertTo(TileTag(), hn::BitCast(hn::RebindToSigned<TileTag>(), code));
            hn::StoreU(Layout::kHasMinimum ? hn::MulAdd(scale[half], value, base[half])
                       : Layout::kNibbles  ? hn::Mul(scale[half], hn::Sub(value, base[half]))
                                           : hn::Mul(scale[half], value),
                       TileTag(), to + at * width);
        };
        const auto store_byte = [&]<int kByte>() HWY_ATTR {
            if constexpr (Layout::kNibbles) {
                const auto mask = hn::Set(kCodeTag, 15u);
                store(hn::And(hn::ShiftRight<8 * kByte>(words), mask), k + kByte);
                store(hn::And(hn::ShiftRight<8 * kByte + 4>(words), mask), k + kByte + 16);
            } else {
                store(hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * kByte>(words)), k + kByte);
            }
        };
        store_byte.template operator()<0>();
        store_byte.template operator()<1>();
        store_byte.template operator()<2>();
        store_byte.template operator()<3>();
    }

    alignas(64) float codes_[kPanelWidth * kWords] = {};
    alignas(64) float words_[kPanelWidth * kWords];
    alignas(64) float scales_[Layout::kScales][kPanelWidth] = {};
    alignas(64) float lows_[kPanelWidth] = {};
    uint8_t zeros_[kPanelWidth] = {};
};

// Calls fn.operator()<PlainLayout<format>>() for formats that are such; false for others.
template <class Fn>
HWY_INLINE bool with_plain_blocks(BlockFormat format, Fn fn) {
    using enum BlockFormat;
    switch (format) {
        case q8_0: fn.template operator()<PlainLayout<q8_0>>(); return true;
        case q4_0: fn.template operator()<PlainLayout<q4_0>>(); return true;
        case q4_1: fn.template operator()<PlainLayout<q4_1>>(); return true;
        case q8_0_f32: fn.template operator()<PlainLayout<q8_0_f32>>(); return true;
        case q4_0_f32: fn.template operator()<PlainLayout<q4_0_f32>>(); return true;
        case q4_1_f32: fn.template operator()<PlainLayout<q4_1_f32>>(); return true;
        case q8_16_f32: fn.template operator()<PlainLayout<q8_16_f32>>(); return true;
        case q4_16_f32: fn.template operator()<PlainLayout<q4_16_f32>>(); return true;
        default: return false;
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
        if (with_plain_blocks(format_, [&]<class Layout>() HWY_ATTR {
                fill_plain<Layout>(b_ + col * row_bytes_, cols, width, k0, k1);
            }))
            return;
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
    template <class Layout>
    HWY_NOINLINE void fill_plain(const std::byte* rows, size_t cols, size_t width, size_t k0, size_t k1) {
        PlainPanelGroup<Layout> group;
        for (size_t at = k0; at < k1; at += kBlock) {
            group.read(rows + at / kBlock * Layout::kBytes, row_bytes_, cols);
            group.write(width, values_ + (at - k0) * width);
        }
    }

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

// The same for plain blocks: codes are multiplied first, and the sums of what has one scale by that.
template <class Layout, size_t kRows>
HWY_NOINLINE void dot_four_plain(const GemmArgs& g, const std::byte* b, size_t row, size_t col, size_t end) {
    const TileTag d;
    constexpr size_t kScales = Layout::kScales, kVecs = kBlock / kLanes / kScales;
    const size_t row_bytes = g.k / kBlock * Layout::kBytes;
    const std::byte* columns[4];
    for (size_t j = 0; j < 4; ++j) columns[j] = b + std::min(col + j, end - 1) * row_bytes;
    TileVec sums[kRows][4];
    for (auto& of_row : sums)
        for (TileVec& sum : of_row) sum = hn::Zero(d);
    for (size_t group = 0; group < g.k / kBlock; ++group) {
        const float* a = g.a + static_cast<ptrdiff_t>(row) * g.lda + group * kBlock;
        TileVec whole[kRows][kScales];  // sums of a, which zeros and minima are multiplied with
        HWY_UNROLL(2)
        for (size_t r = 0; r < kRows; ++r)
            for (size_t half = 0; half < kScales; ++half) {
                whole[r][half] = hn::Zero(d);
                HWY_UNROLL(4)
                for (size_t v = half * kVecs; v < (half + 1) * kVecs; ++v)
                    whole[r][half] = hn::Add(
                        whole[r][half], hn::LoadU(d, a + static_cast<ptrdiff_t>(r) * g.lda + v * kLanes));
            }
        HWY_UNROLL(4)
        for (size_t j = 0; j < 4; ++j) {
            const std::byte* block = columns[j] + group * Layout::kBytes;
            // Four rows at a time are no order that the CPU foresees: half the time went into waiting.
            hwy::Prefetch(block + 4 * row_bytes);
            const BlockCodes<Layout> codes(block);
            HWY_UNROLL(2)
            for (size_t half = 0; half < kScales; ++half) {
                TileVec dot[kRows];
                HWY_UNROLL(2)
                for (size_t r = 0; r < kRows; ++r)
                    dot[r] = Layout::kZeroIsEight ? hn::Mul(hn::Set(d, -8.0f), whole[r][half]) : hn::Zero(d);
                HWY_UNROLL(4)
                for (size_t v = half * kVecs; v < (half + 1) * kVecs; ++v) {
                    const TileVec code = codes(v);
                    HWY_UNROLL(2)
                    for (size_t r = 0; r < kRows; ++r)
                        dot[r] = hn::MulAdd(
                            code, hn::LoadU(d, a + static_cast<ptrdiff_t>(r) * g.lda + v * kLanes), dot[r]);
                }
                HWY_UNROLL(2)
                for (size_t r = 0; r < kRows; ++r) {
                    sums[r][j] = hn::MulAdd(hn::Set(d, Layout::scale(block, half)), dot[r], sums[r][j]);
                    if constexpr (Layout::kHasMinimum)
                        sums[r][j] = hn::MulAdd(hn::Set(d, Layout::low(block)), whole[r][half], sums[r][j]);
                }
            }
        }
    }
    store_four<kRows>(g, sums, row, col, end);
}

template <size_t kRows>
void dot_columns(const GemmArgs& g, BlockFormat format, const std::byte* b, size_t row, size_t begin,
                 size_t end) {
    const bool is_plain = with_plain_blocks(format, [&]<class Layout>() HWY_ATTR {
        for (size_t col = begin; col < end; col += 4) dot_four_plain<Layout, kRows>(g, b, row, col, end);
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
