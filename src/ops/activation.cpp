/// Activation functions with parameters, and those that ggml has no exact function for.
#include <array>
#include <cmath>
#include <optional>

#include "emit/emit.h"
#include "kernels/tensor/elementwise_f32.h"
#include "ops/arithmetic.h"
#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/repetition.h"
#include "ops/vector_kernel.h"

namespace headrace::ops {
namespace {

/// What all functions of one float operand share; Self gives name, summary, Attrs and apply(x, attributes).
template <class Self, class A>
struct ActivationOp {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kFloats}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = A;

    static Result<Types> infer(const Operands& in, const Attrs&) { return same_type(in[0]); }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_allowed<kFloats>(args.in[0].dtype, [&]<class T>() {
            map_elements<T, T>(args, [&a](auto x) { return Self::apply(x, a); });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, Self::kOperations);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
            for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 1, 3, 1, 2}, Shape{}})
                for (const NamedAttrs& attrs : Self::sample_attrs())
                    list.push_back(
                        {{{.type = {t, shape}, .low = -5, .high = 5}}, attrs, t == DType::f16 ? 2e-3 : 1e-5});
        return list;
    }
    static std::vector<NamedAttrs> sample_attrs() { return {{}}; }

    static constexpr double kOperations = 4;
};

/// What ggml computes in several steps, all in f32: Self::emit(e, x, attributes).
template <class Self, class A>
struct ComposedOp : ActivationOp<Self, A> {
    static Status lowerable(const Operands& in, const A&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const A& a) {
        return {from_f32(e, Self::emit(e, to_f32(e, x[0], in[0].dtype), a), in[0])};
    }
};

struct LeakyReluAttrs {
    double alpha = 0.01;
    static void fields(auto&& f) { f("alpha", &LeakyReluAttrs::alpha, "slope for negative x"); }
};
struct LeakyRelu : ComposedOp<LeakyRelu, LeakyReluAttrs> {
    static constexpr std::string_view name = "leaky_relu", summary = "x where x >= 0, else alpha x";
    static constexpr double kOperations = 2;
    template <class T>
    static T apply(T x, const Attrs& a) {
        return x < T(0) ? static_cast<T>(a.alpha) * x : x;
    }
    static std::vector<NamedAttrs> sample_attrs() { return {{}, {{"alpha", 0.25}}, {{"alpha", -1.5}}}; }
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs& a) {
        return keep_nan(e, e.leaky_relu(x, static_cast<float>(a.alpha)), x);
    }

    static void run_vectors(const TensorArgs& args, const void* attrs) {
        const double alpha = detail::attrs_ref<Attrs>(attrs).alpha;
        headrace::kernels::leaky_relu_f32(
            static_cast<float>(alpha), args.in[0].as<float>(), args.out[0].as<float>(),
            static_cast<std::size_t>(args.in[0].elements()), args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "leaky_relu_f32", .applies = &is_f32, .run = &run_vectors}};
};

struct EluAttrs {
    double alpha = 1;
    static void fields(auto&& f) { f("alpha", &EluAttrs::alpha, "limit for x to -infinity, negated"); }
};
struct Elu : ComposedOp<Elu, EluAttrs> {
    static constexpr std::string_view name = "elu", summary = "x where x >= 0, else alpha (e^x - 1)";
    static constexpr double kOperations = 10;
    template <class T>
    static T apply(T x, const Attrs& a) {
        return x < T(0) ? static_cast<T>(a.alpha) * std::expm1(x) : x;
    }
    static std::vector<NamedAttrs> sample_attrs() { return {{}, {{"alpha", 2.5}}}; }
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs& a) {
        return composed::elu(e, x, static_cast<float>(a.alpha));
    }
    static constexpr std::array kernels{OnePass<Elu>::kKernel};
};

struct HardSigmoidAttrs {
    double alpha = 0.2, beta = 0.5;
    static void fields(auto&& f) {
        f("alpha", &HardSigmoidAttrs::alpha, "factor");
        f("beta", &HardSigmoidAttrs::beta, "offset");
    }
};
struct HardSigmoid : ComposedOp<HardSigmoid, HardSigmoidAttrs> {
    static constexpr std::string_view name = "hard_sigmoid", summary = "alpha x + beta within [0, 1]";
    template <class T>
    static T apply(T x, const Attrs& a) {
        const T y = static_cast<T>(a.alpha) * x + static_cast<T>(a.beta);
        return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
    }
    static std::vector<NamedAttrs> sample_attrs() { return {{}, {{"alpha", -0.7}, {"beta", 0.25}}}; }
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs& a) {
        x = e.scale(x, static_cast<float>(a.alpha), static_cast<float>(a.beta));
        return keep_nan(e, e.clamp(x, 0, 1), x);
    }
    static constexpr std::array kernels{OnePass<HardSigmoid>::kKernel};
};

/// The specification has no parameters; pywebnn's alpha and beta generalise the gate.
struct HardSwishAttrs {
    std::optional<double> alpha, beta;
    static void fields(auto&& f) {
        f("alpha", &HardSwishAttrs::alpha, "factor of the gate, 1/6 if absent");
        f("beta", &HardSwishAttrs::beta, "offset of the gate, 0.5 if absent");
    }
    bool is_standard() const { return !alpha && !beta; }
};
struct HardSwish : ComposedOp<HardSwish, HardSwishAttrs> {
    static constexpr std::string_view name = "hard_swish", summary = "x times (x + 3) / 6 within [0, 1]";
    template <class T>
    static T apply(T x, const Attrs& a) {
        const T gate = a.is_standard() ? (x + T(3)) / T(6)
                                       : static_cast<T>(a.alpha.value_or(1.0 / 6)) * x +
                                             static_cast<T>(a.beta.value_or(0.5));
        return x * (gate < T(0) ? T(0) : gate > T(1) ? T(1) : gate);
    }
    static std::vector<NamedAttrs> sample_attrs() { return {{}, {{"alpha", 0.25}}, {{"beta", 0.125}}}; }
    /// ggml's takes NaN for a number in its gate, and multiplies.
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs& a) {
        if (a.is_standard()) return e.unary(Unary::hard_swish, x);
        const auto alpha = static_cast<float>(a.alpha.value_or(1.0 / 6)),
                   beta = static_cast<float>(a.beta.value_or(0.5));
        return e.binary(Binary::mul, x, e.clamp(e.scale(x, alpha, beta), 0, 1));
    }

    /// ggml's function for the CPU computes one element at a time.
    static void run_vectors(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        if (a.is_standard()) return VectorKernel<headrace::kernels::Unary::hard_swish>::run(args, attrs);
        reference(args, a);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "hard_swish_f32", .applies = &is_f32, .run = &run_vectors}};
};

struct LinearAttrs {
    double alpha = 1, beta = 0;
    static void fields(auto&& f) {
        f("alpha", &LinearAttrs::alpha, "factor");
        f("beta", &LinearAttrs::beta, "offset");
    }
};
struct Linear : ComposedOp<Linear, LinearAttrs> {
    static constexpr std::string_view name = "linear", summary = "alpha x + beta";
    static constexpr double kOperations = 2;
    template <class T>
    static T apply(T x, const Attrs& a) {
        return static_cast<T>(a.alpha) * x + static_cast<T>(a.beta);
    }
    static std::optional<int> same_as(const Operands&, const Attrs& a) {
        return a.alpha == 1 && a.beta == 0 ? std::optional(0) : std::nullopt;
    }
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs& a) {
        return e.scale(x, static_cast<float>(a.alpha), static_cast<float>(a.beta));
    }
    static std::vector<NamedAttrs> sample_attrs() {
        return {{}, {{"alpha", 2.5}}, {{"alpha", -1.5}, {"beta", 0.75}}, {{"alpha", 0.0}, {"beta", 3.0}}};
    }
};

struct Softplus : ComposedOp<Softplus, NoAttrs> {
    static constexpr std::string_view name = "softplus", summary = "log(1 + e^x)";
    static constexpr double kOperations = 20;
    template <class T>
    static T apply(T x, const Attrs&) {
        return (x < T(0) ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
    }

    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs&) { return composed::softplus(e, x); }
    static constexpr auto kernels = VectorKernel<headrace::kernels::Unary::softplus>::kernels;
};

struct Softsign : ComposedOp<Softsign, NoAttrs> {
    static constexpr std::string_view name = "softsign", summary = "x / (1 + |x|)";
    template <class T>
    static T apply(T x, const Attrs&) {
        return x / (T(1) + std::abs(x));
    }
    static Emit::Tensor emit(Emit& e, Emit::Tensor x, const Attrs&) {
        return e.binary(Binary::div, x, e.scale(e.unary(Unary::abs, x), 1, 1));
    }
    static constexpr std::array kernels{OnePass<Softsign>::kKernel};
};

struct Prelu {
    static constexpr std::string_view name = "prelu",
                                      summary = "x where x >= 0, else slope x, with broadcasting";
    static constexpr DTypeSet kTypes = kFloats | kSigned;
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kTypes},
                                         OperandRule{.name = "slope", .dtypes = kTypes, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(Shape shape, broadcast(in, in[0].shape, in[1].shape));
        return Types{{in[0].dtype, std::move(shape)}};
    }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            using C = compute_t<T>;
            zip_elements<T, T>(args, [](C x, C slope) { return x < C(0) ? wrapping_mul(x, slope) : x; });
        });
    }
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    /// A slope that is not finite shows where x is not negative, too.
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& a) {
        const TensorType type = infer(in, a).value()[0];
        const auto repeated = [&](int i) {
            return repeat_to(e, to_f32(e, x[i], in[i].dtype), in[i].sizes(), type.sizes());
        };
        ggml_tensor *value = repeated(0), *slope = repeated(1);
        ggml_tensor* below = e.unary(Unary::relu, e.unary(Unary::neg, value));
        ggml_tensor* scaled = e.binary(Binary::mul, e.flatten(below), e.flatten(slope));
        ggml_tensor* y = e.binary(Binary::sub, e.flatten(e.unary(Unary::relu, value)), scaled);
        return {from_f32(e, keep_nan(e, y, e.flatten(value)), type)};
    }
    static constexpr std::array kernels{OnePass<Prelu>::kKernel};
    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 2);
    }
    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape x, Shape slope, bool constant = false) {
            return Sample{
                {{.type = {t, std::move(x)}}, {.type = {t, std::move(slope)}, .constant = constant}},
                {},
                t == DType::f16 ? 2e-3 : 1e-5};
        };
        return {sample(DType::f32, {2, 3, 4, 5}, {3, 1, 1}, true),
                sample(DType::f32, {}, {}),
                sample(DType::f32, {2, 1, 3, 1, 2}, {2}),
                sample(DType::f32, {3, 1, 2}, {1, 4, 2}),
                sample(DType::f16, {2, 3}, {1}),
                sample(DType::i32, {4, 3}, {3}),
                sample(DType::i64, {5}, {5})};
    }
};

}  // namespace

std::span<const OpDef> activation_ops() {
    return OpList<LeakyRelu, Elu, HardSigmoid, HardSwish, Linear, Softplus, Softsign, Prelu>::defs();
}

}  // namespace headrace::ops
