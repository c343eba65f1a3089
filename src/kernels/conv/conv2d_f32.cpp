#include "kernels/conv/conv2d_f32.h"

#include <algorithm>
#include <iterator>

#include "base/run_stop.h"
#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/conv2d_depthwise-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Rows of B that fit the 96 KiB buffer on the stack.
constexpr size_t kScratchDepth = 384;

// At most a vector of a panel's row, read from one row of the image for one tap of the kernel.
struct Piece {
    ptrdiff_t source;      // of the first element, from the first image's channel; kPadding: zeros
    size_t column, count;  // in the panel
};
constexpr ptrdiff_t kPadding = -1;

struct Pieces {
    Piece list[kPanelWidth];
    size_t count = 0;

    void add(ptrdiff_t source, ptrdiff_t stride, size_t column, size_t end) {
        for (; column < end; column += kLanes) {
            list[count++] = {source, column, std::min(kLanes, end - column)};
            if (source != kPadding) source += stride * static_cast<ptrdiff_t>(kLanes);
        }
    }
};

// What the tap at (ky, kx) reads for pixels [pixel, pixel + cols), counted through all images, and zeros up
// to the panel's width.
Pieces find_pieces(const Conv2dArgs& g, size_t ky, size_t kx, size_t pixel, size_t cols, size_t width) {
    const ptrdiff_t base_x = static_cast<ptrdiff_t>(kx * g.dilation_w) - g.pad_left;
    const ptrdiff_t stride = static_cast<ptrdiff_t>(g.stride_w), in_w = static_cast<ptrdiff_t>(g.in_w);
    // Output columns whose input column lies inside the image.
    const ptrdiff_t first_x = base_x < 0 ? (-base_x + stride - 1) / stride : 0;
    const ptrdiff_t last_x = in_w > base_x ? (in_w - 1 - base_x) / stride + 1 : 0;
    Pieces pieces;
    const ptrdiff_t image_size = static_cast<ptrdiff_t>(g.in_channels * g.in_h * g.in_w);
    ptrdiff_t image = static_cast<ptrdiff_t>(pixel / (g.out_h * g.out_w)) * image_size;
    size_t y = pixel / g.out_w % g.out_h, x = pixel % g.out_w;
    for (size_t column = 0; column < cols; ++y, x = 0) {
        if (y == g.out_h) y = 0, image += image_size;
        const size_t end = std::min(cols, column + g.out_w - x);
        const ptrdiff_t in_y = static_cast<ptrdiff_t>(y * g.stride_h + ky * g.dilation_h) - g.pad_top;
        const bool in_image = in_y >= 0 && in_y < static_cast<ptrdiff_t>(g.in_h);
        // Panel columns of the first and past the last pixel inside.
        const ptrdiff_t shift = static_cast<ptrdiff_t>(column) - static_cast<ptrdiff_t>(x);
        const size_t first = in_image ? std::clamp<ptrdiff_t>(first_x + shift, column, end) : end;
        const size_t last = in_image ? std::clamp<ptrdiff_t>(last_x + shift, first, end) : end;
        pieces.add(kPadding, 0, column, first);
        pieces.add(image + in_y * in_w + (static_cast<ptrdiff_t>(first) - shift) * stride + base_x, stride,
                   first, last);
        pieces.add(kPadding, 0, last, end);
        column = end;
    }
    pieces.add(kPadding, 0, cols, width);
    return pieces;
}

// Image columns: panel[k][j] = the input that weight k0 + k meets at pixel + j. k counts (channel, ky, kx).
void build_panel(const Conv2dArgs& g, const float* x, size_t k0, size_t depth, size_t pixel, size_t cols,
                 size_t width, float* panel) {
    const TileTag d;
    const size_t taps = g.kernel_h * g.kernel_w;
    for (size_t first = k0; first < k0 + std::min(taps, depth); ++first) {
        const size_t tap = first % taps;
        const Pieces pieces = find_pieces(g, tap / g.kernel_w, tap % g.kernel_w, pixel, cols, width);
        for (size_t channel = first / taps; channel * taps + tap < k0 + depth; ++channel) {
            float* row = panel + (channel * taps + tap - k0) * width;
            const float* source = x + channel * g.in_h * g.in_w;
            for (size_t i = 0; i < pieces.count; ++i) {
                const Piece& piece = pieces.list[i];
                if (piece.source == kPadding) {
                    store_first(hn::Zero(d), d, row + piece.column, piece.count);
                } else {
                    copy_vector(source + piece.source, g.stride_w, piece.count, row + piece.column);
                }
            }
        }
    }
}

// Images of fewer pixels than a panel has columns share panels.
size_t images_per_product(const Conv2dArgs& g) { return g.out_h * g.out_w < kPanelWidth ? g.batch : 1; }

// Where columns [col, col + cols) lie in a row of Y, from its first image on.
size_t find_segments(const Conv2dArgs& g, size_t col, size_t cols, Segment (&segments)[kPanelWidth]) {
    const size_t pixels = g.out_h * g.out_w;
    size_t count = 0;
    for (size_t column = 0; column < cols;) {
        const size_t image = (col + column) / pixels, pixel = (col + column) % pixels;
        const size_t run = std::min(pixels - pixel, cols - column);
        segments[count++] = {column, run, image * g.out_channels * pixels + pixel};
        column += run;
    }
    return count;
}

// Per group and image, or all images that share panels: Y[out][pixels] = W[out][k] · columns[k][pixels].
void run_rect(const Conv2dArgs& g, const Rect& rect, float* scratch) {
    const size_t group = rect.batch % g.groups, image = rect.batch / g.groups, images = images_per_product(g);
    const size_t in_channels = g.in_channels / g.groups, out_channels = g.out_channels / g.groups;
    const size_t k = in_channels * g.kernel_h * g.kernel_w, pixels = g.out_h * g.out_w;
    const size_t first_out = group * out_channels + rect.row;
    const size_t out_offset = (image * g.out_channels + first_out) * pixels;
    const float* x = g.x + (image * g.in_channels + group * in_channels) * g.in_h * g.in_w;
    const Finish finish{.row_bias = g.bias ? g.bias + first_out : nullptr,
                        .activation = g.activation,
                        .clamp_min = g.clamp_min,
                        .clamp_max = g.clamp_max,
                        .residual = g.residual ? g.residual + out_offset : nullptr,
                        .residual_first = g.residual_first,
                        .ldr = static_cast<ptrdiff_t>(pixels)};
    const size_t slices = std::max<size_t>(1, divide_up(k, kScratchDepth));
    Segment segments[kPanelWidth];
    for (size_t p = rect.panel; p < rect.panel_end; ++p) {
        const size_t col = p * kPanelWidth, cols = std::min(kPanelWidth, images * pixels - col);
        const size_t width = divide_up(cols, kLanes) * kLanes;
        // Rows of an image lie pages apart; for more than a few tiles of channels a dense
        // copy of the panel is faster.
        const bool in_place = is_pointwise(g) && images == 1 && cols == width &&
                              rect.row_end - rect.row <= 2 * tile_rows(kTileVecs);
        for (size_t s = 0; s < slices; ++s) {
            check_stop();  // a filter may be as large as an image
            const size_t k0 = s * k / slices, depth = (s + 1) * k / slices - k0;
            if (!in_place) build_panel(g, x, k0, depth, col, cols, width, scratch);
            PanelJob job{};
            job.rows = rect.row_end - rect.row, job.cols = cols, job.depth = depth;
            job.a = g.w + first_out * k + k0, job.lda = static_cast<ptrdiff_t>(k);
            job.b = in_place ? x + k0 * pixels + col : scratch;
            job.ldb = static_cast<ptrdiff_t>(in_place ? pixels : width);
            job.c = g.y + out_offset + (images == 1 ? col : 0), job.ldc = static_cast<ptrdiff_t>(pixels);
            job.init = s == 0 ? kZeros : nullptr;
            job.finish = finish.at(0, images == 1 ? col : 0), job.last = s + 1 == slices;
            if (images > 1) {
                job.segments = segments, job.segment_count = find_segments(g, col, cols, segments);
            }
            run_panel(job);
        }
    }
}

}  // namespace

void conv2d(const Conv2dArgs& args, int ith, int nth) {
    alignas(64) float scratch[kScratchDepth * kPanelWidth];
    if (is_depthwise(args, std::size(scratch))) return depthwise(args, scratch, std::size(scratch), ith, nth);
    const Conv2dArgs g = is_pointwise(args) ? flattened(args) : args;
    const size_t images = images_per_product(g);
    for_each_rect(g.batch / images * g.groups, g.out_channels / g.groups, images * g.out_h * g.out_w,
                  tile_rows(kTileVecs), ith, nth, [&](const Rect& rect) { run_rect(g, rect, scratch); });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(conv2d);

void conv2d_f32(const Conv2dArgs& args, int ith, int nth) { HWY_DYNAMIC_DISPATCH(conv2d)(args, ith, nth); }

}  // namespace headrace::kernels
#endif
