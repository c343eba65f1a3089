// Matrix products whose B is expanded to f32, a slice of a panel at a time. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_DEQUANTIZED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_DEQUANTIZED_GEMM_INL_H_
#undef HEADRACE_KERNELS_DEQUANTIZED_GEMM_INL_H_
#else
#define HEADRACE_KERNELS_DEQUANTIZED_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/gemm/gemm_share.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Depth of a slice that a thread expands at a time.
inline constexpr size_t kExpandedDepth = 256;

HWY_INLINE void run_panel_slice(const GemmArgs& g, const Rect& rect, const PanelJob& slice, size_t col) {
    const size_t rows = rect.row_end - rect.row, blocks = divide_up(rows, kBlockRows);
    for (size_t block = 0; block < blocks; ++block) {
        const size_t first = block * rows / blocks, end = (block + 1) * rows / blocks;
        PanelJob job = slice;
        job.rows = end - first;
        job.a = slice.a + static_cast<ptrdiff_t>(rect.row + first) * g.lda;
        job.c = g.c + static_cast<ptrdiff_t>(rect.row + first) * g.ldc + col;
        job.finish = slice.finish.at(rect.row + first, col);
        run_panel(job);
    }
}

// `panel.fill(col, cols, width, k0, k1)` expands rows [k0, k1) of columns [col, col + cols) of B to
// panel.values()[k1 - k0][width], with zeros from `cols` on. Slices begin at multiples of Panel::kUnit.
template <class Panel>
void run_expanded(const GemmArgs& g, Panel& panel, const Rect& rect) {
    const Finish finish = finish_of(g);
    const size_t slices = std::max<size_t>(1, divide_up(g.k, kExpandedDepth)),
                 units = divide_up(g.k, Panel::kUnit);
    for (size_t p = rect.panel; p < rect.panel_end; ++p) {
        const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, g.n - col);
        const size_t width = packed_width(cols);
        alignas(64) float first_sums[kPanelWidth] = {};
        if (g.bias) std::memcpy(first_sums, g.bias + col, cols * sizeof(float));
        for (size_t s = 0; s < slices; ++s) {
            const size_t k0 = s * units / slices * Panel::kUnit,
                         k1 = std::min(g.k, (s + 1) * units / slices * Panel::kUnit);
            panel.fill(col, cols, width, k0, k1);
            PanelJob job{};
            job.cols = cols, job.depth = k1 - k0;
            job.a = g.a + k0, job.lda = g.lda;
            job.b = panel.values(), job.ldb = static_cast<ptrdiff_t>(width);
            job.ldc = g.ldc;
            job.init = s == 0 ? first_sums : nullptr;
            job.finish = finish, job.last = s + 1 == slices;
            run_panel_slice(g, rect, job, col);
        }
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_DEQUANTIZED_GEMM_INL_H_
