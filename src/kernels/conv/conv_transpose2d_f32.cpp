#include "kernels/conv/conv_transpose2d_f32.h"

#include <algorithm>
#include <vector>

#include "base/run_stop.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {
namespace {

constexpr size_t kTogether = 32;          // output channels of a product, so that pixels are read seldom
constexpr size_t kProductFloats = 32768;  // that stay in the L2 cache
// Products at a time where the taps of one row of pixels are more; a filter of 2,000 x 2,000 would take 32
// GB.
constexpr size_t kMostProductFloats = 1 << 20;

// Output channels [o, o + channels) of an image, all of one group: the product of their filters with some
// rows of pixels is what every pixel adds, tap by tap of the filter, and goes to the output row by row.
class TransposedChannels {
public:
    TransposedChannels(const ConvTranspose2dArgs& g, size_t image, size_t o, size_t channels)
        : g_(g), o_(o), channels_(channels), first_(o / g.group_outputs() * g.group_inputs()) {
        x_ = g.x + (image * g.in_channels + first_) * g.in_h * g.in_w;
        planes_ = g.y + (image * g.out_channels + o) * g.out_h * g.out_w;
    }

    void run() {
        const size_t plane = g_.out_h * g_.out_w, of_tap = std::max<size_t>(1, channels_ * g_.in_w);
        for (size_t c = 0; c < channels_ && !g_.tiles(); ++c)
            std::fill_n(planes_ + c * plane, plane, bias(c));
        // Where filters tile the output, the products of a row of pixels are as many as its elements there.
        const size_t most = g_.tiles() ? g_.taps() : std::max<size_t>(1, kMostProductFloats / of_tap);
        for (first_tap_ = 0; first_tap_ < g_.taps(); first_tap_ += most) {
            taps_ = std::min(most, g_.taps() - first_tap_);
            gather_filters();
            multiply_rows(std::max<size_t>(1, kProductFloats / (of_tap * taps_)));
        }
    }

private:
    float bias(size_t c) const { return g_.bias ? g_.bias[o_ + c] : 0.0f; }

    // [channel][tap][input]
    void gather_filters() {
        const size_t inputs = g_.group_inputs();
        filters_.resize(channels_ * taps_ * inputs);
        float* to = filters_.data();
        for (size_t c = 0; c < channels_; ++c, to += taps_ * inputs)
            for (size_t i = 0; i < inputs; ++i) {
                const size_t filter = (first_ + i) * g_.group_outputs() + (o_ + c) % g_.group_outputs();
                const float* from = g_.w + filter * g_.taps() + first_tap_;
                for (size_t t = 0; t < taps_; ++t) to[t * inputs + i] = from[t];
            }
    }
    void multiply_rows(size_t rows) {
        const size_t plane = g_.out_h * g_.out_w;
        products_.resize(channels_ * taps_ * rows * g_.in_w);
        for (size_t row = 0; row < g_.in_h; row += rows) {
            check_stop();  // one channel is one task, however large
            const size_t count = std::min(rows, g_.in_h - row);
            multiply(row, count);
            for (size_t c = 0; c < channels_; ++c) {
                const float* from = products_.data() + c * taps_ * count * g_.in_w;
                if (g_.tiles())
                    place(from, row, count, bias(c), planes_ + c * plane);
                else
                    add(from, row, count, planes_ + c * plane);
            }
        }
    }
    void multiply(size_t row, size_t rows) {
        BatchedGemmArgs a;
        a.m = channels_ * taps_, a.n = rows * g_.in_w, a.k = g_.group_inputs();
        a.a = filters_.data(), a.lda = static_cast<ptrdiff_t>(a.k);
        a.b = x_ + row * g_.in_w, a.ldb = static_cast<ptrdiff_t>(g_.in_h * g_.in_w);
        a.c = products_.data(), a.ldc = static_cast<ptrdiff_t>(a.n);
        batched_gemm_f32(a, 0, 1);
    }
    // Where every element of the output has one product.
    void place(const float* products, size_t row, size_t rows, float bias, float* plane) const {
        const size_t width = g_.in_w, step = g_.stride_w;
        for (size_t ky = 0; ky < g_.kernel_h; ++ky)
            for (size_t r = 0; r < rows; ++r) {
                float* to = plane + ((row + r) * g_.stride_h + ky) * g_.out_w;
                const auto from = [&](size_t kx) { return products + ((ky * step + kx) * rows + r) * width; };
                if (step == 2) {
                    const float *even = from(0), *odd = from(1);
                    for (size_t i = 0; i < width; ++i) {
                        to[2 * i] = even[i] + bias;
                        to[2 * i + 1] = odd[i] + bias;
                    }
                    continue;
                }
                for (size_t kx = 0; kx < step; ++kx)
                    for (size_t i = 0; i < width; ++i) to[i * step + kx] = from(kx)[i] + bias;
            }
    }
    void add(const float* products, size_t row, size_t rows, float* plane) const {
        const auto stride = static_cast<ptrdiff_t>(g_.stride_w), width = static_cast<ptrdiff_t>(g_.in_w),
                   out_w = static_cast<ptrdiff_t>(g_.out_w);
        StopCheck may_stop;
        for (size_t i_tap = 0; i_tap < taps_; ++i_tap) {
            may_stop();
            const size_t tap = first_tap_ + i_tap;
            const ptrdiff_t shift = static_cast<ptrdiff_t>(tap % g_.kernel_w * g_.dilation_w) - g_.pad_left;
            const ptrdiff_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
            const ptrdiff_t end = shift >= out_w ? 0 : std::min(width, (out_w - shift + stride - 1) / stride);
            for (size_t r = 0; r < rows; ++r) {
                const ptrdiff_t y =
                    static_cast<ptrdiff_t>((row + r) * g_.stride_h + tap / g_.kernel_w * g_.dilation_h) -
                    g_.pad_top;
                if (y < 0 || y >= static_cast<ptrdiff_t>(g_.out_h)) continue;
                const float* from = products + (i_tap * rows + r) * g_.in_w;
                float* to = plane + y * out_w + shift;
                if (stride == 1)
                    for (ptrdiff_t i = begin; i < end; ++i) to[i] += from[i];
                else
                    for (ptrdiff_t i = begin; i < end; ++i) to[i * stride] += from[i];
            }
        }
    }

    const ConvTranspose2dArgs& g_;
    size_t o_, channels_, first_;
    size_t first_tap_ = 0, taps_ = 0;  // of the filters at hand
    const float* x_;
    float* planes_;
    std::vector<float> filters_, products_;
};

}  // namespace

void conv_transpose2d_f32(const ConvTranspose2dArgs& g, int ith, int nth) {
    const size_t tasks = g.batch * g.out_channels;
    const size_t end = tasks * static_cast<size_t>(ith + 1) / static_cast<size_t>(nth);
    for (size_t task = tasks * static_cast<size_t>(ith) / static_cast<size_t>(nth); task < end;) {
        const size_t o = task % g.out_channels, left_in_group = g.group_outputs() - o % g.group_outputs();
        const size_t channels = std::min({kTogether, left_in_group, end - task});
        TransposedChannels(g, task / g.out_channels, o, channels).run();
        task += channels;
    }
}

}  // namespace headrace::kernels
