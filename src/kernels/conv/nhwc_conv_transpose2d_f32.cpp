#include "kernels/conv/nhwc_conv_transpose2d_f32.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_conv_transpose2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/memory-inl.h"

#ifndef HEADRACE_KERNELS_NHWC_CONV_TRANSPOSE2D_F32
#define HEADRACE_KERNELS_NHWC_CONV_TRANSPOSE2D_F32
namespace headrace::kernels {

// What some pixels of a row give to a row of the output, a run of floats for each pixel and tap.
struct TransposedRuns {
    const float* products;  // [pixels][taps][run]
    size_t pixels, taps, run;
    ptrdiff_t first, pixel_step, tap_step;  // where the first tap of the first pixel goes; all in pixels
    ptrdiff_t width;                        // of the output; runs outside of it are dropped
    float* row;
    size_t channels;  // from one pixel of the row to the next
};

}  // namespace headrace::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

void add_run(const float* from, size_t count, float* to) {
    const TileTag d;
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
    if (const size_t rest = count - i)
        store_first(hn::Add(load_first(d, to + i, rest), load_first(d, from + i, rest)), d, to + i, rest);
}

void add_runs(const TransposedRuns& t) {
    for (size_t pixel = 0; pixel < t.pixels; ++pixel) {
        const float* from = t.products + pixel * t.taps * t.run;
        ptrdiff_t at = t.first + static_cast<ptrdiff_t>(pixel) * t.pixel_step;
        // Neighbouring taps without gaps between their channels are one run.
        const ptrdiff_t past = at + static_cast<ptrdiff_t>(t.taps);
        if (t.tap_step == 1 && t.run == t.channels && at >= 0 && past <= t.width) {
            add_run(from, t.taps * t.run, t.row + static_cast<size_t>(at) * t.channels);
            continue;
        }
        for (size_t tap = 0; tap < t.taps; ++tap, at += t.tap_step)
            if (at >= 0 && at < t.width)
                add_run(from + tap * t.run, t.run, t.row + static_cast<size_t>(at) * t.channels);
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(add_runs);

namespace {

constexpr size_t kScratchFloats = 32768;  // of products, which stay in the L2 cache

// One group's part of rows of the output.
class TransposedGroup {
public:
    TransposedGroup(const ConvTranspose2dArgs& g, const float* packed, size_t group)
        : g_(g),
          group_(group),
          run_(g.group_outputs()),
          columns_(g.kernel_w * run_),
          matrix_(packed_bytes(g.group_inputs(), columns_) / sizeof(float)),
          filters_(packed + group * g.kernel_h * matrix_) {
        for (size_t tap = 0; tap < g.kernel_w && g.bias && tiles(); ++tap)
            biases_.insert(biases_.end(), g.bias + group * run_, g.bias + (group + 1) * run_);
    }

    void run(size_t image, size_t row) const {
        float* to = g_.y + (image * g_.out_h + row) * g_.out_w * g_.out_channels + group_ * run_;
        if (!tiles()) fill(to);
        for (size_t ky = 0; ky < g_.kernel_h; ++ky) {
            const ptrdiff_t reach =
                static_cast<ptrdiff_t>(row) + g_.pad_top - static_cast<ptrdiff_t>(ky * g_.dilation_h);
            const auto stride = static_cast<ptrdiff_t>(g_.stride_h);
            if (reach < 0 || reach % stride || reach / stride >= static_cast<ptrdiff_t>(g_.in_h)) continue;
            const float* x =
                g_.x + (image * g_.in_h + static_cast<size_t>(reach / stride)) * g_.in_w * g_.in_channels;
            if (tiles())
                multiply(x, g_.in_w, ky, to, biases_.empty() ? nullptr : biases_.data());
            else
                add_row(x, ky, to);
        }
    }

private:
    bool tiles() const { return g_.groups == 1 && g_.tiles(); }
    void fill(float* to) const {
        for (size_t x = 0; x < g_.out_w; ++x, to += g_.out_channels)
            if (g_.bias)
                std::copy_n(g_.bias + group_ * run_, run_, to);
            else
                std::fill_n(to, run_, 0.0f);
    }
    void multiply(const float* x, size_t pixels, size_t ky, float* to, const float* bias) const {
        GemmArgs a;
        a.m = pixels, a.n = columns_, a.k = g_.group_inputs();
        a.a = x + group_ * g_.group_inputs(), a.lda = static_cast<ptrdiff_t>(g_.in_channels);
        a.packed_b = filters_ + ky * matrix_;
        a.c = to, a.ldc = static_cast<ptrdiff_t>(columns_), a.bias = bias;
        gemm_f32(a, 0, 1);
    }
    void add_row(const float* x, size_t ky, float* to) const {
        static thread_local std::vector<float> products;
        const size_t most = std::max<size_t>(1, kScratchFloats / columns_);
        products.resize(std::max(products.size(), std::min(most, g_.in_w) * columns_));
        for (size_t first = 0; first < g_.in_w; first += most) {
            const size_t pixels = std::min(most, g_.in_w - first);
            multiply(x + first * g_.in_channels, pixels, ky, products.data(), nullptr);
            HWY_DYNAMIC_DISPATCH(add_runs)
            ({.products = products.data(),
              .pixels = pixels,
              .taps = g_.kernel_w,
              .run = run_,
              .first = static_cast<ptrdiff_t>(first * g_.stride_w) - g_.pad_left,
              .pixel_step = static_cast<ptrdiff_t>(g_.stride_w),
              .tap_step = static_cast<ptrdiff_t>(g_.dilation_w),
              .width = static_cast<ptrdiff_t>(g_.out_w),
              .row = to,
              .channels = g_.out_channels});
        }
    }

    const ConvTranspose2dArgs& g_;
    size_t group_, run_, columns_, matrix_;
    const float* filters_;
    std::vector<float> biases_;  // one for each column of products that go to the output at once
};

}  // namespace

size_t packed_transposed_filters_bytes(const ConvTranspose2dArgs& g) {
    return g.groups * g.kernel_h * packed_bytes(g.group_inputs(), g.kernel_w * g.group_outputs());
}

void pack_transposed_filters(const ConvTranspose2dArgs& g, const float* filter,
                             const std::array<ptrdiff_t, 4>& strides, float* packed) {
    const size_t inputs = g.group_inputs(), outputs = g.group_outputs(), columns = g.kernel_w * outputs;
    std::vector<float> rows(inputs * columns);
    for (size_t group = 0; group < g.groups; ++group)
        for (size_t ky = 0; ky < g.kernel_h; ++ky) {
            for (size_t at = 0; at < rows.size(); ++at) {
                const size_t i = group * inputs + at / columns, kx = at % columns / outputs, o = at % outputs;
                const std::array place{i, o, ky, kx};
                ptrdiff_t from = 0;
                for (size_t d = 0; d < place.size(); ++d)
                    from += static_cast<ptrdiff_t>(place[d]) * strides[d];
                rows[at] = filter[from];
            }
            pack(rows.data(), static_cast<ptrdiff_t>(columns), 1, inputs, columns, packed);
            packed += packed_bytes(inputs, columns) / sizeof(float);
        }
}

void nhwc_conv_transpose2d_f32(const ConvTranspose2dArgs& g, const float* packed, int ith, int nth) {
    if (g.out_channels == 0) return;
    const size_t rows = g.batch * g.out_h;
    const size_t begin = rows * static_cast<size_t>(ith) / static_cast<size_t>(nth);
    const size_t end = rows * static_cast<size_t>(ith + 1) / static_cast<size_t>(nth);
    for (size_t group = 0; group < g.groups; ++group) {
        const TransposedGroup part(g, packed, group);
        for (size_t row = begin; row < end; ++row) part.run(row / g.out_h, row % g.out_h);
    }
}

}  // namespace headrace::kernels
#endif
