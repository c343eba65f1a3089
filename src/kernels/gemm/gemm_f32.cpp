#include "kernels/gemm/gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/packed_gemm-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

void gemm(const GemmArgs& g, int ith, int nth) {
    for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth,
                  [&](const Rect& rect) { run_packed<PlainColumns>(g, g.packed_b, rect, plain_rows(g)); });
}

void pack_panels(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n, float* packed) {
    for (size_t col = 0; col < n; col += kPanelWidth) {
        const size_t cols = std::min(kPanelWidth, n - col), width = packed_width(cols);
        float* panel = packed + col * k;
        const float* source = b + static_cast<ptrdiff_t>(col) * stride_n;
        if (stride_k == 1) {
            transpose_block(source, stride_n, cols, k, panel, static_cast<ptrdiff_t>(width));
        } else if (stride_n == 1) {
            for (size_t i = 0; i < k; ++i)
                std::memcpy(panel + i * width, source + static_cast<ptrdiff_t>(i) * stride_k,
                            cols * sizeof(float));
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
