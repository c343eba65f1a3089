#pragma once
#include <array>
#include <vector>

#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"

/// Functions of two operands of one dtype with NumPy broadcasting.
namespace headrace::ops {

inline SampleOperand operand(DType t, Shape shape, double low, double high, bool constant = false) {
    return {.type = {t, std::move(shape)}, .low = low, .high = high, .constant = constant};
}

/// Self gives name, summary and `apply`, and perhaps a range of sample values and the operations of one
/// element.
template <class Self, DTypeSet kTypes = kNumeric>
struct BinaryOp {
    static constexpr std::array operands{OperandRule{.name = "a", .dtypes = kTypes},
                                         OperandRule{.name = "b", .dtypes = kTypes, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(Shape shape, broadcast(in, in[0].shape, in[1].shape));
        return Types{{in[0].dtype, std::move(shape)}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_allowed<kTypes>(args.in[0].dtype, [&]<class T>() {
            zip_elements<T, T>(args, [](auto a, auto b) { return Self::apply(a, b); });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, Self::kOperations);
    }

    static std::vector<Sample> samples() {
        const double low = Self::kLow, high = Self::kHigh;
        struct Shapes {
            Shape a, b;
        };
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shapes& s) {
            if (!kTypes.has(t)) return;
            const double tolerance = t == DType::f16 ? 2e-3 : 1e-5;
            list.push_back({{operand(t, s.a, low, high), operand(t, s.b, low, high)}, {}, tolerance});
        };
        const DType usual = kTypes.has(DType::f32) ? DType::f32 : DType::i32;
        for (const Shapes& s :
             {Shapes{{}, {}}, Shapes{{2, 3, 5}, {2, 3, 5}}, Shapes{{2, 3, 5}, {5}}, Shapes{{4}, {2, 3, 4}},
              Shapes{{2, 3, 4}, {}}, Shapes{{}, {3, 2}}, Shapes{{3, 1, 5}, {3, 4, 1}},
              Shapes{{2, 3, 1, 4}, {1, 3, 5, 1}}, Shapes{{2, 1, 2, 1, 3}, {1, 4, 1, 2, 3}},
              Shapes{{2, 3, 1, 2, 1, 2}, {1, 2, 1}}})
            add(usual, s);
        for (DType t : {DType::f16, DType::bf16, DType::f64, DType::i8, DType::i32, DType::i64})
            for (const Shapes& s : {Shapes{{2, 3}, {2, 3}}, Shapes{{3}, {2, 3}}, Shapes{{2, 1}, {1, 3}}})
                add(t, s);
        list.push_back({{operand(usual, {4, 6}, low, high), operand(usual, {6}, 1, 2, true)}, {}});
        return list;
    }

    static constexpr double kOperations = 1, kLow = -9, kHigh = 9;
};

}  // namespace headrace::ops
