#include "kernels/conv/packed_conv2d_f32.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/packed_conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nchw_stem_conv2d-inl.h"
#include "kernels/conv/nhwc_epilogue-inl.h"
#include "kernels/conv/pointwise_conv2d-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"
#include "kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Pixels of the output that share a piece of the input.
inline constexpr size_t kStripPixels = 96;
// Depth at a time: its filters stay in the L1 cache from one tile of pixels to the next.
inline constexpr size_t kSliceBytes = (kRegisters == 32 ? 24 : 16) << 10;

inline constexpr size_t kMostPixels = 8;

// One tile over a slice of depth.
struct PixelTile {
    const float* x[kMostPixels];  // where each pixel's window begins
    const int32_t* offsets;       // of each element of depth from there
    size_t depth;
    const float* filters;  // of the slice, of the first panel
    size_t panel_stride;
    const float* init;  // what the sums of each pixel start from; null: from where they are
    float* sums;        // a row for each pixel
    size_t sums_stride;
    bool has_limits;  // in which the sums end
    float low, high;
};

template <size_t kVecs, size_t kPixels>
HWY_NOINLINE void pixel_tile(const PixelTile& t) {
    const TileTag d;
    constexpr size_t kPanels = divide_up(kVecs * kLanes, kFilterPanel);
    const float* x[kPixels];
    const float* filters[kPanels];
    for (size_t r = 0; r < kPixels; ++r) x[r] = t.x[r];
    for (size_t p = 0; p < kPanels; ++p) filters[p] = t.filters + p * t.panel_stride;
    TileVec sum[kPixels][kVecs];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kPixels; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v)
            sum[r][v] = hn::LoadU(d, (t.init ? t.init : t.sums + r * t.sums_stride) + v * kLanes);
    }
    for (size_t k = 0; k < t.depth; ++k) {
        const ptrdiff_t offset = t.offsets[k];
        TileVec row[kVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v)
            row[v] = hn::LoadU(
                d, filters[v * kLanes / kFilterPanel] + k * kFilterPanel + v * kLanes % kFilterPanel);
        HWY_UNROLL(16)
        for (size_t r = 0; r < kPixels; ++r) {
            const TileVec pixel = hn::Set(d, x[r][offset]);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) sum[r][v] = hn::MulAdd(pixel, row[v], sum[r][v]);
        }
    }
    if (t.has_limits) {
        HWY_UNROLL(16)
        for (size_t r = 0; r < kPixels; ++r) {
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) sum[r][v] = at_most(d, at_least(d, sum[r][v], t.low), t.high);
        }
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kPixels; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) hn::StoreU(sum[r][v], d, t.sums + r * t.sums_stride + v * kLanes);
    }
}

using PixelTileFn = void (*)(const PixelTile&);

template <size_t kVecs, size_t... kPixels>
PixelTileFn pixel_tile_fn(size_t pixels, std::index_sequence<kPixels...>) {
    static constexpr PixelTileFn fns[] = {&pixel_tile<kVecs, kPixels + 1>...};
    return fns[pixels - 1];
}

template <size_t kVecs>
PixelTileFn find_pixel_tile(size_t vecs, size_t pixels) {
    if constexpr (kVecs > 1) {
        if (vecs < kVecs) return find_pixel_tile<kVecs - 1>(vecs, pixels);
    }
    return pixel_tile_fn<kVecs>(pixels, std::make_index_sequence<tile_pixels(kVecs)>());
}

// How the output is cut: whole rows, or for wide images parts of one row.
struct Strips {
    size_t rows, per_row, count;

    explicit Strips(const Conv2dArgs& g)
        : rows(std::clamp<size_t>(kStripPixels / g.out_w, 1, g.out_h)),
          per_row(divide_up(g.out_w, kStripPixels)),
          count(divide_up(g.out_h, rows) * per_row) {}
};

// Pixels [x, x_end) of rows [y, y_end) of the output.
struct Strip {
    size_t y, y_end, x, x_end;

    Strip(const Conv2dArgs& g, const Strips& all, size_t i) {
        const size_t bands = all.count / all.per_row, band = i / all.per_row, part = i % all.per_row;
        y = band * g.out_h / bands, y_end = (band + 1) * g.out_h / bands;
        // In whole vectors, as which channels are stored.
        const size_t vecs = divide_up(g.out_w, kLanes);
        x = part * vecs / all.per_row * kLanes;
        x_end = std::min(g.out_w, (part + 1) * vecs / all.per_row * kLanes);
    }
    size_t width() const { return x_end - x; }
    size_t pixels() const { return (y_end - y) * width(); }
};

// What a strip reads of an image's channels, with zeros around: a copy, since channels lie pages apart.
class Window {
public:
    Window(const Conv2dArgs& g, const Strip& strip)
        : in_h_(static_cast<ptrdiff_t>(g.in_h)),
          in_w_(static_cast<ptrdiff_t>(g.in_w)),
          step_x_(g.stride_w),
          width_((strip.width() - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1),
          height_((strip.y_end - strip.y - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1),
          step_y_(width_ * g.stride_h),
          plane_(width_ * height_),
          top_(static_cast<ptrdiff_t>(strip.y * g.stride_h) - g.pad_top),
          left_(static_cast<ptrdiff_t>(strip.x * g.stride_w) - g.pad_left),
          first_(std::clamp<ptrdiff_t>(-left_, 0, static_cast<ptrdiff_t>(width_))),
          last_(std::clamp<ptrdiff_t>(in_w_ - left_, first_, static_cast<ptrdiff_t>(width_))) {
        // Channels a multiple of 1 KiB apart would share few lines of the L1 cache.
        if (divide_up(plane_, 16) % 16 == 0) plane_ += 16;
    }
    size_t plane() const { return plane_; }
    size_t height() const { return height_; }
    // Where the window of a pixel of the strip's output begins.
    size_t at(size_t row, size_t column) const { return row * step_y_ + column * step_x_; }
    int32_t offset(size_t channel, size_t row, size_t column) const {
        return static_cast<int32_t>(channel * plane_ + row * width_ + column);
    }

    void copy_row(const float* x, size_t channel, size_t row, float* to) const {
        to += channel * plane_ + row * width_;
        const auto [from, count] = in_image(x, channel, row);
        if (count == 0) return void(std::fill_n(to, width_, 0.0f));
        std::fill_n(to, first_, 0.0f);
        copy_strided(from, 1, count, to + first_);
        std::fill_n(to + last_, static_cast<ptrdiff_t>(width_) - last_, 0.0f);
    }
    void prefetch_row(const float* x, size_t channel, size_t row) const {
        const auto [from, count] = in_image(x, channel, row);
        for (size_t i = 0; i < count; i += 16) __builtin_prefetch(from + i, 0, 2);
    }

private:
    std::pair<const float*, size_t> in_image(const float* x, size_t channel, size_t row) const {
        const ptrdiff_t y = top_ + static_cast<ptrdiff_t>(row);
        if (y < 0 || y >= in_h_) return {nullptr, 0};
        return {x + (static_cast<ptrdiff_t>(channel) * in_h_ + y) * in_w_ + left_ + first_,
                static_cast<size_t>(last_ - first_)};
    }

    ptrdiff_t in_h_, in_w_;
    size_t step_x_, width_, height_, step_y_, plane_;
    ptrdiff_t top_, left_, first_, last_;
};

// The channels of an image that a group reads.
struct GroupInput {
    const float* x;
    size_t channels;
};

// Brings what the next strip reads into the L2 cache, row by row while this one is computed.
class Ahead {
public:
    Ahead(const Window& next, const GroupInput& in, size_t rows_each)
        : next_(next), in_(in), rows_each_(rows_each) {}
    void step() {
        for (size_t i = 0; i < rows_each_ && channel_ < in_.channels; ++i) {
            next_.prefetch_row(in_.x, channel_, row_);
            if (++row_ == next_.height()) row_ = 0, ++channel_;
        }
    }

private:
    const Window& next_;
    const GroupInput& in_;
    size_t rows_each_, channel_ = 0, row_ = 0;
};

// What a thread keeps from one convolution to the next.
struct ConvScratch {
    std::vector<float> window;
    std::vector<int32_t> offsets;
};

// The strip at hand.
struct StripJob {
    const Strip& strip;
    const Window& window;
    const ConvScratch& scratch;
    size_t k;

    size_t slice(size_t width) const { return std::min(k, kSliceBytes / sizeof(float) / width); }
    size_t tiles(size_t vecs) const { return divide_up(strip.pixels(), tile_pixels(vecs)); }
};

// Where sums go, what they start from, and the limits of those that are finished there.
struct Sums {
    float* at;  // [pixel][channel]
    size_t stride;
    const float* init;
    NhwcEpilogue epilogue;
};

// Some vectors of output channels for all pixels of a strip.
void sum_pixels(const StripJob& job, const float* filters, size_t vecs, Ahead& ahead, const Sums& sums) {
    const size_t pixels = job.strip.pixels(), width = vecs * kLanes, tiles = job.tiles(vecs);
    PixelTile tile{};
    tile.panel_stride = job.k * kFilterPanel, tile.sums_stride = sums.stride;
    tile.low = sums.epilogue.low, tile.high = sums.epilogue.high;
    for (size_t k0 = 0; k0 < job.k; k0 += tile.depth) {
        tile.offsets = job.scratch.offsets.data() + k0;
        tile.depth = std::min(job.slice(width), job.k - k0);
        tile.filters = filters + k0 * kFilterPanel, tile.init = k0 == 0 ? sums.init : nullptr;
        tile.has_limits = k0 + tile.depth == job.k && sums.epilogue.has_limits;
        for (size_t i = 0, pixel = 0, row = 0, column = 0; i < tiles; ++i) {
            const size_t next = (i + 1) * pixels / tiles, count = next - pixel;
            for (size_t r = 0; r < count; ++r) {
                tile.x[r] = job.scratch.window.data() + job.window.at(row, column);
                if (++column == job.strip.width()) column = 0, ++row;
            }
            tile.sums = sums.at + pixel * sums.stride;
            find_pixel_tile<kTileVecs>(vecs, count)(tile);
            ahead.step();
            pixel = next;
        }
    }
}

// A convolution as the product of strips and panels, for one image and group.
class GroupConvolution {
public:
    GroupConvolution(const Conv2dArgs& g, const float* packed, size_t batch, ConvScratch& scratch)
        : g_(g),
          first_channel_(batch % g.groups * (g.out_channels / g.groups)),
          image_(batch / g.groups),
          in_{g.x +
                  (image_ * g.in_channels + batch % g.groups * (g.in_channels / g.groups)) * g.in_h * g.in_w,
              g.in_channels / g.groups},
          k_(in_.channels * g.kernel_h * g.kernel_w),
          filters_(packed + batch % g.groups * packed_filters_size(g.out_channels / g.groups, 1, k_)),
          scratch_(scratch) {}

    // Output channels [first, last) of the group; `next` will be computed next.
    void run(const Strip& strip, const Strip& next, size_t first, size_t last) {
        const Window window(g_, strip), next_window(g_, next);
        load(window);
        const StripJob job{strip, window, scratch_, k_};
        constexpr size_t kColumns = kTileVecs * kLanes;
        const size_t steps =
            divide_up(last - first, kColumns) * divide_up(k_, job.slice(kColumns)) * job.tiles(kTileVecs);
        Ahead ahead(next_window, in_, divide_up(in_.channels * next_window.height(), steps));
        alignas(64) float sums[kStripPixels * kColumns];
        for (size_t out = first; out < last; out += kColumns) {
            const size_t channels = std::min(kColumns, last - out), vecs = divide_up(channels, kLanes);
            const float* filters = filters_ + out / kFilterPanel * k_ * kFilterPanel + out % kFilterPanel;
            if (g_.channels_last_y && !g_.residual && channels == vecs * kLanes) {
                const size_t at = pixel_at(strip) + first_channel_ + out;
                const float* init = g_.bias ? g_.bias + first_channel_ + out : kZeros;
                sum_pixels(job, filters, vecs, ahead,
                           {g_.y + at, g_.out_channels, init, NhwcEpilogue(g_, at)});
                NhwcEpilogue::finish_rest(g_, strip.pixels(), channels, at);
            } else {
                sum_pixels(job, filters, vecs, ahead, {sums, vecs * kLanes, kZeros, NhwcEpilogue()});
                store(strip, out, channels, sums, vecs * kLanes);
            }
        }
    }

private:
    void load(const Window& window) {
        if (const size_t size = in_.channels * window.plane(); scratch_.window.size() < size)
            scratch_.window.resize(size);
        for (size_t c = 0; c < in_.channels; ++c)
            for (size_t row = 0; row < window.height(); ++row)
                window.copy_row(in_.x, c, row, scratch_.window.data());
        if (scratch_.offsets.size() < k_) scratch_.offsets.resize(k_);
        for (size_t c = 0, i = 0; c < in_.channels; ++c)
            for (size_t y = 0; y < g_.kernel_h; ++y)
                for (size_t x = 0; x < g_.kernel_w; ++x, ++i)
                    scratch_.offsets[i] = window.offset(c, y * g_.dilation_h, x * g_.dilation_w);
    }

    // Where the strip's first pixel lies, with channels last.
    size_t pixel_at(const Strip& strip) const {
        return ((image_ * g_.out_h + strip.y) * g_.out_w + strip.x) * g_.out_channels;
    }

    // Strips are whole rows or lie in one, so their pixels are neighbours in the output.
    void store(const Strip& strip, size_t out, size_t channels, const float* sums, size_t width) const {
        if (g_.channels_last_y) return store_pixels(strip, out, channels, sums, width);
        const size_t channel = first_channel_ + out, pixels = g_.out_h * g_.out_w;
        const size_t at = (image_ * g_.out_channels + channel) * pixels + strip.y * g_.out_w + strip.x;
        const auto stride = static_cast<ptrdiff_t>(pixels);
        transpose_block(sums, static_cast<ptrdiff_t>(width), strip.pixels(), channels, g_.y + at, stride);
        const Finish finish{.row_bias = g_.bias ? g_.bias + channel : nullptr,
                            .activation = g_.activation,
                            .clamp_min = g_.clamp_min,
                            .clamp_max = g_.clamp_max,
                            .residual = g_.residual ? g_.residual + at : nullptr,
                            .residual_first = g_.residual_first,
                            .ldr = stride};
        if (finish.needed()) HWY_NAMESPACE::finish(finish, channels, strip.pixels(), g_.y + at, stride);
    }

    void store_pixels(const Strip& strip, size_t out, size_t channels, const float* sums,
                      size_t width) const {
        const TileTag d;
        const size_t channel = first_channel_ + out;
        const size_t first = pixel_at(strip) + channel;
        for (size_t pixel = 0; pixel < strip.pixels(); ++pixel) {
            const size_t at = first + pixel * g_.out_channels;
            const NhwcEpilogue epilogue(g_, at);
            for (size_t c = 0; c < channels; c += kLanes) {
                const size_t count = std::min(kLanes, channels - c);
                const auto load = [&](const float* p) HWY_ATTR {
                    return count == kLanes ? hn::LoadU(d, p + c) : load_first(d, p + c, count);
                };
                TileVec sum = hn::LoadU(d, sums + pixel * width + c);
                if (g_.bias) sum = hn::Add(sum, load(g_.bias + channel));
                sum = epilogue.apply(sum, load);
                if (count == kLanes)
                    hn::StoreU(sum, d, g_.y + at + c);
                else
                    store_first(sum, d, g_.y + at + c, count);
            }
        }
        NhwcEpilogue::finish_rest(g_, strip.pixels(), channels, first);
    }

    const Conv2dArgs& g_;
    size_t first_channel_, image_;
    GroupInput in_;
    size_t k_;
    const float* filters_;
    ConvScratch& scratch_;
};

}  // namespace

void packed_conv2d(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    if (PlanesConvolution::applies(args)) return convolve_planes(args, packed, ith, nth);
    if (PointsConvolution::applies(args)) return convolve_points(args, packed, ith, nth);
    static thread_local ConvScratch scratch;
    const Conv2dArgs g = is_pointwise(args) ? flattened(args) : args;
    const Strips strips(g);
    const size_t out_channels = g.out_channels / g.groups;
    // Strips are the rows of a product, panels of output channels its columns.
    for_each_rect(g.batch * g.groups, strips.count, out_channels, 1, ith, nth, [&](const Rect& rect) {
        GroupConvolution convolution(g, packed, rect.batch, scratch);
        for (size_t i = rect.row; i < rect.row_end; ++i)
            convolution.run(Strip(g, strips, i), Strip(g, strips, std::min(i + 1, strips.count - 1)),
                            rect.panel * kPanelWidth, std::min(out_channels, rect.panel_end * kPanelWidth));
    });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(packed_conv2d);

bool has_packed_conv2d(size_t out_channels, size_t groups) {
    const size_t channels = out_channels / groups;
    return channels >= kFilterPanel / 2;
}

size_t packed_filters_size(size_t out_channels, size_t groups, size_t k) {
    const size_t channels = out_channels / groups;
    return groups * ((channels + kFilterPanel - 1) / kFilterPanel) * kFilterPanel * k;
}

void pack_filters(const float* w, size_t out_channels, size_t groups, size_t k, float* packed) {
    const size_t channels = out_channels / groups;
    for (size_t group = 0; group < groups; ++group)
        for (size_t first = 0; first < channels; first += kFilterPanel)
            for (size_t i = 0; i < k; ++i)
                for (size_t lane = 0; lane < kFilterPanel; ++lane) {
                    const size_t out = first + lane;
                    *packed++ = out < channels ? w[(group * channels + out) * k + i] : 0.0f;
                }
}

void packed_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(packed_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
