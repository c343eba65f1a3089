#include "kernels/tensor/permute.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/permute.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

void transpose_tile(const float* src, ptrdiff_t src_stride, size_t rows, size_t cols, float* dst,
                    ptrdiff_t dst_stride) {
    transpose_block(src, src_stride, rows, cols, dst, dst_stride);
}

// dst[i * planes + p] = src[p * stride + i] for i < n and 2 to 4 planes.
void interleave_bytes(const uint8_t* src, ptrdiff_t stride, size_t planes, size_t n, uint8_t* dst) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<uint8_t> d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto plane = [&](ptrdiff_t p) HWY_ATTR { return hn::LoadU(d, src + p * stride + i); };
        if (planes == 2)
            hn::StoreInterleaved2(plane(0), plane(1), d, dst + i * planes);
        else if (planes == 3)
            hn::StoreInterleaved3(plane(0), plane(1), plane(2), d, dst + i * planes);
        else
            hn::StoreInterleaved4(plane(0), plane(1), plane(2), plane(3), d, dst + i * planes);
    }
    for (; i < n; ++i)
        for (size_t p = 0; p < planes; ++p) dst[i * planes + p] = src[static_cast<ptrdiff_t>(p) * stride + i];
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {
namespace {

HWY_EXPORT(transpose_tile);
HWY_EXPORT(interleave_bytes);

struct Axis {
    size_t extent = 1;
    ptrdiff_t src = 0, dst = 0;
};

enum class Inner { run, transpose, strided };

// The walk: two outer axes, then tiles of rows × cols. Along cols dst is as contiguous as it gets.
struct Walk {
    Axis outer[2], rows, cols;
    size_t tile_rows, tile_cols;
    Inner inner;
};

// The axes with more than one index, by falling stride in dst, neighbours merged where both
// sides step evenly over them.
int simplify(const PermuteArgs& args, Axis (&axes)[PermuteArgs::kRank]) {
    Axis sorted[PermuteArgs::kRank];
    int count = 0;
    for (int i = 0; i < PermuteArgs::kRank; ++i) {
        if (args.extent[i] != 1) sorted[count++] = {args.extent[i], args.src_stride[i], args.dst_stride[i]};
    }
    std::stable_sort(sorted, sorted + count,
                     [](const Axis& a, const Axis& b) { return std::abs(a.dst) > std::abs(b.dst); });
    int rank = 0;
    for (int i = 0; i < count; ++i) {
        const Axis& next = sorted[i];
        const auto extent = static_cast<ptrdiff_t>(next.extent);
        if (rank > 0 && axes[rank - 1].src == next.src * extent && axes[rank - 1].dst == next.dst * extent) {
            axes[rank - 1] = {axes[rank - 1].extent * next.extent, next.src, next.dst};
        } else {
            axes[rank++] = next;
        }
    }
    return rank;
}

Walk plan(const PermuteArgs& args) {
    Axis axes[PermuteArgs::kRank];
    int rank = simplify(args, axes);
    Walk walk;
    walk.cols = rank > 0 ? axes[--rank] : Axis{1, 1, 1};
    walk.inner = walk.cols.src == 1 && walk.cols.dst == 1 ? Inner::run : Inner::strided;
    if (walk.inner == Inner::strided && walk.cols.dst == 1) {
        // Move the axis along which src is contiguous next to the one along which dst is:
        // together they are a transpose.
        const auto contiguous =
            std::find_if(axes, axes + rank, [](const Axis& axis) { return axis.src == 1; });
        if (contiguous != axes + rank) {
            std::rotate(contiguous, contiguous + 1, axes + rank);
            walk.inner = Inner::transpose;
        }
    }
    walk.rows = rank > 0 ? axes[--rank] : Axis{};
    for (int i = 1; i >= 0; --i) walk.outer[i] = rank > 0 ? axes[--rank] : Axis{};
    // Tiles of a transpose stay in the L1 cache on both sides and write whole lines; other tiles only bound
    // the cost of finding the next one.
    constexpr size_t kTileElements = 4096;
    walk.tile_cols = std::min<size_t>(walk.cols.extent, walk.inner == Inner::transpose ? 64 : kTileElements);
    walk.tile_rows =
        walk.inner == Inner::transpose ? 64 : kTileElements / std::max<size_t>(walk.tile_cols, 1);
    return walk;
}

template <class T>
void copy_tile(const Walk& walk, const T* src, T* dst, size_t rows, size_t cols) {
    if (walk.inner == Inner::transpose && sizeof(T) == sizeof(float)) {
        HWY_DYNAMIC_DISPATCH(transpose_tile)
        (reinterpret_cast<const float*>(src), walk.cols.src, cols, rows, reinterpret_cast<float*>(dst),
         walk.rows.dst);
        return;
    }
    if (walk.inner == Inner::transpose && sizeof(T) == 1 && cols >= 2 && cols <= 4 &&
        walk.rows.dst == static_cast<ptrdiff_t>(cols)) {
        HWY_DYNAMIC_DISPATCH(interleave_bytes)
        (reinterpret_cast<const uint8_t*>(src), walk.cols.src, cols, rows, reinterpret_cast<uint8_t*>(dst));
        return;
    }
    for (size_t r = 0; r < rows; ++r) {
        const T* from = src + static_cast<ptrdiff_t>(r) * walk.rows.src;
        T* to = dst + static_cast<ptrdiff_t>(r) * walk.rows.dst;
        if (walk.inner == Inner::run && cols * sizeof(T) >= 32) {
            std::memcpy(to, from, cols * sizeof(T));
        } else {
            for (size_t c = 0; c < cols; ++c)
                to[static_cast<ptrdiff_t>(c) * walk.cols.dst] =
                    from[static_cast<ptrdiff_t>(c) * walk.cols.src];
        }
    }
}

template <class T>
void copy_share(const PermuteArgs& args, int ith, int nth) {
    for (size_t extent : args.extent) {
        if (extent == 0) return;
    }
    const Walk walk = plan(args);
    const size_t row_tiles = (walk.rows.extent + walk.tile_rows - 1) / walk.tile_rows;
    const size_t col_tiles = (walk.cols.extent + walk.tile_cols - 1) / walk.tile_cols;
    const size_t tiles = walk.outer[0].extent * walk.outer[1].extent * row_tiles * col_tiles;
    for (size_t tile = tiles * ith / nth; tile < tiles * (ith + 1) / nth; ++tile) {
        const size_t col = tile % col_tiles * walk.tile_cols,
                     row = tile / col_tiles % row_tiles * walk.tile_rows;
        const size_t outer = tile / (col_tiles * row_tiles);
        const size_t index[4] = {outer / walk.outer[1].extent, outer % walk.outer[1].extent, row, col};
        const Axis* axes[4] = {&walk.outer[0], &walk.outer[1], &walk.rows, &walk.cols};
        ptrdiff_t from = 0, to = 0;
        for (int i = 0; i < 4; ++i) {
            from += static_cast<ptrdiff_t>(index[i]) * axes[i]->src;
            to += static_cast<ptrdiff_t>(index[i]) * axes[i]->dst;
        }
        copy_tile(walk, static_cast<const T*>(args.src) + from, static_cast<T*>(args.dst) + to,
                  std::min(walk.tile_rows, walk.rows.extent - row),
                  std::min(walk.tile_cols, walk.cols.extent - col));
    }
}

}  // namespace

void permute(const PermuteArgs& args, int ith, int nth) {
    switch (args.element_size) {
        case 1: return copy_share<uint8_t>(args, ith, nth);
        case 2: return copy_share<uint16_t>(args, ith, nth);
        case 4: return copy_share<uint32_t>(args, ith, nth);
        case 8: return copy_share<uint64_t>(args, ith, nth);
    }
}

}  // namespace headrace::kernels
#endif
