/// Gated activations (arXiv:2002.05202): swiglu, geglu, reglu and glu are activation(gate) · x.
#include <array>
#include <cmath>

#include "emit/emit.h"
#include "kernels/elementwise_f32.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

enum class Gate : std::uint8_t { silu, gelu, relu, sigmoid };
constexpr auto enum_names(Gate) { return std::array<std::string_view, 4>{"silu", "gelu", "relu", "sigmoid"}; }

template <class T>
T open(Gate gate, T x) {
    switch (gate) {
        case Gate::silu: return x / (1 + std::exp(-x));
        case Gate::gelu: return T(0.5) * x * (1 + std::erf(x * T(0.70710678118654752440)));
        case Gate::relu: return x < 0 ? T(0) : x;
        case Gate::sigmoid: return 1 / (1 + std::exp(-x));
    }
    return x;
}

struct Glu {
    static constexpr std::string_view name = "glu", summary = "a gated linear unit: activation(gate) · x";
    static constexpr std::array operands{OperandRule{.name = "gate", .dtypes = kFloats},
                                         OperandRule{.name = "x", .dtypes = kFloats, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    struct Attrs {
        Gate activation = Gate::silu;
        static void fields(auto&& f) {
            f("activation", &Attrs::activation, "silu is swiglu, gelu (the erf form) geglu, sigmoid glu");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        if (in[0].shape != in[1].shape)
            return invalid("gate has shape {} but x has {}", str(in[0].shape), str(in[1].shape));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto part = args.share.of(args.out[0].elements(), 64);
        visit_allowed<kFloats>(args.in[0].dtype, [&]<class T>() {
            const T *gate = args.in[0].as<T>(), *x = args.in[1].as<T>();
            T* y = args.out[0].as<T>();
            for (std::int64_t i = part.begin; i < part.end; ++i)
                y[i] = convert<T>(open(a.activation, convert<double>(gate[i])) * convert<double>(x[i]));
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        if (a.activation == Gate::relu) return unsupported("relu");  // ggml's turns NaN into 0
        return works_through_f32(in[0].dtype);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const Unary f = a.activation == Gate::silu   ? Unary::silu
                        : a.activation == Gate::gelu ? Unary::gelu_erf
                                                     : Unary::sigmoid;
        const DType t = in[0].dtype;
        return {
            from_f32(e, e.binary(Binary::mul, e.unary(f, to_f32(e, x[0], t)), to_f32(e, x[1], t)), in[0])};
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void*) {
        return in[0].dtype == DType::f32;
    }
    static kernels::Unary kernel_function(Gate gate) {
        switch (gate) {
            case Gate::silu: return kernels::Unary::silu;
            case Gate::gelu: return kernels::Unary::gelu_erf;
            case Gate::relu: return kernels::Unary::relu;
            case Gate::sigmoid: return kernels::Unary::sigmoid;
        }
        return kernels::Unary::silu;
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = headrace::detail::attrs_ref<Attrs>(attrs);
        kernels::gated_f32(kernel_function(a.activation), args.in[0].as<float>(), args.in[1].as<float>(),
                           reinterpret_cast<float*>(args.out[0].data),
                           static_cast<std::size_t>(args.out[0].elements()), args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "gated_f32", .applies = &kernel_applies, .run = &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 15);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
            for (const auto* activation : {"silu", "gelu", "relu", "sigmoid"})
                for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 1, 3, 1, 2}, Shape{}})
                    list.push_back({{{.type = {t, shape}, .low = -5, .high = 5}, {.type = {t, shape}}},
                                    {{"activation", std::string(activation)}},
                                    sample_tolerance(t)});
        return list;
    }
};

}  // namespace

std::span<const OpDef> glu_ops() { return OpList<Glu>::defs(); }

}  // namespace headrace::ops
