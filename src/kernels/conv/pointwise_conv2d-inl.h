// Convolution with 1x1 windows of images that have their channels first, before and after: pixels are
// neighbours in vectors, and what some vectors read of all channels is copied together, since channels lie
// pages apart. Included once per SIMD target, by packed_conv2d_f32.cpp.
#if defined(HEADRACE_KERNELS_POINTWISE_CONV2D_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_POINTWISE_CONV2D_INL_H_
#undef HEADRACE_KERNELS_POINTWISE_CONV2D_INL_H_
#else
#define HEADRACE_KERNELS_POINTWISE_CONV2D_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hwy/highway.h"
#include "kernels/conv/nchw_stem_conv2d-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// One image's group; the image is one row.
class PointsConvolution {
public:
    static bool applies(const Conv2dArgs& g) {
        const size_t pixels = g.out_h * g.out_w, lanes = divide_up(pixels, kLanes) * kLanes;
        return !g.channels_last_y && is_pointwise(g) && lanes - pixels <= lanes / 8 &&
               g.in_channels / g.groups * kRow * sizeof(float) <= kMostPlanesBytes;
    }
    // Pieces that an image is computed in.
    static size_t pieces(const Conv2dArgs& flat) {
        return divide_up(divide_up(flat.out_w, kLanes), kPlaneVecs);
    }

    PointsConvolution(const Conv2dArgs& flat, const float* packed, size_t batch,
                      PlanesConvolution::Scratch& scratch)
        : g_(flat),
          limits_(flat),
          depth_(flat.in_channels / flat.groups),
          image_(batch / flat.groups),
          group_(batch % flat.groups),
          x_(flat.x + (image_ * flat.in_channels + group_ * depth_) * flat.in_w),
          filters_(packed + group_ * packed_filters_size(flat.out_channels / flat.groups, 1, depth_)),
          scratch_(scratch) {
        scratch.rows.resize(std::max(scratch.rows.size(), depth_ * kRow));
        scratch.offsets.resize(depth_);
        for (size_t k = 0; k < depth_; ++k) scratch.offsets[k] = static_cast<int32_t>(k * kRow);
    }

    // The group's output channels [first, last), which begin a panel, of one piece; `next` is computed after
    // it.
    void run(size_t piece, size_t next, size_t first, size_t last) {
        const size_t begin = begin_of(piece), cols = std::min(begin_of(piece + 1), g_.out_w) - begin;
        gather(begin, cols);
        const size_t tiles = divide_up(last - first, kPlaneChannels);
        for (size_t panel = first, tile = 0; panel < last; panel += kFilterPanel) {
            const size_t end = std::min(last, panel + kFilterPanel);
            for (size_t out = panel; out < end; out += kPlaneChannels, ++tile) {
                const size_t vec = tile * kPlaneVecs / tiles, vec_end = (tile + 1) * kPlaneVecs / tiles;
                run_tile(begin, cols, out, std::min(kPlaneChannels, end - out),
                         next == piece ? nullptr : x_ + begin_of(next) + vec * kLanes, vec_end - vec);
            }
        }
    }

private:
    static constexpr size_t kRow = kPlaneVecs * kLanes;  // of a channel's pixels that lie together

    size_t begin_of(size_t piece) const { return piece * divide_up(g_.out_w, kLanes) / pieces(g_) * kLanes; }

    void gather(size_t begin, size_t cols) {
        const TileTag d;
        float* to = scratch_.rows.data();
        const float* from = x_ + begin;
        for (size_t k = 0; k < depth_; ++k, from += g_.in_w, to += kRow) {
            size_t i = 0;
            for (; i + kLanes <= cols; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
            if (i < cols) hn::StoreU(load_first(d, from + i, cols - i), d, to + i);
        }
    }

    void run_tile(size_t begin, size_t cols, size_t out, size_t channels, const float* ahead,
                  size_t vecs) const {
        const size_t first = group_ * (g_.out_channels / g_.groups) + out;
        const size_t at = (image_ * g_.out_channels + first) * g_.out_w + begin;
        PlanesTile tile{};
        tile.x = scratch_.rows.data(), tile.offsets = scratch_.offsets.data(), tile.depth = depth_;
        tile.filters = filters_ + out / kFilterPanel * depth_ * kFilterPanel + out % kFilterPanel;
        tile.bias = g_.bias ? g_.bias + first : kZeros;
        tile.y = g_.y + at, tile.plane = g_.out_w, tile.cols = cols, tile.limits = &limits_;
        tile.ahead = ahead, tile.ahead_vecs = vecs, tile.ahead_stride = g_.in_w;
        planes_tile_fn(channels, divide_up(cols, kLanes),
                       std::make_index_sequence<kPlaneChannels * kPlaneVecs>())(tile);
        finish_planes(g_, at, channels, cols);
    }

    const Conv2dArgs& g_;
    Limits limits_;
    size_t depth_, image_, group_;
    const float *x_, *filters_;
    PlanesConvolution::Scratch& scratch_;
};

HWY_INLINE void convolve_points(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    static thread_local PlanesConvolution::Scratch scratch;
    const Conv2dArgs flat = flattened(args);
    const size_t out_channels = flat.out_channels / flat.groups;
    for_each_rect(flat.batch * flat.groups, PointsConvolution::pieces(flat), out_channels, 1, ith, nth,
                  [&](const Rect& rect) {
                      PointsConvolution convolution(flat, packed, rect.batch, scratch);
                      for (size_t i = rect.row; i < rect.row_end; ++i)
                          convolution.run(i, std::min(i + 1, rect.row_end - 1), rect.panel * kPanelWidth,
                                          std::min(out_channels, rect.panel_end * kPanelWidth));
                  });
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_POINTWISE_CONV2D_INL_H_
