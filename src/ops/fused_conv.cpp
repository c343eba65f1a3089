/// What fusion makes of a convolutional layer: convolution, bias, activation, limits and residual connection
/// in one pass over memory.
#include <cmath>
#include <limits>
#include <optional>

#include "ops/convolution.h"
#include "ops/fused_activation.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct FusedConv2dAttrs : Conv2dAttrs {
    Activation activation = Activation::none;
    std::optional<double> min_value, max_value;
    bool residual_first = false;
    static void fields(auto&& f) {
        using A = FusedConv2dAttrs;
        Conv2dAttrs::fields(f);
        f("output_layout", &A::output_layout, "order of output's and residual's dimensions; absent: input's");
        f("round_to_bf16", &A::round_to_bf16,
          "input and filter, where they are f32, may be rounded to bf16 as they are multiplied");
        f("activation", &A::activation, "applied to the sums; gelu is the erf form");
        f("min_value", &A::min_value, "smallest value that the activation gives; absent: no limit");
        f("max_value", &A::max_value, "largest value that the activation gives; absent: no limit");
        f("residual_first", &A::residual_first,
          "the residual is added before the activation and the limits, not after");
    }
    bool has_limits() const { return min_value || max_value; }
    double low() const { return min_value.value_or(-std::numeric_limits<double>::infinity()); }
    double high() const { return max_value.value_or(std::numeric_limits<double>::infinity()); }
};

kernels::Conv2dArgs kernel_args(const TensorArgs& args, const FusedConv2dAttrs& a) {
    kernels::Conv2dArgs g = conv2d_args(args, a);
    if (args.has(3)) g.residual = args.in[3].as<float>();
    g.residual_first = a.residual_first;
    g.activation = kernel_activation(a.activation);
    if (a.has_limits()) {
        const double low = a.activation == Activation::relu ? std::max(a.low(), 0.0) : a.low();
        g.activation = kernels::Activation::clamp;
        g.clamp_min = static_cast<float>(low);
        g.clamp_max = static_cast<float>(a.high());
    }
    return g;
}

struct FusedConv2d {
    static constexpr std::string_view
        name = "fused_conv2d",
        summary = "activation(conv2d(input, filter) + bias) + residual, or the activation last";
    static constexpr std::array operands{
        kConvInput, kConvFilter, kConvBias,
        OperandRule{
            .name = "residual", .dtypes = kFloats, .same_dtype_as = 0, .optional = true, .min_rank = 4}};
    static constexpr LayoutRule layout = LayoutRule::channels;
    using Attrs = FusedConv2dAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(TensorType out, infer_conv2d(in, a));
        if (in.has(3) && !same_shape(in, in[3].shape, out.shape))
            return invalid("residual has shape {} but the convolution has shape {}", str(in[3].shape),
                           str(out.shape));
        if (a.has_limits() && a.activation != Activation::none && a.activation != Activation::relu)
            return invalid("min_value and max_value go with the activations none and relu only, not with {}",
                           enum_names(a.activation)[static_cast<std::size_t>(a.activation)]);
        if (std::isnan(a.low()) || std::isnan(a.high()) || a.low() > a.high())
            return invalid("min_value {} and max_value {} are no range", a.low(), a.high());
        return Types{std::move(out)};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            reference_conv2d<T>(args, a, [&](std::int64_t i, double x) {
                const double residual = args.has(3) ? convert<double>(args.in[3].as<T>()[i]) : 0;
                if (a.residual_first) x += residual;
                x = activate(a.activation, x);
                x = x < a.low() ? a.low() : x > a.high() ? a.high() : x;
                args.out[0].as<T>()[i] = convert<T>(a.residual_first ? x : x + residual);
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) { return conv2d_lowerable(in, a); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const TensorType out = infer_conv2d(in, a).value();
        ggml_tensor* y = lower_conv2d(e, x, in, a);
        const auto add_residual = [&] {
            if (in.has(3)) y = e.binary(Binary::add, y, to_f32(e, x[3], out.dtype));
        };
        if (a.residual_first) add_residual();
        y = lower_activation(e, a.activation, y);
        if (a.has_limits()) y = lower_limits(e, y, a);
        if (!a.residual_first) add_residual();
        return {from_f32(e, y, out)};
    }
    static ggml_tensor* lower_limits(Emit& e, ggml_tensor* x, const Attrs& a) {
        return keep_nan(e, e.clamp(x, static_cast<float>(a.low()), static_cast<float>(a.high())), x);
    }

    static constexpr auto kernels = Conv2dKernels<Attrs, kernel_args>::with_rounding;

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        Cost cost = conv2d_cost(in, out, a);
        cost.flops += 10.0 * static_cast<double>(out[0].elements());
        return cost;
    }

    static std::vector<Sample> samples();
};

std::vector<Sample> FusedConv2d::samples() {
    using List = std::vector<std::int64_t>;
    std::vector<Sample> list;
    const auto add = [&](DType t, Shape input, Shape filter, std::int64_t bias, Shape residual,
                         NamedAttrs attrs, bool constant = true) {
        const bool has_residual = !residual.empty();
        list.push_back({{{.type = {t, std::move(input)}},
                         {.type = {t, std::move(filter)}, .constant = constant},
                         {.type = {t, {bias}}, .constant = constant, .absent = bias == 0},
                         {.type = {t, std::move(residual)}, .absent = !has_residual}},
                        std::move(attrs),
                        sample_tolerance(t)});
    };
    for (std::string_view f : detail::kEnumNames<Activation>)
        for (const bool first : {false, true})
            add(DType::f32, {2, 3, 9, 8}, {5, 3, 3, 3}, 5, {2, 5, 9, 8},
                {{"padding", List{1, 1, 1, 1}}, {"activation", std::string(f)}, {"residual_first", first}},
                first);
    const NamedAttrs relu6{{"min_value", 0.0}, {"max_value", 6.0}};
    const NamedAttrs relu_and_limit{
        {"max_value", 1.5}, {"activation", std::string("relu")}, {"residual_first", true}};
    NamedAttrs depthwise = relu6;
    depthwise.insert(depthwise.end(), {{"groups", std::int64_t{6}}, {"strides", List{1, 2}}});
    for (const bool has_residual : {false, true}) {
        const auto residual = [&](Shape shape) { return has_residual ? shape : Shape{}; };
        add(DType::f32, {1, 8, 6, 6}, {24, 8, 1, 1}, 24, residual({1, 24, 6, 6}), relu6);
        add(DType::f32, {1, 8, 6, 6}, {24, 8, 1, 1}, 0, residual({1, 24, 6, 6}), relu_and_limit);
        add(DType::f32, {1, 6, 6, 7}, {6, 1, 3, 3}, 6, residual({1, 6, 4, 3}), depthwise);
    }
    const NamedAttrs nhwc{{"input_layout", std::string("nhwc")},
                          {"padding", List{1, 1, 1, 1}},
                          {"min_value", -1.5},
                          {"max_value", 2.0}};
    NamedAttrs depthwise_nhwc = nhwc;
    depthwise_nhwc.emplace_back("groups", std::int64_t{20});
    add(DType::f32, {2, 6, 5, 8}, {24, 8, 3, 3}, 24, {2, 6, 5, 24}, nhwc);
    add(DType::f32, {1, 10, 11, 32}, {36, 32, 3, 3}, 36, {1, 10, 11, 36}, nhwc);
    add(DType::f32, {1, 10, 11, 20}, {20, 1, 3, 3}, 20, {1, 10, 11, 20}, depthwise_nhwc);
    NamedAttrs rounded = nhwc;
    rounded.emplace_back("round_to_bf16", true);
    add(DType::f32, {2, 6, 5, 8}, {24, 8, 3, 3}, 24, {2, 6, 5, 24}, rounded);
    list.back().tolerance = 0.12;
    add(DType::f32, {1, 10, 11, 32}, {36, 32, 3, 3}, 36, {1, 10, 11, 36}, rounded);
    list.back().tolerance = 0.4;
    for (const bool has_residual : {false, true})  // whole vectors of channels
        for (const char* activation : {"relu", "silu"})
            add(DType::f32, {2, 3, 6, 7}, {32, 3, 3, 2}, 32, has_residual ? Shape{2, 4, 6, 32} : Shape{},
                {{"output_layout", std::string("nhwc")}, {"activation", std::string(activation)}});
    for (DType t : {DType::f32, DType::f16, DType::f64}) {
        add(t, {1, 4, 6, 7}, {6, 3, 3, 2}, 6, {1, 6, 4, 5},
            {{"groups", std::int64_t{2}},
             {"filter_layout", std::string("ohwi")},
             {"activation", std::string("relu")}});
        add(t, {2, 3, 6, 7}, {9, 3, 3, 2}, 9, {2, 4, 6, 9},
            {{"output_layout", std::string("nhwc")},
             {"activation", std::string("silu")},
             {"residual_first", true}});
        add(t, {2, 3, 6, 7}, {9, 3, 3, 2}, 9, {2, 4, 6, 9},
            {{"output_layout", std::string("nhwc")}, {"max_value", 0.5}});
        add(t, {2, 6, 7, 3}, {4, 3, 3, 3}, 4, {2, 4, 5, 4},
            {{"input_layout", std::string("nhwc")},
             {"filter_layout", std::string("ohwi")},
             {"min_value", -1.0},
             {"residual_first", true}});
    }
    return list;
}

}  // namespace

std::span<const OpDef> fused_conv_ops() { return OpList<FusedConv2d>::defs(); }

}  // namespace headrace::ops
