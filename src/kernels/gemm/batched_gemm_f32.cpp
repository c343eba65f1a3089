// batched_gemm_f32, declared in gemm_f32.h.
#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/batched_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/gemm_tile-inl.h"
#include "kernels/simd/memory-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Rows of B that fit the 64 KiB buffer on the stack.
constexpr size_t kScratchDepth = 256;

// At most this many rows of A are multiplied with a transposed B by dot products: packing B would cost more.
constexpr size_t kDotRows = 2;

struct Operands {
    const float* a;
    const float* b;
    float* c;
};

Operands operands(const BatchedGemmArgs& g, size_t batch) {
    Operands o{g.a, g.b, g.c};
    for (int i = BatchedGemmArgs::kBatchDims; i-- > 0; batch /= g.batch[i]) {
        const ptrdiff_t index = static_cast<ptrdiff_t>(batch % g.batch[i]);
        o.a += index * g.a_batch[i], o.b += index * g.b_batch[i], o.c += index * g.c_batch[i];
    }
    return o;
}

// Copies B[k0, k0 + depth) × [col, col + cols) to `panel`, whose rows hold whole vectors and end in zeros.
void pack_panel(const BatchedGemmArgs& g, const float* b, size_t k0, size_t depth, size_t col, size_t cols,
                size_t width, float* panel) {
    if (cols < width) {
        for (size_t i = 0; i < depth; ++i)
            std::memset(panel + i * width + cols, 0, (width - cols) * sizeof(float));
    }
    if (g.b_transposed) {
        transpose_block(b + static_cast<ptrdiff_t>(col) * g.ldb + k0, g.ldb, cols, depth, panel, width);
    } else {
        for (size_t i = 0; i < depth; ++i)
            std::memcpy(panel + i * width, b + static_cast<ptrdiff_t>(k0 + i) * g.ldb + col,
                        cols * sizeof(float));
    }
}

// C[r][j] = scale * A[r] · B[j] for the rows of a transposed B, along their depth.
void dot_rows(const BatchedGemmArgs& g, const Operands& o, const Rect& rect) {
    const TileTag d;
    const size_t end = std::min(rect.panel_end * kPanelWidth, g.n), whole = g.k / kLanes * kLanes;
    for (size_t r = rect.row; r < rect.row_end; ++r) {
        const float* a = o.a + r * g.lda;
        for (size_t j = rect.panel * kPanelWidth; j < end; j += 4) {
            // Past the last row of B the fourth, third or second dot product repeats the
            // last row and is not written.
            const float* b[4];
            for (size_t i = 0; i < 4; ++i)
                b[i] = o.b + static_cast<ptrdiff_t>(std::min(j + i, end - 1)) * g.ldb;
            TileVec s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
            const auto add = [&](auto load, size_t k) HWY_ATTR {
                const TileVec x = load(a + k);
                s0 = hn::MulAdd(x, load(b[0] + k), s0), s1 = hn::MulAdd(x, load(b[1] + k), s1);
                s2 = hn::MulAdd(x, load(b[2] + k), s2), s3 = hn::MulAdd(x, load(b[3] + k), s3);
            };
            for (size_t k = 0; k < whole; k += kLanes)
                add([&](const float* p) HWY_ATTR { return hn::LoadU(d, p); }, k);
            if (whole < g.k)
                add([&](const float* p) HWY_ATTR { return load_first(d, p, g.k - whole); }, whole);
            const TileVec sums[4] = {s0, s1, s2, s3};
            float products[4];
            store_sums_of_lanes(sums, products);
            for (size_t i = 0; i < std::min<size_t>(4, end - j); ++i)
                o.c[r * g.ldc + j + i] = g.scale * products[i];
        }
    }
}

void run_rect(const BatchedGemmArgs& g, const Rect& rect, float* scratch) {
    const Operands o = operands(g, rect.batch);
    if (g.b_transposed && g.m <= kDotRows) return dot_rows(g, o, rect);
    const size_t slices = std::max<size_t>(1, divide_up(g.k, kScratchDepth));
    for (size_t p = rect.panel; p < rect.panel_end; ++p) {
        const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, g.n - col);
        const size_t width = divide_up(cols, kLanes) * kLanes;
        for (size_t s = 0; s < slices; ++s) {
            const size_t k0 = s * g.k / slices, depth = (s + 1) * g.k / slices - k0;
            const bool in_place = !g.b_transposed && cols == width;
            if (!in_place) pack_panel(g, o.b, k0, depth, col, cols, width, scratch);
            PanelJob job{};
            job.rows = rect.row_end - rect.row, job.cols = cols, job.depth = depth;
            job.a = o.a + rect.row * g.lda + k0, job.lda = g.lda;
            job.b = in_place ? o.b + static_cast<ptrdiff_t>(k0) * g.ldb + col : scratch;
            job.ldb = in_place ? g.ldb : static_cast<ptrdiff_t>(width);
            job.c = o.c + rect.row * g.ldc + col, job.ldc = g.ldc;
            job.init = s == 0 ? kZeros : nullptr;
            job.finish.scale = g.scale, job.last = s + 1 == slices;
            run_panel(job);
        }
    }
}

}  // namespace

void batched_gemm(const BatchedGemmArgs& g, int ith, int nth) {
    alignas(64) float scratch[kScratchDepth * kPanelWidth];
    for_each_rect(g.batch[0] * g.batch[1] * g.batch[2], g.m, g.n, tile_rows(kTileVecs), ith, nth,
                  [&](const Rect& rect) { run_rect(g, rect, scratch); });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(batched_gemm);

void batched_gemm_f32(const BatchedGemmArgs& args, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(batched_gemm)(args, ith, nth);
}

}  // namespace headrace::kernels
#endif
