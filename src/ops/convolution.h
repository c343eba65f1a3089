/// Two-dimensional convolution as conv2d and fused_conv2d share it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "emit/emit.h"
#include "ir/op_def.h"
#include "kernels/conv/nhwc_bf16_conv2d.h"
#include "kernels/conv/nhwc_conv2d_f32.h"
#include "kernels/conv/nhwc_winograd_conv2d_f32.h"
#include "kernels/conv/packed_conv2d_f32.h"
#include "ops/arithmetic.h"
#include "ops/image.h"
#include "ops/op.h"

namespace headrace::ops {

/// Order of a filter's dimensions: output channels o, input channels of one group i, height h, width w.
enum class FilterLayout : std::uint8_t { oihw, hwio, ohwi, ihwo };
constexpr auto enum_names(FilterLayout) {
    return std::array<std::string_view, 4>{"oihw", "hwio", "ohwi", "ihwo"};
}

/// Which dimension of the filter is o, i, h and w.
constexpr std::array<int, 4> filter_axes(FilterLayout layout) {
    switch (layout) {
        case FilterLayout::oihw: return {0, 1, 2, 3};
        case FilterLayout::hwio: return {3, 2, 0, 1};
        case FilterLayout::ohwi: return {0, 3, 1, 2};
        case FilterLayout::ihwo: return {3, 0, 1, 2};
    }
    return {};
}

struct Conv2dAttrs {
    std::vector<std::int64_t> padding{0, 0, 0, 0}, strides{1, 1}, dilations{1, 1};
    std::int64_t groups = 1;
    ImageLayout input_layout = ImageLayout::nchw;
    FilterLayout filter_layout = FilterLayout::oihw;
    std::optional<ImageLayout> output_layout;  ///< fused_conv2d's, as the next one
    bool round_to_bf16 = false;
    ImageLayout layout_of_output() const { return output_layout.value_or(input_layout); }
    static void fields(auto&& f) {
        using A = Conv2dAttrs;
        f("padding", &A::padding, "zeros above, below, left and right of the image");
        f("strides", &A::strides, "vertical and horizontal step of the window");
        f("dilations", &A::dilations, "vertical and horizontal distance of the filter's elements");
        f("groups", &A::groups, "input and output channels are split in so many independent convolutions");
        f("input_layout", &A::input_layout, "order of input's and output's dimensions");
        f("filter_layout", &A::filter_layout, "order of the filter's dimensions");
    }
};

/// The rules of input, filter and bias, a convolution's first operands.
inline constexpr OperandRule kConvInput{
    .name = "input", .dtypes = kFloats, .min_rank = 4, .max_rank = 4, .title = "Conv2d input"};
inline constexpr OperandRule kConvFilter{.name = "filter",
                                         .dtypes = kFloats,
                                         .same_dtype_as = 0,
                                         .min_rank = 4,
                                         .max_rank = 4,
                                         .title = "Conv2d filter"};
inline constexpr OperandRule kConvBias{
    .name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true};

/// The output's type, or why operands and attributes do not go together.
Result<TensorType> infer_conv2d(const Operands& in, const Conv2dAttrs& a);

Cost conv2d_cost(const Operands& in, std::span<const TensorType> out, const Conv2dAttrs& a);

/// Whether and how a convolution with its bias becomes ggml's: in f32, in the order of the output's
/// dimensions.
Status conv2d_lowerable(const Operands& in, const Conv2dAttrs& a);
ggml_tensor* lower_conv2d(Emit& e, std::span<ggml_tensor* const> x, const Operands& in, const Conv2dAttrs& a);

/// A convolution of several groups as several of one, whose outputs are put together: each of channels of the
/// image and of the filter's first dimension. More groups than these have no lowering.
inline constexpr std::int64_t kMostGroups = 32;
ggml_tensor* by_groups(Emit& e, ggml_tensor* image, ggml_tensor* filter, std::int64_t groups,
                       const std::function<ggml_tensor*(ggml_tensor*, ggml_tensor*)>& convolve);

/// The kernels read images as nchw and filters as oihw: as they lie, or constant ones brought into that
/// order.
bool conv2d_kernel_applies(const Operands& in, const Conv2dAttrs& a);
bool ordered_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
void order_conv2d_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* ordered);
/// Or constant ones in panels of output channels.
bool packed_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
std::size_t packed_conv2d_filter_bytes(const Operands& in, const Conv2dAttrs& a);
void pack_conv2d_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed);
/// With channels last the kernels read constant filters only: the same panels, transformed filters, or of
/// depthwise convolutions the filter's elements as rows of channels.
bool nhwc_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
bool nhwc_depthwise_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
bool nhwc_winograd_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
std::size_t nhwc_winograd_filter_bytes(const Operands& in, const Conv2dAttrs& a);
void pack_nhwc_winograd_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed);
void pack_nhwc_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed);
void order_nhwc_depthwise_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* ordered);
/// Where it may round, and this processor multiplies bf16: the same in 16 bits.
bool nhwc_bf16_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
bool nhwc_bf16_winograd_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a);
std::size_t nhwc_bf16_filter_bytes(const Operands& in, const Conv2dAttrs& a);
std::size_t nhwc_bf16_winograd_filter_bytes(const Operands& in, const Conv2dAttrs& a);
void pack_nhwc_bf16_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed);
void pack_nhwc_bf16_winograd_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed);
/// The kernels' arguments, without epilogue.
kernels::Conv2dArgs conv2d_args(const TensorArgs& args, const Conv2dAttrs& a);

/// The kernels of an op with these attributes; to_args gives them their arguments with the op's epilogue.
template <class Attrs, kernels::Conv2dArgs (*to_args)(const TensorArgs&, const Attrs&)>
struct Conv2dKernels {
    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    static bool plain_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return conv2d_kernel_applies(in, cast(attrs));
    }
    static bool ordered_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return ordered_conv2d_kernel_applies(in, is_constant[1], cast(attrs));
    }
    static std::size_t ordered_bytes(const Operands& in, const void*) { return in[1].bytes(); }
    static void order(const ConstView& filter, const void* attrs, std::byte* ordered) {
        order_conv2d_filter(filter, cast(attrs), ordered);
    }
    static void run(const TensorArgs& args, const void* attrs) {
        kernels::conv2d_f32(to_args(args, cast(attrs)), args.share.ith, args.share.nth);
    }
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return packed_conv2d_kernel_applies(in, is_constant[1], cast(attrs));
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        return packed_conv2d_filter_bytes(in, cast(attrs));
    }
    static void pack(const ConstView& filter, const void* attrs, std::byte* packed) {
        pack_conv2d_filter(filter, cast(attrs), packed);
    }
    static void run_packed(const TensorArgs& args, const void* attrs) {
        kernels::packed_conv2d_f32(to_args(args, cast(attrs)), args.in[1].as<float>(), args.share.ith,
                                   args.share.nth);
    }
    static bool nhwc_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return nhwc_conv2d_kernel_applies(in, is_constant[1], cast(attrs));
    }
    static void pack_nhwc(const ConstView& filter, const void* attrs, std::byte* packed) {
        pack_nhwc_filter(filter, cast(attrs), packed);
    }
    static void run_nhwc(const TensorArgs& args, const void* attrs) {
        kernels::nhwc_conv2d_f32(to_args(args, cast(attrs)), args.in[1].as<float>(), args.share.ith,
                                 args.share.nth);
    }
    static bool nhwc_winograd_applies(const Operands& in, std::span<const bool> is_constant,
                                      const void* attrs) {
        return nhwc_winograd_kernel_applies(in, is_constant[1], cast(attrs));
    }
    static std::size_t nhwc_winograd_bytes(const Operands& in, const void* attrs) {
        return nhwc_winograd_filter_bytes(in, cast(attrs));
    }
    static void pack_nhwc_winograd(const ConstView& filter, const void* attrs, std::byte* packed) {
        pack_nhwc_winograd_filter(filter, cast(attrs), packed);
    }
    static void run_nhwc_winograd(const TensorArgs& args, const void* attrs) {
        kernels::nhwc_winograd_conv2d_f32(to_args(args, cast(attrs)), args.in[1].as<float>(), args.share.ith,
                                          args.share.nth);
    }
    template <auto Applies>
    static bool bf16_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return Applies(in, is_constant[1], cast(attrs));
    }
    template <auto Bytes>
    static std::size_t bf16_bytes(const Operands& in, const void* attrs) {
        return Bytes(in, cast(attrs));
    }
    template <auto Pack>
    static void pack_bf16(const ConstView& filter, const void* attrs, std::byte* packed) {
        Pack(filter, cast(attrs), packed);
    }
    template <auto Kernel>
    static void run_bf16(const TensorArgs& args, const void* attrs) {
        Kernel(to_args(args, cast(attrs)), args.in[1].as<std::uint16_t>(), args.share.ith, args.share.nth);
    }
    static bool nhwc_depthwise_applies(const Operands& in, std::span<const bool> is_constant,
                                       const void* attrs) {
        return nhwc_depthwise_kernel_applies(in, is_constant[1], cast(attrs));
    }
    static void order_depthwise(const ConstView& filter, const void* attrs, std::byte* ordered) {
        order_nhwc_depthwise_filter(filter, cast(attrs), ordered);
    }
    static void run_nhwc_depthwise(const TensorArgs& args, const void* attrs) {
        kernels::nhwc_depthwise_conv2d_f32(to_args(args, cast(attrs)), args.share.ith, args.share.nth);
    }
    static constexpr std::array list{
        KernelDef{"packed_conv2d_f32", &packed_applies, 1, &packed_bytes, &pack, &run_packed, true},
        KernelDef{"nhwc_depthwise_conv2d_f32", &nhwc_depthwise_applies, 1, &ordered_bytes, &order_depthwise,
                  &run_nhwc_depthwise},
        KernelDef{"nhwc_winograd_conv2d_f32", &nhwc_winograd_applies, 1, &nhwc_winograd_bytes,
                  &pack_nhwc_winograd, &run_nhwc_winograd},
        KernelDef{"nhwc_conv2d_f32", &nhwc_applies, 1, &packed_bytes, &pack_nhwc, &run_nhwc, true},
        KernelDef{.name = "conv2d_f32", .applies = &plain_applies, .run = &run},
        KernelDef{"conv2d_f32_ordered", &ordered_applies, 1, &ordered_bytes, &order, &run}};
    static constexpr std::array rounding{
        KernelDef{"nhwc_bf16_winograd_conv2d", &bf16_applies<&nhwc_bf16_winograd_kernel_applies>, 1,
                  &bf16_bytes<&nhwc_bf16_winograd_filter_bytes>, &pack_bf16<&pack_nhwc_bf16_winograd_filter>,
                  &run_bf16<&kernels::nhwc_bf16_winograd_conv2d>},
        KernelDef{"nhwc_bf16_conv2d", &bf16_applies<&nhwc_bf16_kernel_applies>, 1,
                  &bf16_bytes<&nhwc_bf16_filter_bytes>, &pack_bf16<&pack_nhwc_bf16_filter>,
                  &run_bf16<&kernels::nhwc_bf16_conv2d>}};
    /// The kernels of an op with the attribute round_to_bf16: those that round come first.
    static constexpr auto with_rounding = [] {
        std::array<KernelDef, rounding.size() + list.size()> all{};
        std::ranges::copy(list, std::ranges::copy(rounding, all.begin()).out);
        return all;
    }();
};

/// Everything a loop needs to know, in canonical orders: images n c h w, filters o i h w.
struct ConvGeometry {
    const Conv2dAttrs& attrs;
    Axes in, filter, out;

    ConvGeometry(const TensorArgs& args, const Conv2dAttrs& a)
        : attrs(a),
          in(args.in[0].shape, image_axes(a.input_layout)),
          filter(args.in[1].shape, filter_axes(a.filter_layout)),
          out(args.out[0].shape, image_axes(a.layout_of_output())) {}
    std::int64_t outputs_per_group() const { return out.size[1] / attrs.groups; }
    /// Input row or column (axis 0 or 1) under filter element k when the window is at `at`.
    std::int64_t source(int axis, std::int64_t at, std::int64_t k) const {
        return at * attrs.strides[axis] + k * attrs.dilations[axis] - attrs.padding[2 * axis];
    }
    bool is_inside(int axis, std::int64_t position) const {
        return position >= 0 && position < in.size[2 + axis];
    }
    /// Window positions at which filter column k lies inside the image.
    std::array<std::int64_t, 2> inside(std::int64_t k) const {
        const std::int64_t stride = attrs.strides[1], first = source(1, 0, k);
        const std::int64_t begin = first >= 0 ? 0 : (-first + stride - 1) / stride;
        const std::int64_t end = in.size[3] > first ? (in.size[3] - first + stride - 1) / stride : 0;
        return {begin, std::min(end, out.size[3])};
    }
};

/// Channels first: a row of one output channel at a time, since its pixels are neighbours in memory.
template <class T, class Store>
void convolve_rows(const ConvGeometry& g, const TensorArgs& args, Store store) {
    const auto [batch, outputs, height, width] = g.out.size;
    std::vector<double> sums(static_cast<std::size_t>(width));
    const auto part = args.share.of(batch * outputs * height);
    for (std::int64_t task = part.begin; task < part.end; ++task) {
        const std::int64_t n = task / height / outputs, o = task / height % outputs, y = task % height;
        const std::int64_t first_channel = o / g.outputs_per_group() * g.filter.size[1];
        std::fill(sums.begin(), sums.end(), args.has(2) ? convert<double>(args.in[2].as<T>()[o]) : 0.0);
        for (std::int64_t i = 0; i < g.filter.size[1]; ++i) {
            for (std::int64_t ky = 0; ky < g.filter.size[2]; ++ky) {
                const std::int64_t row = g.source(0, y, ky);
                if (!g.is_inside(0, row)) continue;
                const T* x = args.in[0].as<T>() + n * g.in.stride[0] + (first_channel + i) * g.in.stride[1] +
                             row * g.in.stride[2];
                const T* w = args.in[1].as<T>() + o * g.filter.stride[0] + i * g.filter.stride[1] +
                             ky * g.filter.stride[2];
                for (std::int64_t kx = 0; kx < g.filter.size[3]; ++kx) {
                    const double weight = convert<double>(w[kx * g.filter.stride[3]]);
                    const auto [begin, end] = g.inside(kx);
                    const std::int64_t step = g.attrs.strides[1], shift = g.source(1, 0, kx);
                    for (std::int64_t p = begin; p < end; ++p)
                        sums[p] += weight * convert<double>(x[p * step + shift]);
                }
            }
        }
        for (std::int64_t p = 0; p < width; ++p) store(task * width + p, sums[p]);
    }
}

/// Channels last: all output channels of a pixel at a time.
template <class T, class Store>
void convolve_pixels(const ConvGeometry& g, const TensorArgs& args, Store store) {
    const auto [batch, outputs, height, width] = g.out.size;
    const std::int64_t per_group = g.outputs_per_group();
    std::vector<double> sums(static_cast<std::size_t>(outputs));
    const auto part = args.share.of(batch * height * width);
    for (std::int64_t pixel = part.begin; pixel < part.end; ++pixel) {
        const std::int64_t n = pixel / width / height, y = pixel / width % height, x = pixel % width;
        for (std::int64_t o = 0; o < outputs; ++o)
            sums[o] = args.has(2) ? convert<double>(args.in[2].as<T>()[o]) : 0.0;
        for (std::int64_t k = 0; k < g.filter.size[2] * g.filter.size[3]; ++k) {
            const std::int64_t ky = k / g.filter.size[3], kx = k % g.filter.size[3];
            const std::int64_t row = g.source(0, y, ky), column = g.source(1, x, kx);
            if (!g.is_inside(0, row) || !g.is_inside(1, column)) continue;
            const T* source =
                args.in[0].as<T>() + n * g.in.stride[0] + row * g.in.stride[2] + column * g.in.stride[3];
            const T* w = args.in[1].as<T>() + ky * g.filter.stride[2] + kx * g.filter.stride[3];
            for (std::int64_t c = 0; c < g.in.size[1]; ++c) {
                const double value = convert<double>(source[c]);
                const std::int64_t group = c / g.filter.size[1];
                const T* line = w + c % g.filter.size[1] * g.filter.stride[1];
                for (std::int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
                    sums[o] += value * convert<double>(line[o * g.filter.stride[0]]);
            }
        }
        for (std::int64_t o = 0; o < outputs; ++o) store(pixel * outputs + o, sums[o]);
    }
}

/// Sizes and steps as kernels want them: Conv2dArgs, Int8Conv2dArgs.
template <class Args>
Args conv_shape_args(const Axes& in, const Axes& filter, const Axes& out, const Conv2dAttrs& a) {
    const auto n = [](std::int64_t v) { return static_cast<std::size_t>(v); };
    Args args;
    args.batch = n(in.size[0]), args.in_channels = n(in.size[1]);
    args.in_h = n(in.size[2]), args.in_w = n(in.size[3]);
    args.out_channels = n(out.size[1]), args.out_h = n(out.size[2]), args.out_w = n(out.size[3]);
    args.groups = n(a.groups), args.kernel_h = n(filter.size[2]), args.kernel_w = n(filter.size[3]);
    args.stride_h = n(a.strides[0]), args.stride_w = n(a.strides[1]);
    args.dilation_h = n(a.dilations[0]), args.dilation_w = n(a.dilations[1]);
    args.pad_top = static_cast<std::ptrdiff_t>(a.padding[0]);
    args.pad_left = static_cast<std::ptrdiff_t>(a.padding[2]);
    return args;
}

/// Computes this thread's share of the output in double, biases included: store(i, sum) for each element i.
template <class T, class Store>
void reference_conv2d(const TensorArgs& args, const Conv2dAttrs& a, Store store) {
    const ConvGeometry g(args, a);
    if (a.input_layout == ImageLayout::nhwc) return convolve_pixels<T>(g, args, store);
    if (a.layout_of_output() == ImageLayout::nchw) return convolve_rows<T>(g, args, store);
    const auto [batch, channels, height, width] = g.out.size;
    const std::int64_t pixels = height * width;
    convolve_rows<T>(g, args, [&](std::int64_t i, double sum) {
        const std::int64_t n = i / pixels / channels, c = i / pixels % channels;
        store((n * pixels + i % pixels) * channels + c, sum);
    });
}

}  // namespace headrace::ops
