/// Two-dimensional convolution.
#include "ops/convolution.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct Conv2d {
    static constexpr std::string_view name = "conv2d",
                                      summary = "2-D convolution (cross-correlation) of images";
    static constexpr std::array operands{kConvInput, kConvFilter, kConvBias};
    static constexpr LayoutRule layout = LayoutRule::channels;
    using Attrs = Conv2dAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(TensorType out, infer_conv2d(in, a));
        return Types{std::move(out)};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            T* out = args.out[0].as<T>();
            reference_conv2d<T>(args, a, [out](std::int64_t i, double sum) { out[i] = convert<T>(sum); });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) { return conv2d_lowerable(in, a); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        return {from_f32(e, lower_conv2d(e, x, in, a), infer_conv2d(in, a).value())};
    }

    static constexpr auto kernels = Conv2dKernels<Attrs, conv2d_args>::list;

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        return conv2d_cost(in, out, a);
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
    const NamedAttrs nhwc{{"input_layout", std::string("nhwc")}};
    add(DType::f32, {2, 6, 5, 8}, {24, 8, 3, 3}, 24, with(windows, "input_layout", std::string("nhwc")));
    add(DType::f32, {1, 10, 11, 32}, {36, 32, 3, 3}, 36, with(nhwc, "padding", List{1, 1, 1, 1}));
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
