/// Two-dimensional transposed convolution.
#include <algorithm>
#include <array>
#include <optional>

#include "ir/expression.h"
#include "kernels/conv/conv_transpose2d_f32.h"
#include "kernels/conv/nhwc_conv_transpose2d_f32.h"
#include "ops/arithmetic.h"
#include "ops/composed.h"
#include "ops/convolution.h"
#include "ops/extents.h"
#include "ops/image.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// Order of a filter's dimensions: input channels i, output channels of one group o, height h, width w.
enum class TransposedFilterLayout : std::uint8_t { iohw, hwoi, ohwi };
constexpr auto enum_names(TransposedFilterLayout) {
    return std::array<std::string_view, 3>{"iohw", "hwoi", "ohwi"};
}

/// Which dimension of the filter is i, o, h and w.
constexpr std::array<int, 4> positions(TransposedFilterLayout layout) {
    switch (layout) {
        case TransposedFilterLayout::iohw: return {0, 1, 2, 3};
        case TransposedFilterLayout::hwoi: return {3, 2, 0, 1};
        case TransposedFilterLayout::ohwi: return {3, 0, 1, 2};
    }
    return {};
}

struct ConvTranspose2d {
    static constexpr std::string_view name = "conv_transpose2d",
                                      summary =
                                          "2-D transposed convolution: every pixel adds a scaled filter";
    static constexpr std::array operands{
        OperandRule{.name = "input",
                    .dtypes = kFloats,
                    .min_rank = 4,
                    .max_rank = 4,
                    .title = "ConvTranspose2d input"},
        OperandRule{.name = "filter",
                    .dtypes = kFloats,
                    .same_dtype_as = 0,
                    .min_rank = 4,
                    .max_rank = 4,
                    .title = "ConvTranspose2d filter"},
        OperandRule{.name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};
    static constexpr LayoutRule layout = LayoutRule::channels;

    using List = std::vector<std::int64_t>;
    struct Attrs {
        List padding{0, 0, 0, 0}, strides{1, 1}, dilations{1, 1}, output_padding{0, 0};
        std::optional<Shape> output_sizes;
        std::int64_t groups = 1;
        ImageLayout input_layout = ImageLayout::nchw;
        TransposedFilterLayout filter_layout = TransposedFilterLayout::iohw;
        static void fields(auto&& f) {
            f("padding", &Attrs::padding,
              "rows and columns cut off above, below, left and right of the output");
            f("strides", &Attrs::strides, "vertical and horizontal distance of neighbouring pixels' filters");
            f("dilations", &Attrs::dilations, "vertical and horizontal distance of the filter's elements");
            f("output_padding", &Attrs::output_padding,
              "rows and columns added below and right; less than the stride");
            f("output_sizes", &Attrs::output_sizes,
              "the output's height and width, in place of output_padding");
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
        HR_TRY(check_values("output_padding", a.output_padding, 2, 0));
        if (a.output_sizes && a.output_sizes->size() != 2)
            return invalid("output_sizes must have 2 values, got {}", str(*a.output_sizes));
        const auto image = image_axes(a.input_layout);
        const auto filter = positions(a.filter_layout);
        const Shape& f = in[1].shape;
        const Dim& channels = in[0].shape[image[1]];
        if (a.groups < 1) return invalid("groups is {} but must be at least 1", a.groups);
        if (!same_extent(in, channels, f[filter[0]]))
            return invalid("ConvTranspose2d filter has {} input channels but input has {}",
                           f[filter[0]].str(), channels.str());
        if (!divides(in, a.groups, f[filter[0]]))
            return invalid("ConvTranspose2d input channels {} must be divisible by groups {}",
                           f[filter[0]].str(), a.groups);
        const Dim outputs = product({f[filter[1]], a.groups});
        if (outputs.is(INT64_MAX))
            return invalid("{} output channels in each of {} groups are too many", f[filter[1]].str(),
                           a.groups);
        if (in.has(2) && !same_shape(in, in[2].shape, {outputs}))
            return invalid("bias has shape {} but there are {} output channels", str(in[2].shape),
                           outputs.str());
        Shape out = in[0].shape;
        out[image[1]] = outputs;
        for (int i : {0, 1}) {
            Dim& extent = out[image[2 + i]];
            HR_ASSIGN(extent, output_extent(in, extent, f[filter[2 + i]], i, a));
        }
        return Types{{in[0].dtype, std::move(out)}};
    }

    static const char* what_of(int i) { return i ? "ConvTranspose2d width" : "ConvTranspose2d height"; }

    static Result<Dim> output_extent(const Operands& in, const Dim& size, const Dim& kernel, int i,
                                     const Attrs& a) {
        const char* what = what_of(i);
        const std::int64_t stride = a.strides[i], padding = a.padding[2 * i] + a.padding[2 * i + 1];
        if (!at_least(in, kernel, 1)) return invalid("{}: the filter has {} elements", what, kernel.str());
        if (!a.output_sizes && a.output_padding[i] >= stride)
            return invalid("{}: output_padding {} must be less than the stride {}", what, a.output_padding[i],
                           stride);
        if (size.is_symbolic() || kernel.is_symbolic()) return open_extent(in, size, kernel, i, a);
        std::int64_t last = 0, effective = 0;
        if (__builtin_mul_overflow(std::max<std::int64_t>(size.size(), 1) - 1, stride, &last) ||
            __builtin_mul_overflow(kernel.size() - 1, a.dilations[i], &effective) || last > INT64_MAX / 4 ||
            effective > INT64_MAX / 4)
            return invalid("{}: {} pixels with stride {} and a filter of {} are too many", what, size.size(),
                           stride, kernel.size());
        const std::int64_t least = last + effective + 1 - padding;
        if (a.output_sizes) return wanted_extent(in, what, least, i, a);
        const std::int64_t extent = least + a.output_padding[i];
        if (extent < 1)
            return invalid("{}: padding {} leaves nothing of {} elements", what, padding, least + padding);
        return Dim(extent);
    }

    static Result<Dim> open_extent(const Operands& in, const Dim& size, const Dim& kernel, int i,
                                   const Attrs& a) {
        const Expression last = Expression::largest({Expression(size), 1}) - 1,
                         reach = (Expression(kernel) - 1) * a.dilations[i] + 1,
                         least = last * a.strides[i] + reach - a.padding[2 * i] - a.padding[2 * i + 1];
        if (a.output_sizes) return wanted_extent(in, what_of(i), Dim::of(least, Range{}), i, a);
        const Dim extent = Dim::of(least + a.output_padding[i], {1, INT64_MAX});
        return extent == size ? size : extent;  // which may have a narrower range
    }

    /// The extent in output_sizes; the stride allows as many extents as it has steps.
    static Result<Dim> wanted_extent(const Operands& in, const char* what, const Dim& least, int i,
                                     const Attrs& a) {
        const Dim &wanted = (*a.output_sizes)[i], most = sum(least, a.strides[i] - 1);
        if (!at_least(in, wanted, 1) || !at_least(in, wanted, least) || !at_least(in, most, wanted))
            return invalid("{}: output_sizes has {} but {} to {} are possible", what, wanted.str(),
                           least.str(), most.str());
        return wanted;
    }

    /// Rows of one output channel: each input row that reaches them adds its filter row.
    static void reference(const TensorArgs& args, const Attrs& a) {
        const Axes in(args.in[0].shape, image_axes(a.input_layout)),
            out(args.out[0].shape, image_axes(a.input_layout));
        const Axes filter(args.in[1].shape, positions(a.filter_layout));
        const auto [batch, outputs, height, width] = out.size;
        const std::int64_t per_group = filter.size[1], inputs = in.size[1] / a.groups;
        std::vector<double> sums(static_cast<std::size_t>(width));
        const auto part = args.share.of(batch * outputs * height);
        visit_dtype(args.in[0].dtype, [&, outputs = outputs, height = height, width = width]<class T>() {
            for (std::int64_t task = part.begin; task < part.end; ++task) {
                const std::int64_t n = task / height / outputs, o = task / height % outputs,
                                   y = task % height;
                std::fill(sums.begin(), sums.end(),
                          args.has(2) ? convert<double>(args.in[2].as<T>()[o]) : 0.0);
                for (std::int64_t ky = 0; ky < filter.size[2]; ++ky) {
                    const std::int64_t reach = y + a.padding[0] - ky * a.dilations[0],
                                       row = reach / a.strides[0];
                    if (reach < 0 || reach % a.strides[0] || row >= in.size[2]) continue;
                    for (std::int64_t c = o / per_group * inputs; c < (o / per_group + 1) * inputs; ++c) {
                        const T* x =
                            args.in[0].as<T>() + n * in.stride[0] + c * in.stride[1] + row * in.stride[2];
                        const T* w = args.in[1].as<T>() + c * filter.stride[0] +
                                     o % per_group * filter.stride[1] + ky * filter.stride[2];
                        add_row(x, w, in, filter, a, sums);
                    }
                }
                T* to = args.out[0].as<T>() + n * out.stride[0] + o * out.stride[1] + y * out.stride[2];
                for (std::int64_t p = 0; p < width; ++p) to[p * out.stride[3]] = convert<T>(sums[p]);
            }
        });
    }
    /// Columns [begin, end) of the input that a filter column adds to the output, each at its number times
    /// the stride + shift.
    struct Reach {
        std::int64_t shift, begin, end;
    };
    static Reach reach_of(std::int64_t kx, std::int64_t in_width, std::int64_t out_width, const Attrs& a) {
        const std::int64_t stride = a.strides[1], shift = kx * a.dilations[1] - a.padding[2];
        return {shift, shift >= 0 ? 0 : (-shift + stride - 1) / stride,
                shift >= out_width ? 0 : std::min(in_width, (out_width - shift + stride - 1) / stride)};
    }
    template <class T>
    static void add_row(const T* x, const T* w, const Axes& in, const Axes& filter, const Attrs& a,
                        std::vector<double>& sums) {
        for (std::int64_t kx = 0; kx < filter.size[3]; ++kx) {
            const double weight = convert<double>(w[kx * filter.stride[3]]);
            const Reach r = reach_of(kx, in.size[3], static_cast<std::int64_t>(sums.size()), a);
            for (std::int64_t i = r.begin; i < r.end; ++i)
                sums[i * a.strides[1] + r.shift] += weight * convert<double>(x[i * in.stride[3]]);
        }
    }

    /// Planes of channels, and filters [i][o][h][w]: what the products below read as it lies.
    static bool products_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && a.input_layout == ImageLayout::nchw &&
               a.filter_layout == TransposedFilterLayout::iohw && in[1].sizes()[0] >= a.groups;
    }

    static void run_products(const TensorArgs& args, const void* attrs) {
        headrace::kernels::conv_transpose2d_f32(kernel_args(args, detail::attrs_ref<Attrs>(attrs)),
                                                args.share.ith, args.share.nth);
    }

    /// With channels last the kernel reads constant filters only, in any order.
    static bool nhwc_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && a.input_layout == ImageLayout::nhwc && is_constant[1] &&
               in[1].sizes()[positions(a.filter_layout)[0]] >= a.groups;
    }
    static headrace::kernels::ConvTranspose2dArgs filter_args(Sizes filter, const Attrs& a) {
        const auto size = [&](int i) {
            return static_cast<std::size_t>(filter[positions(a.filter_layout)[i]]);
        };
        const auto groups = static_cast<std::size_t>(a.groups);
        return {.in_channels = size(0),
                .out_channels = size(1) * groups,
                .groups = groups,
                .kernel_h = size(2),
                .kernel_w = size(3)};
    }
    static std::size_t packed_filter_bytes(const Operands& in, const void* attrs) {
        return headrace::kernels::packed_transposed_filters_bytes(
            filter_args(in[1].sizes(), detail::attrs_ref<Attrs>(attrs)));
    }
    static void pack_filter(const ConstView& filter, const void* attrs, std::byte* packed) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        const auto strides = Axes(filter.shape, positions(a.filter_layout)).stride;
        const auto stride = [&strides](int axis) { return static_cast<std::ptrdiff_t>(strides[axis]); };
        headrace::kernels::pack_transposed_filters(filter_args(filter.shape, a), filter.as<float>(),
                                                   {stride(0), stride(1), stride(2), stride(3)},
                                                   reinterpret_cast<float*>(packed));
    }
    static headrace::kernels::ConvTranspose2dArgs kernel_args(const TensorArgs& args, const Attrs& a) {
        const auto in = Axes(args.in[0].shape, image_axes(a.input_layout)).size;
        const auto out = Axes(args.out[0].shape, image_axes(a.input_layout)).size;
        const auto unsigned_of = [](std::int64_t i) { return static_cast<std::size_t>(i); };
        headrace::kernels::ConvTranspose2dArgs g = filter_args(args.in[1].shape, a);
        g.batch = unsigned_of(in[0]), g.in_h = unsigned_of(in[2]), g.in_w = unsigned_of(in[3]);
        g.out_h = unsigned_of(out[2]), g.out_w = unsigned_of(out[3]);
        g.stride_h = unsigned_of(a.strides[0]), g.stride_w = unsigned_of(a.strides[1]);
        g.dilation_h = unsigned_of(a.dilations[0]), g.dilation_w = unsigned_of(a.dilations[1]);
        g.pad_top = a.padding[0], g.pad_left = a.padding[2];
        g.x = args.in[0].as<float>(), g.w = args.in[1].as<float>(), g.y = args.out[0].as<float>();
        if (args.has(2)) g.bias = args.in[2].as<float>();
        return g;
    }
    static void run_nhwc(const TensorArgs& args, const void* attrs) {
        headrace::kernels::nhwc_conv_transpose2d_f32(kernel_args(args, detail::attrs_ref<Attrs>(attrs)),
                                                     args.in[1].as<float>(), args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "conv_transpose2d_f32", .applies = &products_apply, .run = &run_products},
        KernelDef{"nhwc_conv_transpose2d_f32", &nhwc_applies, 1, &packed_filter_bytes, &pack_filter,
                  &run_nhwc}};

    static Status lowerable(const Operands& in, const Attrs& a) {
        HR_TRY(works_through_f32(in[0].dtype));
        const Lowered g(in, a);
        constexpr std::int64_t kMostStride = 16;
        for (const std::int64_t stride : a.strides)
            if (stride > kMostStride) return unsupported("stride {}", stride);
        if (!g.is_depthwise() && a.groups > kMostGroups) return unsupported("{} groups", a.groups);
        for (const Frame& frame : {g.rows, g.columns})
            if (frame.kept() < 1 || frame.before + frame.extent + frame.after > INT32_MAX)
                return unsupported("an image of {} with {} before and {} after it", frame.extent,
                                   frame.before, frame.after);
        // As for conv2d: ggml's CPU convolution has a fixed work area.
        constexpr std::int64_t kWorkArea = 16 * 1024 * 1024 / sizeof(float);
        const auto [inputs, outputs, height, width] = g.filter.size;
        if (inputs / a.groups * height * width + outputs * a.groups > kWorkArea)
            return unsupported("a filter of {}", str(in[1].shape));
        return success();
    }

    /// A convolution with the filter turned around, over an image with zeros between its pixels.
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const bool nhwc = a.input_layout == ImageLayout::nhwc;
        const Lowered g(in, a);
        ggml_tensor* image = to_f32(e, x[0], in[0].dtype);
        if (nhwc) image = e.contiguous(e.permute(image, image_axes(ImageLayout::nhwc)));
        image = g.framed(e, g.spread(e, image, a));
        const auto convolve = [&](ggml_tensor* planes, ggml_tensor* filter) {
            const std::array<std::int64_t, 2> ones{1, 1}, none{0, 0};
            return e.conv_2d(planes, filter, ones, none, a.dilations, g.is_depthwise());
        };
        ggml_tensor* filter = g.turned(e, to_f32(e, x[1], in[1].dtype), a);
        ggml_tensor* y = a.groups == 1 || g.is_depthwise() ? convolve(image, filter)
                                                           : by_groups(e, image, filter, a.groups, convolve);
        if (in.has(2)) {
            const std::array<std::int64_t, 3> per_channel{in[2].shape[0].size(), 1, 1};
            y = e.binary(Binary::add, y, e.reshape(to_f32(e, x[2], in[2].dtype), per_channel));
        }
        if (nhwc) y = e.contiguous(e.permute(y, std::array{0, 2, 3, 1}));
        return {from_f32(e, y, infer(in, a).value()[0])};
    }

    /// What a row or column of the image with zeros between its pixels, `extent` long, gets or loses before
    /// and after it.
    struct Frame {
        std::int64_t extent, before, after;
        std::int64_t start() const { return std::max<std::int64_t>(-before, 0); }
        std::int64_t kept() const { return extent - start() - std::max<std::int64_t>(-after, 0); }
    };
    struct Lowered {
        Axes in, filter, out;
        Frame rows, columns;
        std::int64_t groups;

        Lowered(const Operands& operands, const Attrs& a)
            : in(operands[0].sizes(), image_axes(a.input_layout)),
              filter(operands[1].sizes(), positions(a.filter_layout)),
              out(infer(operands, a).value()[0].sizes(), image_axes(a.input_layout)),
              rows(frame(0, a)),
              columns(frame(1, a)),
              groups(a.groups) {}
        bool is_depthwise() const { return groups > 1 && filter.size[0] == groups && filter.size[1] == 1; }

        Frame frame(int i, const Attrs& a) const {
            const std::int64_t reach = (filter.size[2 + i] - 1) * a.dilations[i],
                               extent = in.size[2 + i] * a.strides[i], before = reach - a.padding[2 * i];
            return {extent, before, out.size[2 + i] + reach - before - extent};
        }
        ggml_tensor* spread(Emit& e, ggml_tensor* image, const Attrs& a) const {
            const auto [batch, channels, height, width] = in.size;
            const std::array<std::int64_t, 3> pixels{batch * channels * height * width, 1, 1},
                lines{batch * channels * height, 1, columns.extent};
            const std::array whole{batch, channels, rows.extent, columns.extent};
            image = with_zeros(e, e.reshape(image, pixels), a.strides[1]);
            image = with_zeros(e, e.reshape(image, lines), a.strides[0]);
            return e.reshape(image, whole);
        }
        /// x[n, 1, width] -> [n, count, width].
        static ggml_tensor* with_zeros(Emit& e, ggml_tensor* x, std::int64_t count) {
            if (count == 1) return x;
            ggml_tensor *zeros = e.fill(x, 0), *y = x;
            for (std::int64_t i = 1; i < count; ++i) y = e.concat(y, zeros, 1, 3);
            return y;
        }
        ggml_tensor* framed(Emit& e, ggml_tensor* image) const {
            const std::array start{std::int64_t{0}, std::int64_t{0}, rows.start(), columns.start()},
                size{in.size[0], in.size[1], rows.kept(), columns.kept()};
            const auto margin = [](std::int64_t n) { return std::max<std::int64_t>(n, 0); };
            const std::array<std::int64_t, 4> before{0, 0, margin(rows.before), margin(columns.before)},
                after{0, 0, margin(rows.after), margin(columns.after)};
            const bool is_cut = rows.start() > 0 || columns.start() > 0;
            image = e.slice(image, start, size);
            image = is_cut ? e.copy(image) : e.contiguous(image);
            return composed::pad(e, image, before, after, 0);
        }
        /// As conv2d has filters: [groups · outputs, inputs of a group, h, w].
        ggml_tensor* turned(Emit& e, ggml_tensor* weights, const Attrs& a) const {
            const auto p = positions(a.filter_layout);
            const auto [inputs, outputs, height, width] = filter.size;
            const std::array<std::int64_t, 2> rows{height * width, inputs * outputs};
            const std::array<std::int64_t, 4> apart{height * width, a.groups, inputs / a.groups, outputs},
                whole{a.groups * outputs, inputs / a.groups, height, width};
            weights = e.contiguous(e.permute(weights, std::array{p[2], p[3], p[0], p[1]}));
            weights = composed::reversed_rows(e, e.reshape(weights, rows));
            weights = e.contiguous(e.permute(e.reshape(weights, apart), std::array{1, 3, 2, 0}));
            return e.reshape(weights, whole);
        }
    };

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        Cost cost = elementwise_cost(in, out, 0);
        const auto [inputs, outputs, height, width] = Axes(in[1].sizes(), positions(a.filter_layout)).size;
        cost.flops =
            2.0 * static_cast<double>(in[0].elements()) * static_cast<double>(outputs * height * width);
        return cost;
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape input, Shape filter, std::int64_t bias, NamedAttrs attrs) {
            list.push_back({{{.type = {t, std::move(input)}},
                             {.type = {t, std::move(filter)}, .constant = true},
                             {.type = {t, {bias}}, .constant = true, .absent = bias == 0}},
                            std::move(attrs),
                            t == DType::f16 ? 4e-3 : 1e-5});
        };
        const NamedAttrs all{{"padding", List{1, 0, 0, 2}},
                             {"strides", List{3, 2}},
                             {"dilations", List{1, 2}},
                             {"output_padding", List{2, 1}},
                             {"groups", std::int64_t{2}}};
        add(DType::f32, {1, 1, 3, 3}, {1, 2, 2, 2}, 0, {});
        add(DType::f32, {2, 3, 4, 5}, {3, 37, 2, 2}, 37, {{"strides", List{2, 2}}});
        add(DType::f32, {1, 4, 3, 5}, {4, 3, 1, 3}, 6,
            {{"strides", List{1, 3}}, {"groups", std::int64_t{2}}});
        add(DType::f32, {1, 3, 3, 1}, {1, 2, 3, 3}, 2,
            {{"strides", List{2, 2}}, {"output_sizes", List{8, 7}}, {"input_layout", std::string("nhwc")}});
        const NamedAttrs nhwc{{"strides", List{2, 2}}, {"input_layout", std::string("nhwc")}};
        add(DType::f32, {2, 4, 5, 3}, {3, 37, 2, 2}, 37, nhwc);
        NamedAttrs overlapping = all;
        overlapping.emplace_back("input_layout", std::string("nhwc"));
        overlapping.emplace_back("filter_layout", std::string("hwoi"));
        add(DType::f32, {2, 6, 7, 4}, {3, 2, 19, 4}, 38, overlapping);
        for (DType t : {DType::f32, DType::f16, DType::f64})
            for (const auto& [layout, shape] :
                 {std::pair{"iohw", Shape{4, 3, 2, 3}}, {"hwoi", {2, 3, 3, 4}}, {"ohwi", {3, 2, 3, 4}}}) {
                NamedAttrs attrs = all;
                attrs.emplace_back("filter_layout", std::string(layout));
                add(t, {2, 4, 3, 4}, shape, 6, attrs);
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> conv_transpose_ops() { return OpList<ConvTranspose2d>::defs(); }

}  // namespace headrace::ops
