// Matrix products with panels of packed weights. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_PACKED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_PACKED_GEMM_INL_H_
#undef HEADRACE_KERNELS_PACKED_GEMM_INL_H_
#else
#define HEADRACE_KERNELS_PACKED_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernels/gemm/gemm_share.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// The row that the sums of a panel start from: its biases, padded to whole vectors in
// `buffer` where they end early.
inline const float* first_sums(const GemmArgs& g, size_t col, size_t cols, float (&buffer)[kPanelWidth]) {
    if (!g.bias) return kZeros;
    if (cols == kPanelWidth) return g.bias + col;
    std::memset(buffer, 0, sizeof(buffer));
    std::memcpy(buffer, g.bias + col, cols * sizeof(float));
    return buffer;
}

// Rows of a panel from the k-th on, and how far one is from the next.
template <class Element>
std::pair<const Element*, ptrdiff_t> packed_rows(const GemmArgs& g, const Element* packed, size_t panel,
                                                 size_t k) {
    const size_t col = panel * kPanelWidth, width = packed_width(std::min(kPanelWidth, g.n - col));
    return {packed + col * g.k + k * width, static_cast<ptrdiff_t>(width)};
}

// Rows of A as they lie.
inline auto plain_rows(const GemmArgs& g) {
    return [&g](size_t row, size_t, size_t k0, size_t) {
        return std::pair(g.a + static_cast<ptrdiff_t>(row) * g.lda + k0, g.lda);
    };
}

// What args.packed_b says is not read but `packed` is; rows(row, row_end, k0, k1) gives where a part of A
// lies and how far a row is from the next. Blocks of A stay in the L2 cache while every panel passes by; a
// panel's slice serves all rows of the block. Where those are a single tile, each panel is read once, from
// one end to the other. `finish` is for all of C.
template <class B, class Rows>
void run_packed(const GemmArgs& g, const typename B::Element* packed, const Rect& rect, Rows rows_of_a,
                const Finish& finish) {
    const size_t rows = rect.row_end - rect.row, blocks = divide_up(rows, kBlockRows);
    const size_t slices = rows <= tile_rows(kTileVecs) ? 1 : std::max<size_t>(1, divide_up(g.k, kBlockDepth));
    for (size_t block = 0; block < blocks; ++block) {
        const size_t row = rect.row + block * rows / blocks, row_end = rect.row + (block + 1) * rows / blocks;
        for (size_t s = 0; s < slices; ++s) {
            const size_t k0 = s * g.k / slices, k1 = (s + 1) * g.k / slices;
            const auto [a, lda] = rows_of_a(row, row_end, k0, k1);
            for (size_t p = rect.panel; p < rect.panel_end; ++p) {
                const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, g.n - col);
                alignas(64) float buffer[kPanelWidth];
                BasicPanelJob<B> job{};
                job.rows = row_end - row, job.cols = cols, job.depth = k1 - k0;
                job.a = a, job.lda = lda;
                std::tie(job.b, job.ldb) = packed_rows(g, packed, p, k0);
                if (p + 1 < rect.panel_end)
                    std::tie(job.next_b, job.next_ldb) = packed_rows(g, packed, p + 1, k0);
                else if (s + 1 < slices)
                    std::tie(job.next_b, job.next_ldb) = packed_rows(g, packed, rect.panel, k1);
                job.c = g.c + row * g.ldc + col, job.ldc = g.ldc;
                job.init = s == 0 ? first_sums(g, col, cols, buffer) : nullptr;
                job.finish = finish.at(row, col), job.last = s + 1 == slices;
                run_panel(job);
            }
        }
    }
}
template <class B, class Rows>
void run_packed(const GemmArgs& g, const typename B::Element* packed, const Rect& rect, Rows rows_of_a) {
    run_packed<B>(g, packed, rect, rows_of_a, finish_of(g));
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_PACKED_GEMM_INL_H_
