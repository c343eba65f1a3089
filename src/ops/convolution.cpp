#include "ops/convolution.h"

#include "ir/one_pass_reader.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "ops/infer.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

Axes filter_of(const Operands& in, const Conv2dAttrs& a) {
    return Axes(in[1].sizes(), filter_axes(a.filter_layout));
}

Status check_groups(const Operands& in, const Dim& channels, const Dim& filter_inputs, const Dim& outputs,
                    std::int64_t groups) {
    if (groups < 1) return invalid("groups is {} but must be at least 1", groups);
    if (!channels.is_symbolic() && channels.size() % groups)
        return invalid("Conv2d input channels {} must be divisible by groups {}", channels.size(), groups);
    if (!channels.is_symbolic() && !same_extent(in, filter_inputs, channels.size() / groups))
        return invalid("Conv2d filter has {} input channels but {} input channels in {} groups need {}",
                       filter_inputs.str(), channels.size(), groups, channels.size() / groups);
    if (channels.is_symbolic() && !same_extent(in, channels, product({filter_inputs, groups})))
        return invalid("Conv2d filter has {} input channels in each of {} groups but input has {}",
                       filter_inputs.str(), groups, channels.str());
    if (!divides(in, groups, outputs))
        return invalid("Conv2d output channels {} must be divisible by groups {}", outputs.str(), groups);
    return success();
}

bool is_depthwise(const Axes& filter, const Conv2dAttrs& a) {
    return a.groups > 1 && filter.size[1] == 1 && filter.size[0] == a.groups;
}

}  // namespace

Result<TensorType> infer_conv2d(const Operands& in, const Conv2dAttrs& a) {
    HR_TRY(check_values("padding", a.padding, 4, 0));
    HR_TRY(check_values("strides", a.strides, 2, 1));
    HR_TRY(check_values("dilations", a.dilations, 2, 1));
    const auto image = image_axes(a.input_layout);
    const auto filter = filter_axes(a.filter_layout);
    const Shape& f = in[1].shape;
    const Dim &channels = in[0].shape[image[1]], &outputs = f[filter[0]];
    HR_TRY(check_groups(in, channels, f[filter[1]], outputs, a.groups));
    if (in.has(2) && !same_shape(in, in[2].shape, {outputs}))
        return invalid("bias has shape {} but the filter has {} output channels", str(in[2].shape),
                       outputs.str());

    if (a.input_layout == ImageLayout::nhwc && a.layout_of_output() == ImageLayout::nchw)
        return invalid("output_layout nchw needs input_layout nchw");
    const auto output = image_axes(a.layout_of_output());
    TensorType out = in[0];
    for (std::size_t i : {0, 2, 3}) out.shape[output[i]] = in[0].shape[image[i]];
    out.shape[output[1]] = outputs;
    for (int i : {0, 1}) {
        Dim& extent = out.shape[output[2 + i]];
        const Window window{f[filter[2 + i]], a.strides[i], a.dilations[i], a.padding[2 * i],
                            a.padding[2 * i + 1]};
        HR_ASSIGN(extent, window_output(i ? "Conv2d width" : "Conv2d height", extent, window));
    }
    return out;
}

Cost conv2d_cost(const Operands& in, std::span<const TensorType> out, const Conv2dAttrs& a) {
    Cost cost = elementwise_cost(in, out, 0);
    const auto [outputs, inputs, height, width] = filter_of(in, a).size;
    cost.flops = 2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(inputs * height * width);
    return cost;
}

Status conv2d_lowerable(const Operands& in, const Conv2dAttrs& a) {
    // ggml's CPU convolution gathers at least one patch and its results in a fixed work area.
    constexpr std::int64_t kWorkArea = 16 * 1024 * 1024 / sizeof(float);
    const Axes filter = filter_of(in, a);
    const auto [outputs, inputs, height, width] = filter.size;
    if (!is_depthwise(filter, a)) {
        if (a.groups > kMostGroups) return unsupported("{} groups of {} channels", a.groups, inputs);
        if (inputs * height * width + outputs > kWorkArea)
            return unsupported("a filter of {}", str(in[1].shape));
    }
    return works_through_f32(in[0].dtype);
}

ggml_tensor* by_groups(Emit& e, ggml_tensor* image, ggml_tensor* filter, std::int64_t groups,
                       const std::function<ggml_tensor*(ggml_tensor*, ggml_tensor*)>& convolve) {
    const auto part = [&](ggml_tensor* x, std::size_t axis, std::int64_t group) {
        std::array<std::int64_t, 4> start{}, size{};
        for (int i = 0; i < 4; ++i) size[i] = Emit::extent(x, 3 - i);
        size[axis] /= groups;
        start[axis] = group * size[axis];
        return e.copy(e.slice(x, start, size));  // devices bind images and filters from their first byte on
    };
    ggml_tensor* y = nullptr;
    for (std::int64_t group = 0; group < groups; ++group) {
        ggml_tensor* some = convolve(part(image, 1, group), part(filter, 0, group));
        y = y ? e.concat(y, some, 1, 4) : some;
    }
    return y;
}

ggml_tensor* lower_conv2d(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                          const Conv2dAttrs& a) {
    const bool nhwc = a.input_layout == ImageLayout::nhwc;
    ggml_tensor* image = to_f32(e, x[0], in[0].dtype);
    if (nhwc) image = e.contiguous(e.permute(image, image_axes(ImageLayout::nhwc)));
    ggml_tensor* filter = to_f32(e, x[1], in[1].dtype);
    if (a.filter_layout != FilterLayout::oihw)
        filter = e.contiguous(e.permute(filter, filter_axes(a.filter_layout)));

    std::array padding{a.padding[0], a.padding[2]};
    if (a.padding[1] != padding[0] || a.padding[3] != padding[1]) {  // ggml pads both sides alike
        image = e.pad_zero(image, std::array<std::int64_t, 4>{0, 0, a.padding[0], a.padding[2]},
                           std::array<std::int64_t, 4>{0, 0, a.padding[1], a.padding[3]});
        padding = {0, 0};
    }
    const bool depthwise = is_depthwise(filter_of(in, a), a);
    const auto convolve = [&](ggml_tensor* planes, ggml_tensor* weights) {
        return e.conv_2d(planes, weights, a.strides, padding, a.dilations, depthwise);
    };
    ggml_tensor* y = depthwise || a.groups == 1 ? convolve(image, filter)
                                                : by_groups(e, image, filter, a.groups, convolve);
    if (in.has(2)) {
        const std::array<std::int64_t, 3> per_channel{in[2].shape[0].size(), 1, 1};
        y = e.binary(Binary::add, y, e.reshape(to_f32(e, x[2], in[2].dtype), per_channel));
    }
    const bool is_nhwc = a.layout_of_output() == ImageLayout::nhwc;
    return is_nhwc ? e.contiguous(e.permute(y, std::array{0, 2, 3, 1})) : y;
}

bool conv2d_kernel_applies(const Operands& in, const Conv2dAttrs& a) {
    return ordered_conv2d_kernel_applies(in, true, a) && a.filter_layout == FilterLayout::oihw;
}

namespace {

bool reads_channels_first(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    return in[0].dtype == DType::f32 && a.input_layout == ImageLayout::nchw && filter_is_constant;
}

}  // namespace

bool ordered_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    return reads_channels_first(in, filter_is_constant, a) && a.layout_of_output() == ImageLayout::nchw;
}

namespace {

/// Copies a filter so that its dimensions come in an order, given as positions in o i h w.
void copy_filter(const ConstView& filter, const Conv2dAttrs& a, const std::array<std::size_t, 4>& order,
                 std::byte* to) {
    const Axes axes(filter.shape, filter_axes(a.filter_layout));
    std::array<std::int64_t, 4> size{};
    std::vector<std::int64_t> strides(4);
    for (std::size_t i = 0; i < 4; ++i) size[i] = axes.size[order[i]], strides[i] = axes.stride[order[i]];
    strided_copy(filter.data, 0, size, strides, to, sizeof(float), {});
}

/// A filter as the rows of a matrix: output channels, and what each of them sums up.
struct FilterSizes {
    std::size_t out_channels, groups, depth;

    FilterSizes(const Sizes& shape, const Conv2dAttrs& a) : groups(static_cast<std::size_t>(a.groups)) {
        const Axes axes(shape, filter_axes(a.filter_layout));
        out_channels = static_cast<std::size_t>(axes.size[0]);
        depth = static_cast<std::size_t>(axes.size[1] * axes.size[2] * axes.size[3]);
    }
};

/// Some output channels at a time, whole groups or whole panels of one, where the filter begins with them.
void pack_panels(const ConstView& filter, const Conv2dAttrs& a, const std::array<std::size_t, 4>& order,
                 std::byte* packed) {
    const FilterSizes sizes(filter.shape, a);
    const bool begins_with_outputs = filter_axes(a.filter_layout)[0] == 0;
    const std::size_t all = sizes.out_channels, group = all / sizes.groups;
    const std::size_t least = sizes.groups == 1 ? kernels::kFilterPanel : group;
    const std::size_t step =
        begins_with_outputs ? std::min(all, OnePassReader::rows_at_once(sizes.depth * sizeof(float), least))
                            : all;
    std::vector<float> ordered(step * sizes.depth);
    std::vector<std::int64_t> shape(filter.shape.begin(), filter.shape.end());
    OnePassReader from(filter);
    auto* to = reinterpret_cast<float*>(packed);
    for (std::size_t first = 0; first < all; first += step) {
        const std::size_t count = std::min(step, all - first), groups = sizes.groups == 1 ? 1 : count / group;
        if (begins_with_outputs) shape[0] = static_cast<std::int64_t>(count);
        const auto* part = reinterpret_cast<const std::byte*>(from.next<float>(count * sizes.depth));
        copy_filter({filter.dtype, shape, part}, a, order, reinterpret_cast<std::byte*>(ordered.data()));
        kernels::pack_filters(ordered.data(), count, groups, sizes.depth, to);
        to += kernels::packed_filters_size(count, groups, sizes.depth);
    }
}

}  // namespace

void order_conv2d_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* ordered) {
    copy_filter(filter, a, {0, 1, 2, 3}, ordered);
}

bool packed_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    if (!reads_channels_first(in, filter_is_constant, a)) return false;
    // The kernel copies what lies between a filter's elements, too.
    if (a.dilations[0] > 4 || a.dilations[1] > 4) return false;
    const FilterSizes sizes(in[1].sizes(), a);
    return sizes.depth > 0 && kernels::has_packed_conv2d(sizes.out_channels, sizes.groups);
}

std::size_t packed_conv2d_filter_bytes(const Operands& in, const Conv2dAttrs& a) {
    const FilterSizes sizes(in[1].sizes(), a);
    return kernels::packed_filters_size(sizes.out_channels, sizes.groups, sizes.depth) * sizeof(float);
}

void pack_conv2d_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    pack_panels(filter, a, {0, 1, 2, 3}, packed);
}

bool nhwc_conv2d_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    if (in[0].dtype != DType::f32 || a.input_layout != ImageLayout::nhwc || !filter_is_constant) return false;
    const FilterSizes sizes(in[1].sizes(), a);
    return sizes.depth > 0 && kernels::has_packed_conv2d(sizes.out_channels, sizes.groups);
}

bool nhwc_depthwise_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    if (in[0].dtype != DType::f32 || a.input_layout != ImageLayout::nhwc || !filter_is_constant) return false;
    const Axes filter = filter_of(in, a);
    return is_depthwise(filter, a) && filter.size[2] * filter.size[3] > 0;
}

void pack_nhwc_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    pack_panels(filter, a, {0, 2, 3, 1}, packed);
}

void order_nhwc_depthwise_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* ordered) {
    copy_filter(filter, a, {2, 3, 1, 0}, ordered);
}

bool nhwc_winograd_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    if (!nhwc_conv2d_kernel_applies(in, filter_is_constant, a)) return false;
    const auto image = image_axes(a.input_layout);
    return kernels::has_nhwc_winograd_conv2d(conv_shape_args<kernels::Conv2dArgs>(
        Axes(in[0].sizes(), image), filter_of(in, a), Axes(infer_conv2d(in, a).value().sizes(), image), a));
}

std::size_t nhwc_winograd_filter_bytes(const Operands& in, const Conv2dAttrs& a) {
    const Axes filter = filter_of(in, a);
    return kernels::packed_winograd_filters_size(static_cast<std::size_t>(filter.size[1]),
                                                 static_cast<std::size_t>(filter.size[0]),
                                                 static_cast<std::size_t>(a.groups)) *
           sizeof(float);
}

namespace {

template <class T, auto Pack>
void pack_transformed(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    const Axes axes(filter.shape, filter_axes(a.filter_layout));
    std::vector<float> ordered(static_cast<std::size_t>(filter.elements()));
    copy_filter(filter, a, {2, 3, 1, 0}, reinterpret_cast<std::byte*>(ordered.data()));
    Pack(ordered.data(), static_cast<std::size_t>(axes.size[1]), static_cast<std::size_t>(axes.size[0]),
         static_cast<std::size_t>(a.groups), reinterpret_cast<T*>(packed));
}

}  // namespace

void pack_nhwc_winograd_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    pack_transformed<float, &kernels::pack_winograd_filters>(filter, a, packed);
}

bool nhwc_bf16_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    return a.round_to_bf16 && nhwc_conv2d_kernel_applies(in, filter_is_constant, a) &&
           kernels::has_bf16_gemm();
}

bool nhwc_bf16_winograd_kernel_applies(const Operands& in, bool filter_is_constant, const Conv2dAttrs& a) {
    return nhwc_bf16_kernel_applies(in, filter_is_constant, a) &&
           nhwc_winograd_kernel_applies(in, filter_is_constant, a);
}

std::size_t nhwc_bf16_filter_bytes(const Operands& in, const Conv2dAttrs& a) {
    const FilterSizes sizes(in[1].sizes(), a);
    return kernels::packed_bf16_filter_bytes(sizes.out_channels, sizes.groups, sizes.depth);
}

std::size_t nhwc_bf16_winograd_filter_bytes(const Operands& in, const Conv2dAttrs& a) {
    const Axes filter = filter_of(in, a);
    return kernels::packed_bf16_winograd_filter_bytes(static_cast<std::size_t>(filter.size[1]),
                                                      static_cast<std::size_t>(filter.size[0]),
                                                      static_cast<std::size_t>(a.groups));
}

void pack_nhwc_bf16_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    const FilterSizes sizes(filter.shape, a);
    std::vector<float> ordered(sizes.out_channels * sizes.depth);
    copy_filter(filter, a, {0, 2, 3, 1}, reinterpret_cast<std::byte*>(ordered.data()));
    kernels::pack_bf16_filters(ordered.data(), sizes.out_channels, sizes.groups, sizes.depth,
                               reinterpret_cast<std::uint16_t*>(packed));
}

void pack_nhwc_bf16_winograd_filter(const ConstView& filter, const Conv2dAttrs& a, std::byte* packed) {
    pack_transformed<std::uint16_t, &kernels::pack_bf16_winograd_filters>(filter, a, packed);
}

kernels::Conv2dArgs conv2d_args(const TensorArgs& args, const Conv2dAttrs& a) {
    const ConvGeometry g(args, a);
    kernels::Conv2dArgs made = conv_shape_args<kernels::Conv2dArgs>(g.in, g.filter, g.out, a);
    made.x = args.in[0].as<float>();
    made.w = args.in[1].as<float>();
    made.bias = args.has(2) ? args.in[2].as<float>() : nullptr;
    made.y = args.out[0].as<float>();
    made.channels_last_y = a.layout_of_output() == ImageLayout::nhwc;
    return made;
}

}  // namespace headrace::ops
