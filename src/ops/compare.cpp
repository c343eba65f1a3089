/// Comparisons, predicates and logic. Truth is 1 and 0, in u8.
#include <array>
#include <cmath>

#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/repetition.h"

namespace headrace::ops {
namespace {

constexpr DTypeSet kComparable = kNumeric | DTypeSet{DType::boolean};

Sample truth_sample(DType t, Shape a, Shape b, double low = -2, double high = 2) {
    return {{{.type = {t, std::move(a)}, .low = low, .high = high},
             {.type = {t, std::move(b)}, .low = low, .high = high}},
            {}};
}

/// Self::test(a, b) of two operands of any one type.
template <class Self>
struct CompareOp {
    static constexpr std::array operands{OperandRule{.name = "a", .dtypes = kComparable},
                                         OperandRule{.name = "b", .dtypes = kComparable, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(Shape shape, broadcast(in, in[0].shape, in[1].shape));
        return Types{{DType::u8, std::move(shape)}};
    }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            zip_elements<T, std::uint8_t>(args, [](auto a, auto b) { return Self::test(a, b); });
        });
    }
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& none) {
        const auto sizes = infer(in, none).value()[0].sizes();
        const auto whole = [&](int i) {
            return e.flatten(repeat_to(e, to_f32(e, x[i], in[i].dtype), in[i].sizes(), sizes));
        };
        return {e.bytes_of_truth(composed::compared(e, Self::kRelation, whole(0), whole(1)))};
    }
    static constexpr std::array kernels{OnePass<Self>::kKernel};
    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }
    static std::vector<Sample> samples() {
        return {truth_sample(DType::f32, {2, 3, 4}, {2, 3, 4}),
                truth_sample(DType::f32, {}, {}),
                truth_sample(DType::f32, {3}, {2, 3}),
                truth_sample(DType::f16, {2, 3}, {1, 3}),
                truth_sample(DType::i32, {4, 1}, {1, 5}),
                truth_sample(DType::i64, {2, 1, 3, 1, 2}, {3, 2, 1}),
                truth_sample(DType::u8, {6}, {6}, 0, 2),
                truth_sample(DType::f64, {3}, {})};
    }
};

/// Self::test(a, b) of two truth values; the output has the operands' type.
template <class Self>
struct LogicalOp {
    static constexpr std::array operands{OperandRule{.name = "a", .dtypes = kTruth},
                                         OperandRule{.name = "b", .dtypes = kTruth, .same_dtype_as = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(Shape shape, broadcast(in, in[0].shape, in[1].shape));
        return Types{{in[0].dtype, std::move(shape)}};
    }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        zip_elements<std::uint8_t, std::uint8_t>(args,
                                                 [](auto a, auto b) { return Self::test(a != 0, b != 0); });
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }
    static std::vector<Sample> samples() {
        return {truth_sample(DType::u8, {2, 3, 4}, {2, 3, 4}, 0, 2), truth_sample(DType::u8, {}, {}, 0, 1),
                truth_sample(DType::u8, {3, 1}, {1, 4}, 0, 2),
                truth_sample(DType::boolean, {5}, {2, 5}, 0, 1)};
    }
};

/// Self::test(x) of one operand.
template <class Self, DTypeSet kTypes>
struct PredicateOp {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kTypes}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        const bool truth = in[0].dtype == DType::boolean;
        return Types{{truth ? DType::boolean : DType::u8, in[0].shape}};
    }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_allowed<kTypes>(args.in[0].dtype, [&]<class T>() {
            map_elements<T, std::uint8_t>(args, [](auto x) { return Self::test(x); });
        });
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }
    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::u8, DType::boolean})
            if (kTypes.has(t))
                for (const Shape& shape : {Shape{2, 3, 4}, Shape{}, Shape{2, 1, 3, 1, 2}})
                    list.push_back({{{.type = {t, shape}, .low = 0, .high = 1}}, {}});
        return list;
    }
};

#define HR_COMPARE(Type, text, description, relation, expression)                     \
    struct Type : CompareOp<Type> {                                                   \
        static constexpr std::string_view name = text, summary = description;         \
        static constexpr composed::Relation kRelation = composed::Relation::relation; \
        static bool test(auto a, auto b) { return expression; }                       \
    };
#define HR_TEST(Type, text, description, base, parameters, expression)        \
    struct Type : base {                                                      \
        static constexpr std::string_view name = text, summary = description; \
        static bool test parameters { return expression; }                    \
    };

HR_COMPARE(Equal, "equal", "a == b", equal, a == b)
HR_COMPARE(NotEqual, "not_equal", "a != b", not_equal, a != b)
HR_COMPARE(Greater, "greater", "a > b", greater, a > b)
HR_COMPARE(GreaterOrEqual, "greater_or_equal", "a >= b", greater_or_equal, a >= b)
HR_COMPARE(Lesser, "lesser", "a < b", lesser, a < b)
HR_COMPARE(LesserOrEqual, "lesser_or_equal", "a <= b", lesser_or_equal, a <= b)

HR_TEST(LogicalAnd, "logical_and", "a and b; every non-zero value is true", LogicalOp<LogicalAnd>,
        (bool a, bool b), (a && b))
HR_TEST(LogicalOr, "logical_or", "a or b; every non-zero value is true", LogicalOp<LogicalOr>,
        (bool a, bool b), a || b)
HR_TEST(LogicalXor, "logical_xor", "either a or b; every non-zero value is true", LogicalOp<LogicalXor>,
        (bool a, bool b), a != b)

struct LogicalNot : PredicateOp<LogicalNot, kTruth> {
    static constexpr std::string_view name = "logical_not", summary = "1 where x is 0, else 0";
    static bool test(auto x) { return x == 0; }
};
struct IsNan : PredicateOp<IsNan, kFloats> {
    static constexpr std::string_view name = "is_nan", summary = "1 where x is not a number";
    static bool test(auto x) { return std::isnan(x); }
};
struct IsInfinite : PredicateOp<IsInfinite, kFloats> {
    static constexpr std::string_view name = "is_infinite",
                                      summary = "1 where x is an infinity of either sign";
    static bool test(auto x) { return std::isinf(x); }
};

#undef HR_TEST
#undef HR_COMPARE

}  // namespace

std::span<const OpDef> compare_ops() {
    return OpList<Equal, NotEqual, Greater, GreaterOrEqual, Lesser, LesserOrEqual, LogicalAnd, LogicalOr,
                  LogicalXor, LogicalNot, IsNan, IsInfinite>::defs();
}

}  // namespace headrace::ops
