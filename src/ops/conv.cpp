/// Two-dimensional convolution.
#include <array>

#include "kernels/conv2d_f32.h"
#include "ops/image.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// Order of a filter's dimensions: output channels o, input channels of one group i, height h, width w.
enum class FilterLayout : std::uint8_t { oihw, hwio, ohwi, ihwo };
constexpr auto enum_names(FilterLayout) {
    return std::array<std::string_view, 4>{"oihw", "hwio", "ohwi", "ihwo"};
}

/// Which dimension of the filter is o, i, h and w.
constexpr std::array<int, 4> positions(FilterLayout layout) {
    switch (layout) {
        case FilterLayout::oihw: return {0, 1, 2, 3};
        case FilterLayout::hwio: return {3, 2, 0, 1};
        case FilterLayout::ohwi: return {0, 3, 1, 2};
        case FilterLayout::ihwo: return {3, 0, 1, 2};
    }
    return {};
}

struct Conv2d {
    static constexpr std::string_view name = "conv2d",
                                      summary = "2-D convolution (cross-correlation) of images";
    static constexpr std::array operands{
        OperandRule{
            .name = "input", .dtypes = kFloats, .min_rank = 4, .max_rank = 4, .title = "Conv2d input"},
        OperandRule{.name = "filter",
                    .dtypes = kFloats,
                    .same_dtype_as = 0,
                    .min_rank = 4,
                    .max_rank = 4,
                    .title = "Conv2d filter"},
        OperandRule{.name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};
    static constexpr LayoutRule layout = LayoutRule::channels;

    struct Attrs {
        std::vector<std::int64_t> padding{0, 0, 0, 0}, strides{1, 1}, dilations{1, 1};
        std::int64_t groups = 1;
        ImageLayout input_layout = ImageLayout::nchw;
        FilterLayout filter_layout = FilterLayout::oihw;
        static void fields(auto&& f) {
            f("padding", &Attrs::padding, "zeros above, below, left and right of the image");
            f("strides", &Attrs::strides, "vertical and horizontal step of the window");
            f("dilations", &Attrs::dilations, "vertical and horizontal distance of the filter's elements");
            f("groups", &Attrs::groups,
              "input and output channels are split in so many independent convolutions");
            f("input_layout", &Attrs::input_layout, "order of input's and output's dimensions");
            f("filter_layout", &Attrs::filter_layout, "order of the filter's dimensions");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_values("padding", a.padding, 4, 0));
        HR_TRY(check_values("strides", a.strides, 2, 1));
        HR_TRY(check_values("dilations", a.dilations, 2, 1));
        for (const Dim& d : in[1].shape)
            if (d.is_symbolic()) return invalid("Conv2d filter's extents {} must be known", str(in[1].shape));
        const auto image = image_axes(a.input_layout);
        const auto filter = positions(a.filter_layout);
        const Shape& f = in[1].shape;
        const Dim &channels = in[0].shape[image[1]], &outputs = f[filter[0]];
        HR_TRY(check_groups(channels, f[filter[1]].size(), outputs, a.groups));
        if (in.has(2) && in[2].shape != Shape{outputs})
            return invalid("bias has shape {} but the filter has {} output channels", str(in[2].shape),
                           outputs.str());

        Shape out = in[0].shape;
        out[image[1]] = outputs;
        for (int i : {0, 1}) {
            Dim& extent = out[image[2 + i]];
            const Window window{f[filter[2 + i]].size(), a.strides[i], a.dilations[i], a.padding[2 * i],
                                a.padding[2 * i + 1]};
            HR_ASSIGN(extent, window_output(i ? "Conv2d width" : "Conv2d height", extent, window));
        }
        return Types{{in[0].dtype, std::move(out)}};
    }

    static Status check_groups(const Dim& channels, std::int64_t filter_inputs, const Dim& outputs,
                               std::int64_t groups) {
        if (groups < 1) return invalid("groups is {} but must be at least 1", groups);
        if (channels.is_symbolic()) return invalid("Conv2d input channels {} must be known", channels.str());
        if (channels.size() % groups)
            return invalid("Conv2d input channels {} must be divisible by groups {}", channels.size(),
                           groups);
        if (channels.size() / groups != filter_inputs)
            return invalid("Conv2d filter has {} input channels but {} input channels in {} groups need {}",
                           filter_inputs, channels.size(), groups, channels.size() / groups);
        if (outputs.size() % groups)
            return invalid("Conv2d output channels {} must be divisible by groups {}", outputs.size(),
                           groups);
        return success();
    }

    /// Everything a loop needs to know, in canonical orders: images n c h w, filters o i h w.
    struct Geometry {
        const Attrs& attrs;
        Axes in, filter, out;

        Geometry(const TensorArgs& args, const Attrs& a)
            : attrs(a),
              in(args.in[0].shape, image_axes(a.input_layout)),
              filter(args.in[1].shape, positions(a.filter_layout)),
              out(args.out[0].shape, image_axes(a.input_layout)) {}
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

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Geometry g(args, a);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            if (a.input_layout == ImageLayout::nchw)
                convolve_rows<T>(g, args);
            else
                convolve_pixels<T>(g, args);
        });
    }

    /// Channels first: a row of one output channel at a time, since its pixels are neighbours in memory.
    template <class T>
    static void convolve_rows(const Geometry& g, const TensorArgs& args) {
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
                    const T* x = args.in[0].as<T>() + n * g.in.stride[0] +
                                 (first_channel + i) * g.in.stride[1] + row * g.in.stride[2];
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
            T* out = args.out[0].as<T>() + task * width;
            for (std::int64_t p = 0; p < width; ++p) out[p] = convert<T>(sums[p]);
        }
    }

    /// Channels last: all output channels of a pixel at a time.
    template <class T>
    static void convolve_pixels(const Geometry& g, const TensorArgs& args) {
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
            T* out = args.out[0].as<T>() + pixel * outputs;
            for (std::int64_t o = 0; o < outputs; ++o) out[o] = convert<T>(sums[o]);
        }
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        // ggml's CPU convolution gathers at least one patch and its results in a fixed work area.
        constexpr std::int64_t kWorkArea = 16 * 1024 * 1024 / sizeof(float);
        const Axes filter(in[1].sizes(), positions(a.filter_layout));
        const auto [outputs, inputs, height, width] = filter.size;
        if (!is_depthwise(filter, a)) {
            if (a.groups != 1) return unsupported("{} groups of {} channels", a.groups, inputs);
            if (inputs * height * width + outputs > kWorkArea)
                return unsupported("a filter of {}", str(in[1].shape));
        }
        return works_through_f32(in[0].dtype);
    }
    static bool is_depthwise(const Axes& filter, const Attrs& a) {
        return a.groups > 1 && filter.size[1] == 1 && filter.size[0] == a.groups;
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const TensorType out = infer(in, a).value()[0];
        const bool nhwc = a.input_layout == ImageLayout::nhwc;
        const bool depthwise = is_depthwise(Axes(in[1].sizes(), positions(a.filter_layout)), a);
        ggml_tensor* image = to_f32(e, x[0], in[0].dtype);
        if (nhwc) image = e.contiguous(e.permute(image, image_axes(ImageLayout::nhwc)));
        ggml_tensor* filter = to_f32(e, x[1], in[1].dtype);
        if (a.filter_layout != FilterLayout::oihw)
            filter = e.contiguous(e.permute(filter, positions(a.filter_layout)));

        std::array padding{a.padding[0], a.padding[2]};
        if (a.padding[1] != padding[0] || a.padding[3] != padding[1]) {  // ggml pads both sides alike
            image = e.pad_zero(image, std::array<std::int64_t, 4>{0, 0, a.padding[0], a.padding[2]},
                               std::array<std::int64_t, 4>{0, 0, a.padding[1], a.padding[3]});
            padding = {0, 0};
        }
        ggml_tensor* y = e.conv_2d(image, filter, a.strides, padding, a.dilations, depthwise);
        if (in.has(2)) {
            const std::array<std::int64_t, 3> per_channel{in[2].shape[0].size(), 1, 1};
            y = e.binary(Binary::add, y, e.reshape(to_f32(e, x[2], in[2].dtype), per_channel));
        }
        if (nhwc) y = e.contiguous(e.permute(y, std::array{0, 2, 3, 1}));
        return {from_f32(e, y, out)};
    }

    static const Attrs& cast(const void* attrs) { return headrace::detail::attrs_ref<Attrs>(attrs); }
    static bool plain_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return in[0].dtype == DType::f32 && cast(attrs).input_layout == ImageLayout::nchw &&
               cast(attrs).filter_layout == FilterLayout::oihw;
    }
    /// Constant filters in another layout are packed into oihw.
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return in[0].dtype == DType::f32 && cast(attrs).input_layout == ImageLayout::nchw && is_constant[1];
    }
    static std::size_t packed_bytes(const Operands& in, const void*) { return in[1].bytes(); }
    static void pack(const ConstView& filter, const void* attrs, std::byte* packed) {
        const Axes axes(filter.shape, positions(cast(attrs).filter_layout));
        const std::vector<std::int64_t> strides(axes.stride.begin(), axes.stride.end());
        strided_copy(filter.data, 0, axes.size, strides, packed, sizeof(float), {});
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Geometry g(args, cast(attrs));
        const auto n = [](std::int64_t v) { return static_cast<std::size_t>(v); };
        kernels::conv2d_f32({.batch = n(g.in.size[0]),
                             .in_channels = n(g.in.size[1]),
                             .in_h = n(g.in.size[2]),
                             .in_w = n(g.in.size[3]),
                             .out_channels = n(g.out.size[1]),
                             .out_h = n(g.out.size[2]),
                             .out_w = n(g.out.size[3]),
                             .groups = n(g.attrs.groups),
                             .kernel_h = n(g.filter.size[2]),
                             .kernel_w = n(g.filter.size[3]),
                             .stride_h = n(g.attrs.strides[0]),
                             .stride_w = n(g.attrs.strides[1]),
                             .dilation_h = n(g.attrs.dilations[0]),
                             .dilation_w = n(g.attrs.dilations[1]),
                             .pad_top = g.attrs.padding[0],
                             .pad_left = g.attrs.padding[2],
                             .x = args.in[0].as<float>(),
                             .w = args.in[1].as<float>(),
                             .bias = args.has(2) ? args.in[2].as<float>() : nullptr,
                             .y = args.out[0].as<float>()},
                            args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "conv2d_f32", .applies = &plain_applies, .run = &run_kernel},
        KernelDef{"conv2d_f32_packed", &packed_applies, 1, &packed_bytes, &pack, &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        Cost cost = elementwise_cost(in, out, 0);
        const auto [outputs, inputs, height, width] = Axes(in[1].sizes(), positions(a.filter_layout)).size;
        cost.flops =
            2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(inputs * height * width);
        return cost;
    }

    static std::vector<Sample> samples();
};

std::vector<Sample> Conv2d::samples() {
    using List = std::vector<std::int64_t>;
    std::vector<Sample> list;
    const auto add = [&](DType t, Shape input, Shape filter, std::int64_t bias, NamedAttrs attrs,
                         bool constant = true) {
        list.push_back({{{.type = {t, std::move(input)}},
                         {.type = {t, std::move(filter)}, .constant = constant},
                         {.type = {t, {bias}}, .constant = constant, .absent = bias == 0}},
                        std::move(attrs),
                        sample_tolerance(t)});
    };
    const NamedAttrs windows{
        {"padding", List{1, 0, 2, 1}}, {"strides", List{2, 1}}, {"dilations", List{1, 2}}};
    const auto with = [](NamedAttrs attrs, const char* key, AttrValue value) {
        attrs.emplace_back(key, std::move(value));
        return attrs;
    };
    add(DType::f32, {1, 1, 5, 5}, {1, 1, 3, 3}, 0, {});
    add(DType::f32, {2, 3, 9, 8}, {5, 3, 3, 3}, 5, {{"padding", List{1, 1, 1, 1}}}, false);
    add(DType::f32, {2, 3, 9, 8}, {16, 3, 3, 2}, 16, windows);
    add(DType::f32, {1, 8, 6, 6}, {24, 8, 1, 1}, 24, {});
    add(DType::f32, {1, 1, 6, 1}, {3, 1, 1, 1}, 1,
        {{"input_layout", std::string("nhwc")},
         {"filter_layout", std::string("hwio")},
         {"padding", List{1, 1, 1, 1}}});
    add(DType::f32, {1, 6, 6, 7}, {6, 1, 3, 3}, 6, with(windows, "groups", std::int64_t{6}));
    add(DType::f32, {1, 4, 6, 7}, {6, 2, 3, 3}, 6, with(windows, "groups", std::int64_t{2}));
    for (DType t : {DType::f32, DType::f16, DType::f64}) {
        for (const auto& [layout, shape] : {std::pair{"oihw", Shape{4, 3, 2, 3}},
                                            {"hwio", {2, 3, 3, 4}},
                                            {"ohwi", {4, 2, 3, 3}},
                                            {"ihwo", {3, 2, 3, 4}}}) {
            const NamedAttrs attrs = with(windows, "filter_layout", std::string(layout));
            add(t, {2, 3, 6, 7}, shape, 4, attrs);
            add(t, {2, 6, 7, 3}, shape, 4, with(attrs, "input_layout", std::string("nhwc")));
        }
        add(t, {1, 6, 7, 4}, {4, 3, 3, 1}, 4,
            {{"groups", std::int64_t{4}},
             {"input_layout", std::string("nhwc")},
             {"filter_layout", std::string("ohwi")}});
    }
    return list;
}

}  // namespace

std::span<const OpDef> conv_ops() { return OpList<Conv2d>::defs(); }

}  // namespace headrace::ops
