#include "kernels/gemm/block_gemm_int8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/cpu_features.h"
#include "ir/block_group.h"
#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

// How the packed panels look, for packing and computing.
#ifndef HEADRACE_KERNELS_BLOCK_GEMM_INT8_LAYOUT
#define HEADRACE_KERNELS_BLOCK_GEMM_INT8_LAYOUT
namespace headrace::kernels {

struct Int8Layout {
    bool nibbles, minima, wide_scales;
    int zero;  // what codes are shifted by to have no sign
    size_t groups;

    size_t code_bytes(size_t width) const { return width * (nibbles ? 16 : 32); }
    size_t scale_bytes(size_t width) const { return width * (wide_scales ? 4 : 2); }
    size_t group_bytes(size_t width) const {
        return code_bytes(width) + scale_bytes(width) * (minima ? 2 : 1);
    }
    size_t panel_bytes(size_t width) const { return groups * group_bytes(width); }
};

}  // namespace headrace::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/block_gemm_int8.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/dynamic_quantization-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/int8_dot-inl.h"
#include "kernels/gemm/int8_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

#if HEADRACE_HAS_INT8_DOT

// A panel of B.
struct Int8Panel {
    const std::byte* packed;
    size_t width;
    const float* init;  // of `width` floats
    bool is_last;       // of those of the thread
};

// What comes next is fetched in all passes over a slice, evenly, or memory would be idle in some of them. A
// single pass leaves that to the processor.
void fetch_share(const Int8Panel& panel, const std::byte* next, size_t pass, size_t passes,
                 bool is_last_slice, Int8Job& job) {
    job.ahead_lines =
        passes == 1 || (panel.is_last && is_last_slice) ? 0 : divide_up(job.group_bytes, passes * kLineBytes);
    job.ahead = next + pass * job.group_bytes / passes;
}

// c = init + the panel times `rows` rounded rows of A.
template <class S, class L>
void run_panel(const Int8Layout& layout, const RoundedRows& a, size_t k, size_t rows, const Int8Panel& panel,
               float* c, ptrdiff_t ldc) {
    const size_t width = panel.width, tiles = divide_up(rows, S::kRows);
    const size_t step = rows <= S::kGemvRows && width == kPanelWidth ? S::kGemvVecs : S::kVecs;
    for (size_t g = 0; g < layout.groups; g += kSliceGroups) {
        Int8Job job{};
        job.groups = std::min(kSliceGroups, layout.groups - g);
        job.lda = k, job.a_group_stride = layout.groups;
        job.quad_bytes = width * 4, job.group_bytes = layout.group_bytes(width);
        job.scale_bytes = layout.scale_bytes(width);
        job.ldc = ldc;
        const std::byte* slice = panel.packed + g * job.group_bytes;
        const std::byte* next = slice + job.groups * job.group_bytes;
        const size_t passes = divide_up(width, step * kLanes) * tiles;
        for (size_t col = 0; col < width; col += step * kLanes) {
            const size_t vecs = std::min(step, (width - col) / kLanes);
            job.b = slice + col * 4;
            job.scales = slice + layout.code_bytes(width) + col * (layout.wide_scales ? 4 : 2);
            job.init = g == 0 ? panel.init + col : nullptr;
            for (size_t i = 0; i < tiles; ++i) {
                const size_t row = i * rows / tiles, end = (i + 1) * rows / tiles;
                job.a = a.codes(row) + g * kBlockElements;
                job.a_groups = a.groups(row) + g;
                job.c = c + static_cast<ptrdiff_t>(row) * ldc + col;
                const size_t pass = col / (step * kLanes) * tiles + i;
                fetch_share(panel, next, pass, passes, g + job.groups == layout.groups, job);
                run_tile<S, L>(end - row, vecs, job, std::make_index_sequence<S::kRows>());
            }
        }
    }
}

// Rows that are rounded at a time.
inline constexpr size_t kInt8BlockRows = 192;

// A panel that is wider than C is computed beside it and copied.
template <class S, class L>
void run_rows(const GemmArgs& g, const Int8Layout& layout, const std::byte* packed, size_t panel, size_t row,
              size_t rows, const RoundedRows& rounded, bool is_last) {
    const size_t col = panel * kPanelWidth, cols = std::min(kPanelWidth, g.n - col),
                 width = packed_width(cols);
    alignas(64) float init[kPanelWidth] = {};
    if (g.bias) std::memcpy(init, g.bias + col, cols * sizeof(float));
    const Int8Panel of_b{packed + panel * layout.panel_bytes(kPanelWidth), width, init, is_last};
    float* c = g.c + static_cast<ptrdiff_t>(row) * g.ldc + col;
    if (cols == width) {
        run_panel<S, L>(layout, rounded, g.k, rows, of_b, c, g.ldc);
    } else {
        alignas(64) float sums[kInt8BlockRows * kPanelWidth];
        run_panel<S, L>(layout, rounded, g.k, rows, of_b, sums, kPanelWidth);
        for (size_t r = 0; r < rows; ++r)
            std::memcpy(c + static_cast<ptrdiff_t>(r) * g.ldc, sums + r * kPanelWidth, cols * sizeof(float));
    }
    const Finish finish = finish_of(g);
    if (finish.needed()) HWY_NAMESPACE::finish(finish.at(row, col), rows, cols, c, g.ldc);
}

template <class S, class L>
void run_rect(const GemmArgs& g, const Int8Layout& layout, const std::byte* packed, const Rect& rect,
              RoundedRows& rounded) {
    const size_t most =
        std::clamp<size_t>(S::kBlockBytes / g.k / S::kRows * S::kRows, S::kRows, kInt8BlockRows);
    // The tiles take the zero of such codes away themselves.
    const int zero = S::kTakesSigned && !layout.nibbles ? 0 : layout.zero;
    for (size_t row = rect.row; row < rect.row_end; row += most) {
        const size_t rows = std::min(most, rect.row_end - row);
        rounded.fill(g.a + static_cast<ptrdiff_t>(row) * g.lda, g.lda, rows, g.k, zero);
        for (size_t p = rect.panel; p < rect.panel_end; ++p)
            run_rows<S, L>(g, layout, packed, p, row, rows, rounded, p + 1 == rect.panel_end);
    }
}

// Each thread rounds the rows of its share. Where these are many it gets rows, so that none is rounded twice;
// else panels, so that each panel is read once.
template <class S, class Fn>
void for_each_int8_rect(const GemmArgs& g, int ith, int nth, Fn fn) {
    const size_t tiles = divide_up(g.m, S::kRows), threads = static_cast<size_t>(nth);
    if (g.m < kInt8BlockRows / 2 * threads) return for_each_rect(1, g.m, g.n, S::kRows, ith, nth, fn);
    const size_t row = tiles * static_cast<size_t>(ith) / threads * S::kRows,
                 end = std::min(g.m, tiles * static_cast<size_t>(ith + 1) / threads * S::kRows);
    if (row < end && g.n > 0) fn(Rect{0, row, end, 0, divide_up(g.n, kPanelWidth)});
}

void run_int8(const GemmArgs& g, const Int8Layout& layout, const std::byte* packed, int ith, int nth,
              int variant) {
    static thread_local RoundedRows rounded;
    with_int8_dot(variant, [&]<class S>() {
        for_each_int8_rect<S>(g, ith, nth, [&](const Rect& rect) {
            const auto run = [&]<class L>() { run_rect<S, L>(g, layout, packed, rect, rounded); };
            const bool wide = layout.wide_scales;
            if (!layout.nibbles)
                wide ? run.template operator()<WideByteCodes>() : run.template operator()<ByteCodes>();
            else if (!layout.minima)
                wide ? run.template operator()<WideNibbleCodes>() : run.template operator()<NibbleCodes>();
            else
                wide ? run.template operator()<WideNibblesAndMinima>()
                     : run.template operator()<NibblesAndMinima>();
        });
    });
}

int variants() { return int8_dot_variants(); }

#else

void run_int8(const GemmArgs&, const Int8Layout&, const std::byte*, int, int, int) {
    HWY_ABORT("block_gemm_int8 needs AVX2, AVX-512 VNNI or 64-bit NEON");
}
int variants() { return 0; }

#endif

}  // namespace

int count_int8_variants() { return variants(); }

void gemm_int8(const GemmArgs& g, const Int8Layout& layout, const std::byte* packed, int ith, int nth,
               int variant) {
    run_int8(g, layout, packed, ith, nth, variant);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(count_int8_variants);
HWY_EXPORT(gemm_int8);

namespace {

using GemmInt8 = decltype(&HWY_NAMESPACE::gemm_int8);

struct ChosenGemm {
    GemmInt8 gemm;
    int variants;  // 0 where no instruction set of this CPU has a tile
};

ChosenGemm chosen_gemm() {
    const int variants = HWY_DYNAMIC_DISPATCH(count_int8_variants)();
    if (variants > 0) return {&HWY_DYNAMIC_DISPATCH(gemm_int8), variants};
#if HWY_TARGETS & HWY_AVX2
    // AVX-512 without VNNI leaves products of bytes to AVX2.
    if (cpu_features().avx512f) return {&N_AVX2::gemm_int8, N_AVX2::count_int8_variants()};
#endif
    return {nullptr, 0};
}

Int8Layout layout_of(BlockFormat format, size_t k) {
    const bool minima = format == BlockFormat::q4_1 || format == BlockFormat::q4_k ||
                        format == BlockFormat::q4_1_f32,
               bytes = format == BlockFormat::q8_0 || format == BlockFormat::q8_0_f32;
    return {.nibbles = !bytes,
            .minima = minima,
            .wide_scales = format == BlockFormat::q4_k || !is_of_ggml(format),
            .zero = bytes    ? 128
                    : minima ? 0
                             : 8,
            .groups = k / static_cast<size_t>(kBlockElements)};
}

void store_scale(const Int8Layout& layout, float value, size_t column, std::byte* to) {
    if (layout.wide_scales)
        std::memcpy(to + column * sizeof(float), &value, sizeof(value));
    else
        store_half(value, to + column * 2);
}

// The sums of four bytes each, without carries between them.
uint32_t add_bytes(uint32_t a, uint32_t b) {
    return ((a & 0x7f7f7f7f) + (b & 0x7f7f7f7f)) ^ ((a ^ b) & 0x80808080);
}

// Column `column` of a group of a panel that is `width` wide.
void pack_group(const Int8Layout& layout, const BlockGroup& group, size_t column, size_t width,
                std::byte* to) {
    std::array<uint32_t, kBlockElements / 4> quads;
    std::memcpy(quads.data(), group.codes, sizeof(quads));
    for (uint32_t& quad : quads) quad = add_bytes(quad, layout.zero * 0x01010101u);
    const size_t stored = layout.nibbles ? 4 : 8;
    for (size_t i = 0; i < stored; ++i) {
        const uint32_t quad = layout.nibbles ? quads[i] | quads[i + 4] << 4 : quads[i];
        std::memcpy(to + i * width * 4 + column * 4, &quad, sizeof(quad));
    }
    std::byte* scales = to + layout.code_bytes(width);
    store_scale(layout, group.scale[0], column, scales);
    if (layout.minima) store_scale(layout, group.low, column, scales + layout.scale_bytes(width));
}

}  // namespace

bool has_block_gemm_int8(BlockFormat format) {
    return (format == BlockFormat::q8_0 || format == BlockFormat::q4_0 || format == BlockFormat::q4_1 ||
            format == BlockFormat::q4_k || (!is_of_ggml(format) && !has_blocks_of_16(format))) &&
           int8_variants() > 0;
}

int int8_variants() { return chosen_gemm().variants; }

size_t packed_blocks_bytes(BlockFormat format, size_t k, size_t n) {
    return layout_of(format, k).panel_bytes(packed_width(n));
}

void pack_blocks(BlockFormat format, const std::byte* b, size_t k, size_t n, std::byte* packed) {
    const Int8Layout layout = layout_of(format, k);
    const size_t row_bytes = blocks_bytes(format, static_cast<int64_t>(k));
    for (size_t first = 0; first < n; first += kPanelWidth) {
        const size_t width = std::min(kPanelWidth, packed_width(n - first));
        std::byte* panel = packed + first / kPanelWidth * layout.panel_bytes(kPanelWidth);
        if (first + width > n) std::memset(panel, 0, layout.panel_bytes(width));
        for (size_t column = 0; column < std::min(width, n - first); ++column)
            for (size_t g = 0; g < layout.groups; ++g) {
                BlockGroup group;
                unpack_group(format, b + (first + column) * row_bytes, static_cast<int64_t>(g), group);
                pack_group(layout, group, column, width, panel + g * layout.group_bytes(width));
            }
    }
}

void block_gemm_int8(const GemmArgs& args, BlockFormat format, const std::byte* packed, int ith, int nth) {
    block_gemm_int8_in(0, args, format, packed, ith, nth);
}

void block_gemm_int8_in(int variant, const GemmArgs& args, BlockFormat format, const std::byte* packed,
                        int ith, int nth) {
    chosen_gemm().gemm(args, layout_of(format, args.k), packed, ith, nth, variant);
}

}  // namespace headrace::kernels
#endif
