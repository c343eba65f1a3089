/// Gated activations (arXiv:2002.05202): swiglu, geglu, reglu and glu are activation(gate) · x.
#include <array>

#include "emit/emit.h"
#include "kernels/tensor/elementwise_f32.h"
#include "ops/elementwise.h"
#include "ops/fused_activation.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct Glu {
    static constexpr std::string_view name = "glu", summary = "a gated linear unit: activation(gate) · x";
    static constexpr std::array operands{OperandRule{.name = "gate", .dtypes = kFloats},
                                         OperandRule{.name = "x", .dtypes = kFloats, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    struct Attrs {
        Activation activation = Activation::silu;
        static void fields(auto&& f) {
            f("activation", &Attrs::activation,
              "silu is swiglu, gelu (the erf form) and gelu_tanh geglu, sigmoid glu");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        if (!same_shape(in, in[0].shape, in[1].shape))
            return invalid("gate has shape {} but x has {}", str(in[0].shape), str(in[1].shape));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto part = args.share.of(args.out[0].elements(), 64);
        visit_allowed<kFloats>(args.in[0].dtype, [&]<class T>() {
            const T *gate = args.in[0].as<T>(), *x = args.in[1].as<T>();
            T* y = args.out[0].as<T>();
            for (std::int64_t i = part.begin; i < part.end; ++i)
                y[i] = convert<T>(activate(a.activation, convert<double>(gate[i])) * convert<double>(x[i]));
        });
    }

    static Status lowerable(const Operands& in, const Attrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        ggml_tensor* gate = lower_activation(e, a.activation, to_f32(e, x[0], t));
        return {from_f32(e, e.binary(Binary::mul, gate, to_f32(e, x[1], t)), in[0])};
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return in[0].dtype == DType::f32 && detail::attrs_ref<Attrs>(attrs).activation != Activation::none;
    }
    static kernels::Unary kernel_function(Activation gate) {
        switch (gate) {
            case Activation::none: break;
            case Activation::relu: return kernels::Unary::relu;
            case Activation::gelu: return kernels::Unary::gelu_erf;
            case Activation::tanh: return kernels::Unary::tanh;
            case Activation::sigmoid: return kernels::Unary::sigmoid;
            case Activation::silu: return kernels::Unary::silu;
            case Activation::gelu_tanh: return kernels::Unary::gelu_tanh;
        }
        return kernels::Unary::silu;
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
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
            for (const std::string_view activation : detail::kEnumNames<Activation>)
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
