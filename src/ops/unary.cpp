/// Element-wise functions of one operand.
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "emit/emit.h"
#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/fused_activation.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/vector_kernel.h"

namespace headrace::ops {
namespace {

/// By op; most have none.
template <class Op>
struct VectorKernelOf {};
#define HR_VECTOR_KERNEL(Op, function) \
    struct Op;                         \
    template <>                        \
    struct VectorKernelOf<Op> : VectorKernel<kernels::Unary::function> {};

HR_VECTOR_KERNEL(Exp, exp)
HR_VECTOR_KERNEL(Log, log)
HR_VECTOR_KERNEL(Tanh, tanh)
HR_VECTOR_KERNEL(Sigmoid, sigmoid)
HR_VECTOR_KERNEL(Erf, erf)
HR_VECTOR_KERNEL(Gelu, gelu_erf)
HR_VECTOR_KERNEL(GeluTanh, gelu_tanh)
HR_VECTOR_KERNEL(Silu, silu)
HR_VECTOR_KERNEL(Relu, relu)
HR_VECTOR_KERNEL(Sqrt, sqrt)
HR_VECTOR_KERNEL(Sin, sin)
HR_VECTOR_KERNEL(Cos, cos)
#undef HR_VECTOR_KERNEL

/// What every function here shares; Self gives name, summary, dtypes and `apply`, perhaps ggml's function.
template <class Self, DTypeSet kTypes>
struct UnaryOp : VectorKernelOf<Self> {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kTypes}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) { return same_type(in[0]); }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            const auto part = args.share.of(args.in[0].elements(), 64);
            const T* x = args.in[0].as<T>();
            T* y = args.out[0].as<T>();
            for (std::int64_t i = part.begin; i < part.end; ++i)
                y[i] = static_cast<T>(Self::apply(static_cast<compute_t<T>>(x[i])));
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 4);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::f64, DType::i32, DType::i64, DType::i8})
            if (kTypes.has(t))
                for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 1, 3, 1, 2}, Shape{}})
                    list.push_back({{{.type = {t, shape}, .low = Self::kLow, .high = Self::kHigh}},
                                    {},
                                    t == DType::f16 ? 2e-3 : 1e-5});
        return list;
    }

    static constexpr double kLow = -3, kHigh = 3;
};

/// What ggml computes in several steps, for devices: Self::emit(e, x) in f32. On the CPU one pass is faster.
template <class Self, DTypeSet kTypes>
struct ComposedUnaryOp : UnaryOp<Self, kTypes> {
    static constexpr auto kernels = [] {
        if constexpr (requires { VectorKernelOf<Self>::kernels; })
            return VectorKernelOf<Self>::kernels;
        else
            return std::array{OnePass<Self>::kKernel};
    }();
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs&) {
        return {from_f32(e, Self::emit(e, to_f32(e, x[0], in[0].dtype)), in[0])};
    }
};

/// ggml computes f32 and f16 (through f32) with the C library or a polynomial inside WebNN's tolerances.
template <class Self, Unary kFunction, DTypeSet kTypes>
struct NativeUnaryOp : UnaryOp<Self, kTypes> {
    static Status lowerable(const Operands& in, const NoAttrs&) {
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("{}", name_of(in[0].dtype));
        return success();
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands&,
                                           const NoAttrs&) {
        return {e.unary(kFunction, x[0])};
    }
};

constexpr DTypeSet kSignedNumbers = kFloats | kSigned;

/// abs and neg of the smallest integer wrap instead of overflowing.
template <class T>
T wrapping_neg(T x) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(x));
    else
        return -x;
}

#define HR_COMPOSED_UNARY(Type, text, emitted, description, types, expression) \
    struct Type : ComposedUnaryOp<Type, types> {                               \
        static constexpr std::string_view name = text, summary = description;  \
        template <class T>                                                     \
        static T apply(T x) {                                                  \
            return expression;                                                 \
        }                                                                      \
        static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return emitted; }  \
    };
#define HR_NATIVE_UNARY(Type, text, function, description, types, expression) \
    struct Type : NativeUnaryOp<Type, Unary::function, types> {               \
        static constexpr std::string_view name = text, summary = description; \
        template <class T>                                                    \
        static T apply(T x) {                                                 \
            return expression;                                                \
        }                                                                     \
    };

HR_NATIVE_UNARY(Abs, "abs", abs, "|x|", kSignedNumbers, x < T(0) ? wrapping_neg(x) : x == T(0) ? T(0) : x)
HR_NATIVE_UNARY(Neg, "neg", neg, "-x", kSignedNumbers, wrapping_neg(x))
HR_NATIVE_UNARY(Exp, "exp", exp, "e^x", kFloats, std::exp(x))
HR_NATIVE_UNARY(Sin, "sin", sin, "sin x, x in radians", kFloats, std::sin(x))
HR_NATIVE_UNARY(Cos, "cos", cos, "cos x, x in radians", kFloats, std::cos(x))
HR_NATIVE_UNARY(Tanh, "tanh", tanh, "tanh x", kFloats, std::tanh(x))
HR_NATIVE_UNARY(Sigmoid, "sigmoid", sigmoid, "1 / (1 + e^-x)", kFloats, T(1) / (T(1) + std::exp(-x)))
HR_NATIVE_UNARY(Gelu, "gelu", gelu_erf, "x (1 + erf(x / sqrt 2)) / 2", kFloats,
                T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))))
HR_NATIVE_UNARY(Silu, "silu", silu, "x / (1 + e^-x)", kFloats, x / (T(1) + std::exp(-x)))
HR_NATIVE_UNARY(Floor, "floor", floor, "largest integer not above x", kFloats, std::floor(x))
HR_NATIVE_UNARY(Ceil, "ceil", ceil, "smallest integer not below x", kFloats, std::ceil(x))
HR_COMPOSED_UNARY(Erf, "erf", composed::erf(e, x), "Gauss error function", kFloats, std::erf(x))
HR_COMPOSED_UNARY(Tan, "tan", e.binary(Binary::div, e.unary(Unary::sin, x), e.unary(Unary::cos, x)),
                  "tan x, x in radians", kFloats, std::tan(x))
HR_COMPOSED_UNARY(Reciprocal, "reciprocal", composed::reciprocal(e, x), "1 / x", kFloats, T(1) / x)

struct Relu : ComposedUnaryOp<Relu, kSignedNumbers> {
    static constexpr std::string_view name = "relu", summary = "max(x, 0)";
    template <class T>
    static T apply(T x) {
        return x < T(0) ? T(0) : x;
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return lower_activation(e, Activation::relu, x); }
};

struct Log : NativeUnaryOp<Log, Unary::log, kFloats> {
    static constexpr std::string_view name = "log", summary = "natural logarithm";
    static constexpr double kLow = 0.01;
    template <class T>
    static T apply(T x) {
        return std::log(x);
    }
};
struct Sqrt : NativeUnaryOp<Sqrt, Unary::sqrt, kFloats> {
    static constexpr std::string_view name = "sqrt", summary = "square root";
    static constexpr double kLow = 0;
    template <class T>
    static T apply(T x) {
        return std::sqrt(x);
    }
};

struct GeluTanh : ComposedUnaryOp<GeluTanh, kFloats> {
    static constexpr std::string_view name = "gelu_tanh",
                                      summary = "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2";
    template <class T>
    static T apply(T x) {
        return static_cast<T>(gelu_tanh(x));
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return lower_gelu_tanh(e, x); }
};

/// Functions of a part of the real numbers, from which their samples are drawn.
#define HR_UNARY_WITHIN(Type, text, emitted, low, high, description, expression) \
    struct Type : ComposedUnaryOp<Type, kFloats> {                               \
        static constexpr std::string_view name = text, summary = description;    \
        static constexpr double kLow = low, kHigh = high;                        \
        template <class T>                                                       \
        static T apply(T x) {                                                    \
            return expression;                                                   \
        }                                                                        \
        static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return emitted; }    \
    };

constexpr float kPerLn2 = std::numbers::log2e_v<float>, kPerLn10 = std::numbers::log10e_v<float>;

HR_UNARY_WITHIN(Asin, "asin", composed::asin(e, x), -1, 1, "arc sine of x, in radians", std::asin(x))
HR_UNARY_WITHIN(Acos, "acos", composed::acos(e, x), -1, 1, "arc cosine of x, in radians", std::acos(x))
HR_UNARY_WITHIN(Atan, "atan", composed::atan(e, x), -9, 9, "arc tangent of x, in radians", std::atan(x))
HR_UNARY_WITHIN(Sinh, "sinh", composed::sinh(e, x), -3, 3, "hyperbolic sine", std::sinh(x))
HR_UNARY_WITHIN(Cosh, "cosh", composed::cosh(e, x), -3, 3, "hyperbolic cosine", std::cosh(x))
HR_UNARY_WITHIN(Asinh, "asinh", composed::asinh(e, x), -9, 9, "inverse of sinh", std::asinh(x))
HR_UNARY_WITHIN(Acosh, "acosh", composed::acosh(e, x), 1, 9, "inverse of cosh, not negative", std::acosh(x))
HR_UNARY_WITHIN(Atanh, "atanh", composed::atanh(e, x), -0.9, 0.9, "inverse of tanh", std::atanh(x))
HR_UNARY_WITHIN(Expm1, "expm1", composed::expm1(e, x), -3, 3, "e^x - 1, exact near 0", std::expm1(x))
HR_UNARY_WITHIN(Log1p, "log1p", composed::log1p(e, x), -0.9, 9, "log(1 + x), exact near 0", std::log1p(x))
HR_UNARY_WITHIN(Log2, "log2", e.scale(composed::log(e, x), kPerLn2, 0), 0.01, 9, "logarithm to base 2",
                std::log2(x))
HR_UNARY_WITHIN(Log10, "log10", e.scale(composed::log(e, x), kPerLn10, 0), 0.01, 9, "logarithm to base 10",
                std::log10(x))

#undef HR_COMPOSED_UNARY
#undef HR_NATIVE_UNARY
#undef HR_UNARY_WITHIN

struct Identity {
    static constexpr std::string_view name = "identity", summary = "x itself";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    static constexpr LayoutRule layout = LayoutRule::any;
    static Result<Types> infer(const Operands& in, const NoAttrs&) { return same_type(in[0]); }
    static std::optional<int> same_as(const Operands&, const NoAttrs&) { return 0; }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        const auto part =
            args.share.of(static_cast<std::int64_t>(bytes_of(args.in[0].dtype, args.in[0].elements())));
        std::copy(args.in[0].data + part.begin, args.in[0].data + part.end, args.out[0].data + part.begin);
    }
    static std::vector<ggml_tensor*> lower(Emit&, std::span<ggml_tensor* const> x, const Operands&,
                                           const NoAttrs&) {
        return {x[0]};
    }
    static std::vector<Sample> samples() {
        return {{{{.type = {DType::f32, {2, 3}}}}, {}},
                {{{.type = {DType::u8, {5}}, .low = 0, .high = 200}}, {}}};
    }
};

}  // namespace

std::span<const OpDef> unary_ops() {
    return OpList<Abs, Neg, Exp, Sin, Cos, Tanh, Sigmoid, Gelu, GeluTanh, Silu, Floor, Ceil, Erf, Tan,
                  Reciprocal, Relu, Log, Sqrt, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Expm1,
                  Log1p, Log2, Log10, Identity>::defs();
}

}  // namespace headrace::ops
