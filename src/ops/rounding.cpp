/// Functions of one operand whose values are whole.
#include <array>
#include <cmath>

#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

template <class Self, DTypeSet kTypes>
struct RoundingOp {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kTypes}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) { return same_type(in[0]); }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_allowed<kTypes>(args.in[0].dtype, [&]<class T>() {
            map_elements<T, T>(args, [](auto x) { return Self::apply(x); });
        });
    }
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs&) {
        return {from_f32(e, Self::emit(e, to_f32(e, x[0], in[0].dtype)), in[0])};
    }
    static constexpr std::array kernels{OnePass<Self>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }
    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::i64})
            if (kTypes.has(t))
                for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 1, 3, 1, 2}, Shape{}})
                    list.push_back({{{.type = {t, shape}, .low = -3, .high = 3}}, {}});
        return list;
    }
};

struct RoundEven : RoundingOp<RoundEven, kFloats> {
    static constexpr std::string_view name = "round_even",
                                      summary = "nearest integer, halves to the even one";
    template <class T>
    static T apply(T x) {
        return std::nearbyint(x);
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return composed::round_even(e, x); }
};

struct Sign : RoundingOp<Sign, kFloats | kSigned> {
    static constexpr std::string_view name = "sign",
                                      summary = "-1, 0 or 1 as x is negative, 0 or positive; NaN stays";
    template <class T>
    static T apply(T x) {
        return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* x) { return composed::sign(e, x); }
};

}  // namespace

std::span<const OpDef> rounding_ops() { return OpList<RoundEven, Sign>::defs(); }

}  // namespace headrace::ops
