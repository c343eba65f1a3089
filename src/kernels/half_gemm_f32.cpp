#include "kernels/half_gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/half_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/expanded_gemm-inl.h"
#include "kernels/simd_halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// At most this many rows of A are multiplied without a panel in f32: filling it would cost more.
constexpr size_t kFewRows = 2;

// A slice of depth of one panel of B as f32.
template <class Half>
class HalfPanel {
public:
    static constexpr size_t kUnit = 1;

    HalfPanel(const uint16_t* packed, size_t k) : packed_(packed), k_(k) {}

    void fill(size_t col, size_t, size_t width, size_t k0, size_t k1) {
        const TileTag d;
        const uint16_t* from = packed_ + col * k_ + k0 * width;
        for (size_t i = 0; i < (k1 - k0) * width; i += kLanes)
            hn::Store(widen<Half>(from + i), d, values_ + i);
    }
    const float* values() const { return values_; }

private:
    const uint16_t* packed_;
    size_t k_;
    alignas(64) float values_[kPanelWidth * kExpandedDepth];
};

// sums[0, kVecs vectors) = start + a[0, k) · b[k][width].
template <class Half, size_t kVecs>
HWY_INLINE void row_times_columns(const float* a, size_t k, const uint16_t* b, size_t width,
                                  const float* start, float* sums) {
    const TileTag d;
    TileVec sum[kVecs];
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVecs; ++v) sum[v] = hn::LoadU(d, start + v * kLanes);
    HWY_UNROLL(4)
    for (size_t i = 0; i < k; ++i, b += width) {
        hwy::Prefetch(b + 16 * width);
        const TileVec x = hn::Set(d, a[i]);
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) sum[v] = hn::MulAdd(x, widen<Half>(b + v * kLanes), sum[v]);
    }
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVecs; ++v) hn::StoreU(sum[v], d, sums + v * kLanes);
}

// The panels of a rectangle, each for one row of C after the other.
template <class Half>
void run_few_rows(const GemmArgs& g, const uint16_t* packed, const Rect& rect) {
    const Finish finish_rows = finish_of(g);
    for (size_t p = rect.panel; p < rect.panel_end; ++p) {
        const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, g.n - col),
                     width = packed_width(cols);
        alignas(64) float start[kPanelWidth] = {}, sums[kPanelWidth];
        if (g.bias) std::memcpy(start, g.bias + col, cols * sizeof(float));
        for (size_t row = rect.row; row < rect.row_end; ++row) {
            const float* a = g.a + static_cast<ptrdiff_t>(row) * g.lda;
            const uint16_t* b = packed + col * g.k;
            size_t j = 0;
            for (; j + kRowVecs * kLanes <= width; j += kRowVecs * kLanes)
                row_times_columns<Half, kRowVecs>(a, g.k, b + j, width, start + j, sums + j);
            for (; j < width; j += kLanes)
                row_times_columns<Half, 1>(a, g.k, b + j, width, start + j, sums + j);
            float* c = g.c + static_cast<ptrdiff_t>(row) * g.ldc + col;
            std::memcpy(c, sums, cols * sizeof(float));
            const Finish f = finish_rows.at(row, col);
            if (f.needed()) finish(f, 1, cols, c, g.ldc);
        }
    }
}

template <class Half>
void run_halves(const GemmArgs& g, const uint16_t* packed, int ith, int nth) {
    if (g.m <= kFewRows) {
        for_each_rect(1, g.m, g.n, kFewRows, ith, nth,
                      [&](const Rect& rect) { run_few_rows<Half>(g, packed, rect); });
        return;
    }
    HalfPanel<Half> panel(packed, g.k);
    for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth,
                  [&](const Rect& rect) { run_expanded(g, panel, rect); });
}

}  // namespace

void half_gemm(const GemmArgs& g, const uint16_t* packed, bool is_bf16, int ith, int nth) {
    if (is_bf16)
        run_halves<hwy::bfloat16_t>(g, packed, ith, nth);
    else
        run_halves<hwy::float16_t>(g, packed, ith, nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(half_gemm);

std::size_t packed_halves_bytes(std::size_t k, std::size_t n) { return packed_bytes(k, n) / 2; }

void pack_halves(const std::uint16_t* b, std::ptrdiff_t stride_k, std::ptrdiff_t stride_n, std::size_t k,
                 std::size_t n, std::uint16_t* packed) {
    // Some rows of a panel at a time, so that what is read and what is written stay in the cache.
    constexpr std::size_t kRows = 64;
    for (std::size_t col = 0; col < n; col += kPanelWidth) {
        const std::size_t cols = std::min(kPanelWidth, n - col), width = packed_width(cols);
        const std::uint16_t* from = b + static_cast<std::ptrdiff_t>(col) * stride_n;
        std::uint16_t* panel = packed + col * k;
        if (cols < width) std::memset(panel, 0, k * width * sizeof(*panel));
        for (std::size_t first = 0; first < k; first += kRows)
            for (std::size_t j = 0; j < cols; ++j)
                for (std::size_t i = first; i < std::min(k, first + kRows); ++i)
                    panel[i * width + j] = from[static_cast<std::ptrdiff_t>(i) * stride_k +
                                                static_cast<std::ptrdiff_t>(j) * stride_n];
    }
}

void half_gemm_f32(const GemmArgs& args, const std::uint16_t* packed, bool is_bf16, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(half_gemm)(args, packed, is_bf16, ith, nth);
}

}  // namespace headrace::kernels
#endif
