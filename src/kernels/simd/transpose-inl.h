// Transposition of 32-bit elements in registers. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_SIMD_TRANSPOSE_INL_H_
#undef HEADRACE_KERNELS_SIMD_TRANSPOSE_INL_H_
#else
#define HEADRACE_KERNELS_SIMD_TRANSPOSE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows that transpose_strip takes: one for each lane.
inline constexpr size_t kStripRows = HWY_LANES(float);
inline constexpr size_t kStripCols = HWY_TARGET == HWY_SCALAR ? 1 : 4;

#if HWY_TARGET != HWY_SCALAR
// Four elements each of rows 0, 4, 8, … in the vector's 128-bit blocks.
template <class D>
HWY_INLINE hn::Vec<D> load_every_fourth_row(D d, const float* src, ptrdiff_t stride) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        return hn::LoadU(d, src);
    } else {
        const hn::Half<D> half;
        constexpr ptrdiff_t kRows = hn::MaxLanes(hn::Half<D>());
        return hn::Combine(d, load_every_fourth_row(half, src + kRows * stride, stride),
                           load_every_fourth_row(half, src, stride));
    }
}
#endif

#if HWY_TARGET != HWY_SCALAR
// The vector's 128-bit blocks added up.
template <class D>
HWY_INLINE auto sum_of_blocks(D, hn::Vec<D> v) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        return v;
    } else {
        const hn::Half<D> half;
        return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
}
#endif

// to[i] is the sum of the lanes of v[i], for four vectors.
template <class V>
HWY_INLINE void store_sums_of_lanes(const V* v, float* to) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < 4; ++i) to[i] = hn::GetLane(v[i]);
#else
    const hn::DFromV<V> d;
    const hn::Repartition<double, decltype(d)> pairs;
    const auto add_halves = [&](V a, V b) HWY_ATTR {
        return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    const auto first = add_halves(v[0], v[1]), second = add_halves(v[2], v[3]);
    const V sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                           hn::BitCast(d, hn::InterleaveUpper(pairs, first, second)));
    const auto sum = sum_of_blocks(d, sums);
    hn::StoreU(sum, hn::DFromV<decltype(sum)>(), to);
#endif
}

// dst[j][i] = src[i][j] for i < kStripRows and j < kStripCols; strides of rows in elements.
HWY_INLINE void transpose_strip(const float* src, ptrdiff_t src_stride, float* dst, ptrdiff_t dst_stride) {
#if HWY_TARGET == HWY_SCALAR
    (void)src_stride, (void)dst_stride;
    dst[0] = src[0];
#else
    const hn::CappedTag<float, kStripRows> d;
    const hn::Repartition<double, decltype(d)> pairs;
    const auto row0 = load_every_fourth_row(d, src, src_stride);
    const auto row1 = load_every_fourth_row(d, src + src_stride, src_stride);
    const auto row2 = load_every_fourth_row(d, src + 2 * src_stride, src_stride);
    const auto row3 = load_every_fourth_row(d, src + 3 * src_stride, src_stride);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, dst);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, dst + dst_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, dst + 2 * dst_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, dst + 3 * dst_stride);
#endif
}

// dst[j][i] = src[i][j] for any rows × cols. The elements are only moved, so they may be any 32-bit type.
HWY_INLINE void transpose_block(const float* src, ptrdiff_t src_stride, size_t rows, size_t cols, float* dst,
                                ptrdiff_t dst_stride) {
    size_t i = 0;
    for (; i + kStripRows <= rows; i += kStripRows) {
        size_t j = 0;
        for (; j + kStripCols <= cols; j += kStripCols)
            transpose_strip(src + i * src_stride + j, src_stride, dst + j * dst_stride + i, dst_stride);
        for (; j < cols; ++j)
            for (size_t r = i; r < i + kStripRows; ++r) dst[j * dst_stride + r] = src[r * src_stride + j];
    }
    for (; i < rows; ++i)
        for (size_t j = 0; j < cols; ++j) dst[j * dst_stride + i] = src[i * src_stride + j];
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_TRANSPOSE_INL_H_
