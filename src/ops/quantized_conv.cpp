/// Two-dimensional convolution of integers that stand for real ones.
#include "kernels/int8/byte_quads.h"
#include "kernels/int8/int8_conv2d.h"
#include "kernels/int8/int8_winograd_conv2d.h"
#include "ops/convolution.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantized.h"

namespace headrace::ops {
namespace {

struct QuantizedConv2dAttrs : Conv2dAttrs, Int8Limits {
    static void fields(auto&& f) {
        Conv2dAttrs::fields(f);
        Int8Limits::fields(f);
    }
};

/// A filter's sizes as the kernels count them.
struct Int8Filter {
    Axes axes;
    std::size_t channels, groups, depth;

    Int8Filter(Sizes shape, const Conv2dAttrs& a)
        : axes(shape, filter_axes(a.filter_layout)),
          channels(static_cast<std::size_t>(axes.size[0])),
          groups(static_cast<std::size_t>(a.groups)),
          depth(static_cast<std::size_t>(axes.size[1] * axes.size[2] * axes.size[3])) {}

    bool is_depthwise() const { return groups > 1 && channels == groups && axes.size[1] == 1; }
    std::size_t height() const { return static_cast<std::size_t>(axes.size[2]); }
    std::size_t width() const { return static_cast<std::size_t>(axes.size[3]); }

    /// The elements in the order o h w i.
    template <class T>
    std::vector<T> ordered(const ConstView& filter) const {
        constexpr std::array<std::size_t, 4> kOrder{0, 2, 3, 1};
        std::vector<std::int64_t> size, strides;
        for (std::size_t i : kOrder) size.push_back(axes.size[i]), strides.push_back(axes.stride[i]);
        std::vector<T> elements(static_cast<std::size_t>(filter.elements()));
        strided_copy(filter.data, 0, size, strides, reinterpret_cast<std::byte*>(elements.data()), sizeof(T),
                     {});
        return elements;
    }
};

struct QuantizedConv2d {
    static constexpr std::string_view
        name = "quantized_conv2d",
        summary =
            "conv2d of (input - input_zero_point) and filter, plus bias, times scale, "
            "rounded to even, + zero_point, saturated; input_zero_point around";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kBytes, .min_rank = 4, .max_rank = 4, .title = "Conv2d input"},
        OperandRule{.name = "filter",
                    .dtypes = {DType::i8, DType::i16},
                    .min_rank = 4,
                    .max_rank = 4,
                    .title = "Conv2d filter"},
        kSumBias,
        kSumScale,
        kInputZero,
        kResultZero};
    static constexpr LayoutRule layout = LayoutRule::channels;
    using Attrs = QuantizedConv2dAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(a.check());
        HR_ASSIGN(TensorType out, infer_conv2d(in, a));
        const Dim& channels = in[1].shape[filter_axes(a.filter_layout)[0]];
        if (!same_shape(in, in[3].shape, {channels}))
            return invalid("scale has shape {} but the filter has {} output channels", str(in[3].shape),
                           channels.str());
        out.dtype = in[5].dtype;
        return Types{std::move(out)};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const SumRounder rounder(args, a);
        const std::vector<double> x = cleared(args.in[0], int8_at(args.in[4], 0)), w = cleared(args.in[1], 0);
        const std::array<ConstView, 2> exact{
            ConstView{DType::f64, args.in[0].shape, reinterpret_cast<const std::byte*>(x.data())},
            ConstView{DType::f64, args.in[1].shape, reinterpret_cast<const std::byte*>(w.data())}};
        const Axes out(args.out[0].shape, image_axes(a.layout_of_output()));
        reference_conv2d<double>({exact, args.out, args.share}, a, [&](std::int64_t i, double sum) {
            rounder.store(i, sum, i / out.stride[1] % out.size[1]);
        });
    }

    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    static bool applies(const Operands& in, std::span<const bool> is_constant, const Attrs& a) {
        const Int8Filter filter(in[1].sizes(), a);
        return is_constant[1] && a.input_layout == ImageLayout::nhwc && filter.depth > 0 &&
               filter.channels > 0 && kernels::have_room(filter.depth);
    }
    static bool windows_apply(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return applies(in, is_constant, cast(attrs));
    }
    static bool quads_apply(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return in[1].dtype == DType::i8 && applies(in, is_constant, cast(attrs)) &&
               headrace::kernels::has_byte_quads();
    }
    static std::size_t packed_quads_bytes(const Operands& in, const void* attrs) {
        const Int8Filter f(in[1].sizes(), cast(attrs));
        return headrace::kernels::packed_quads_bytes(f.channels, f.groups, f.depth);
    }
    static void pack_quads(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Int8Filter f(filter.shape, cast(attrs));
        headrace::kernels::pack_quads(f.ordered<std::int8_t>(filter).data(), f.channels, f.groups, f.depth,
                                      packed);
    }
    static bool depthwise_quads_apply(const Operands& in, std::span<const bool> is_constant,
                                      const void* attrs) {
        const Attrs& a = cast(attrs);
        const Int8Filter filter(in[1].sizes(), a);
        return filter.is_depthwise() && quads_apply(in, is_constant, attrs) &&
               headrace::kernels::has_quad_depthwise({.kernel_h = filter.height(),
                                                      .kernel_w = filter.width(),
                                                      .stride_w = static_cast<std::size_t>(a.strides[1]),
                                                      .dilation_w = static_cast<std::size_t>(a.dilations[1]),
                                                      .x = {},
                                                      .result = {}});
    }
    static std::size_t packed_depthwise_quads_bytes(const Operands& in, const void* attrs) {
        return headrace::kernels::packed_depthwise_quads_bytes(
            Int8Filter(in[1].sizes(), cast(attrs)).channels);
    }
    static void pack_depthwise_quads(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Int8Filter f(filter.shape, cast(attrs));
        headrace::kernels::pack_depthwise_quads(f.ordered<std::int8_t>(filter).data(), f.channels, packed);
    }
    static bool depthwise_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return applies(in, is_constant, cast(attrs)) && Int8Filter(in[1].sizes(), cast(attrs)).is_depthwise();
    }
    static bool winograd_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        const Attrs& a = cast(attrs);
        if (!applies(in, is_constant, a)) return false;
        const auto out = infer_conv2d(in, a);  // fails where a pass asks before it turns the image
        if (!out.ok()) return false;
        const auto image = image_axes(a.input_layout);
        const Axes x(in[0].sizes(), image), y(out.value().sizes(), image);
        return kernels::has_int8_winograd_conv2d(
            conv_shape_args<kernels::Int8Conv2dArgs>(x, Int8Filter(in[1].sizes(), a).axes, y, a));
    }
    static std::size_t packed_winograd_bytes(const Operands& in, const void* attrs) {
        const Int8Filter f(in[1].sizes(), cast(attrs));
        return kernels::packed_int8_winograd_bytes(static_cast<std::size_t>(f.axes.size[1]), f.channels);
    }
    static void pack_winograd(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Int8Filter f(filter.shape, cast(attrs));
        visit_weights(filter, [&]<class T>() {
            kernels::pack_int8_winograd(f.ordered<T>(filter).data(), static_cast<std::size_t>(f.axes.size[1]),
                                        f.channels, packed);
        });
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        const Int8Filter f(in[1].sizes(), cast(attrs));
        return kernels::packed_pairs_bytes(f.channels, f.groups, f.depth, sizeof(std::int16_t));
    }
    static void pack(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Int8Filter f(filter.shape, cast(attrs));
        visit_weights(filter, [&]<class T>() {
            kernels::pack_pairs<std::int16_t>(f.ordered<T>(filter).data(), f.channels, f.groups, f.depth,
                                              packed);
        });
    }
    static std::size_t packed_depthwise_bytes(const Operands& in, const void* attrs) {
        const Int8Filter f(in[1].sizes(), cast(attrs));
        return kernels::packed_depthwise_pairs_bytes(f.channels, f.height(), f.width());
    }
    static void pack_depthwise(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Int8Filter f(filter.shape, cast(attrs));
        visit_weights(filter, [&]<class T>() {
            kernels::pack_depthwise_pairs(f.ordered<T>(filter).data(), f.channels, f.height(), f.width(),
                                          packed);
        });
    }
    template <auto Kernel>
    static void run(const TensorArgs& args, const void* attrs) {
        Kernel(kernel_args(args, cast(attrs)), args.in[1].data, args.share.ith, args.share.nth);
    }
    static kernels::Int8Conv2dArgs kernel_args(const TensorArgs& args, const Attrs& a) {
        const ConvGeometry g(args, a);
        kernels::Int8Conv2dArgs made = conv_shape_args<kernels::Int8Conv2dArgs>(g.in, g.filter, g.out, a);
        made.x = bytes_of(args.in[0]);
        made.x_zero = int8_at(args.in[4], 0);
        made.result = SumRounder::kernel_args(args, a);
        return made;
    }
    static constexpr std::array kernels{
        KernelDef{"quad_depthwise_conv2d", &depthwise_quads_apply, 1, &packed_depthwise_quads_bytes,
                  &pack_depthwise_quads, &run<&headrace::kernels::quad_depthwise_conv2d>},
        KernelDef{"int8_depthwise_conv2d", &depthwise_applies, 1, &packed_depthwise_bytes, &pack_depthwise,
                  &run<&headrace::kernels::int8_depthwise_conv2d>},
        KernelDef{"quad_conv2d", &quads_apply, 1, &packed_quads_bytes, &pack_quads,
                  &run<&headrace::kernels::quad_conv2d>},
        KernelDef{"int8_winograd_conv2d", &winograd_applies, 1, &packed_winograd_bytes, &pack_winograd,
                  &run<&headrace::kernels::int8_winograd_conv2d>},
        KernelDef{"int8_conv2d", &windows_apply, 1, &packed_bytes, &pack,
                  &run<&headrace::kernels::int8_conv2d>}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        return conv2d_cost(in, out, a);
    }

    static std::vector<Sample> samples();
};

std::vector<Sample> QuantizedConv2d::samples() {
    using List = std::vector<std::int64_t>;
    std::vector<Sample> list;
    const auto add = [&](DType input, DType filter, DType result, Shape image, Shape weights,
                         std::int64_t outputs, NamedAttrs attrs, bool has_bias = true) {
        list.push_back(product_sample({input, std::move(image)}, {filter, std::move(weights)}, result,
                                      outputs, std::move(attrs), has_bias));
    };
    const NamedAttrs nhwc{{"input_layout", std::string("nhwc")}, {"filter_layout", std::string("ohwi")}};
    const auto with = [](NamedAttrs attrs, const NamedAttrs& more) {
        attrs.insert(attrs.end(), more.begin(), more.end());
        return attrs;
    };
    add(DType::u8, DType::i8, DType::u8, {1, 7, 5, 6}, {9, 7, 3, 3}, 9, {{"padding", List{1, 1, 1, 1}}});
    for (const DType input : {DType::u8, DType::i8})
        for (const DType filter : {DType::i8, DType::i16})
            for (const DType result : {DType::u8, DType::i8}) {
                add(input, filter, result, {2, 9, 8, 5}, {18, 3, 3, 5}, 18,
                    with(nhwc, {{"padding", List{1, 1, 2, 0}}, {"strides", List{2, 1}}}),
                    filter == DType::i8);
                add(input, filter, result, {1, 9, 8, 20}, {20, 3, 3, 1}, 20,
                    with(nhwc, {{"padding", List{1, 1, 1, 1}}, {"groups", std::int64_t{20}}}),
                    filter == DType::i8);
            }
    add(DType::u8, DType::i8, DType::u8, {1, 4, 5, 64}, {40, 1, 1, 64}, 40,
        with(nhwc, {{"min_value", std::int64_t{3}}, {"max_value", std::int64_t{200}}}));
    add(DType::u8, DType::i8, DType::i8, {1, 6, 7, 12}, {21, 3, 3, 4}, 21,
        with(nhwc, {{"groups", std::int64_t{3}}, {"dilations", List{2, 1}}}));
    add(DType::i8, DType::i8, DType::u8, {1, 9, 9, 6}, {6, 5, 4, 1}, 6,
        with(nhwc, {{"groups", std::int64_t{6}}, {"dilations", List{1, 2}}, {"padding", List{2, 2, 3, 3}}}));
    for (const DType filter : {DType::i8, DType::i16})
        add(DType::u8, filter, DType::u8, {1, 9, 8, 17}, {19, 3, 3, 17}, 19,
            with(nhwc, {{"padding", List{1, 1, 1, 1}}}));
    return list;
}

}  // namespace

std::span<const OpDef> quantized_conv_ops() { return OpList<QuantizedConv2d>::defs(); }

}  // namespace headrace::ops
