#include "kernels/gemm_f32.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernels/gemm_share.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm_tile-inl.h"
#include "kernels/simd_transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// The row that the sums of a panel start from: its biases, padded to whole vectors in
// `buffer` where they end early.
const float* first_sums(const GemmArgs& g, size_t col, size_t cols, float (&buffer)[kPanelWidth]) {
    if (!g.bias) return kZeros;
    if (cols == kPanelWidth) return g.bias + col;
    std::memset(buffer, 0, sizeof(buffer));
    std::memcpy(buffer, g.bias + col, cols * sizeof(float));
    return buffer;
}

// Rows of a panel from the k-th on, and how far one is from the next.
std::pair<const float*, ptrdiff_t> packed_rows(const GemmArgs& g, size_t panel, size_t k) {
    const size_t col = panel * kPanelWidth, width = packed_width(std::min(kPanelWidth, g.n - col));
    return {g.packed_b + col * g.k + k * width, static_cast<ptrdiff_t>(width)};
}

// Blocks of A stay in the L2 cache while every panel passes by; a panel's slice serves all rows of the block.
// Where those are a single tile, each panel is read once, from one end to the other.
void run_rect(const GemmArgs& g, const Rect& rect) {
    const Finish finish = finish_of(g);
    const size_t rows = rect.row_end - rect.row, blocks = divide_up(rows, kBlockRows);
    const size_t slices = rows <= tile_rows(kTileVecs) ? 1 : std::max<size_t>(1, divide_up(g.k, kBlockDepth));
    for (size_t block = 0; block < blocks; ++block) {
        const size_t row = rect.row + block * rows / blocks, row_end = rect.row + (block + 1) * rows / blocks;
        for (size_t s = 0; s < slices; ++s) {
            const size_t k0 = s * g.k / slices, k1 = (s + 1) * g.k / slices;
            for (size_t p = rect.panel; p < rect.panel_end; ++p) {
                const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, g.n - col);
                alignas(64) float buffer[kPanelWidth];
                PanelJob job{};
                job.rows = row_end - row, job.cols = cols, job.depth = k1 - k0;
                job.a = g.a + row * g.lda + k0, job.lda = g.lda;
                std::tie(job.b, job.ldb) = packed_rows(g, p, k0);
                if (p + 1 < rect.panel_end)
                    std::tie(job.next_b, job.next_ldb) = packed_rows(g, p + 1, k0);
                else if (s + 1 < slices)
                    std::tie(job.next_b, job.next_ldb) = packed_rows(g, rect.panel, k1);
                job.c = g.c + row * g.ldc + col, job.ldc = g.ldc;
                job.init = s == 0 ? first_sums(g, col, cols, buffer) : nullptr;
                job.finish = finish.at(row, col), job.last = s + 1 == slices;
                run_panel(job);
            }
        }
    }
}

}  // namespace

void gemm(const GemmArgs& g, int ith, int nth) {
    for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth, [&](const Rect& rect) { run_rect(g, rect); });
}

void pack_panels(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n, float* packed) {
    for (size_t col = 0; col < n; col += kPanelWidth) {
        const size_t cols = std::min(kPanelWidth, n - col), width = packed_width(cols);
        float* panel = packed + col * k;
        const float* source = b + static_cast<ptrdiff_t>(col) * stride_n;
        if (stride_k == 1) {
            transpose_block(source, stride_n, cols, k, panel, static_cast<ptrdiff_t>(width));
        } else {
            for (size_t i = 0; i < k; ++i)
                for (size_t j = 0; j < cols; ++j) panel[i * width + j] = source[i * stride_k + j * stride_n];
        }
        if (cols == width) continue;
        for (size_t i = 0; i < k; ++i)
            std::memset(panel + i * width + cols, 0, (width - cols) * sizeof(float));
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(gemm);
HWY_EXPORT(pack_panels);

size_t packed_bytes(size_t k, size_t n) { return k * packed_width(n) * sizeof(float); }

void pack(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n, float* packed) {
    HWY_DYNAMIC_DISPATCH(pack_panels)(b, stride_k, stride_n, k, n, packed);
}

void gemm_f32(const GemmArgs& args, int ith, int nth) { HWY_DYNAMIC_DISPATCH(gemm)(args, ith, nth); }

}  // namespace headrace::kernels
#endif
