/// Sums of whole numbers that stand for real ones.
#include <array>

#include "kernels/whole/quantise_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantized.h"

namespace headrace::ops {
namespace {

struct QuantizedAdd {
    static constexpr std::string_view
        name = "quantized_add",
        summary =
            "(a - a_zero_point) * a_scale + (b - b_zero_point) * b_scale, / scale, "
            "rounded to even, + zero_point, saturated; tensors of one shape";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kBytes},
        OperandRule{.name = "b", .dtypes = kBytes},
        OperandRule{.name = "a_scale", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "b_scale", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "scale", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "a_zero_point", .dtypes = kBytes, .same_dtype_as = 0, .max_rank = 0},
        OperandRule{.name = "b_zero_point", .dtypes = kBytes, .same_dtype_as = 1, .max_rank = 0},
        kResultZero};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = WholeLimits;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(a.check());
        if (!same_shape(in, in[0].shape, in[1].shape))
            return invalid("a has shape {} and b {}; they must be equal", str(in[0].shape), str(in[1].shape));
        return Types{{in[7].dtype, in[0].shape}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto scale = [&](int i) { return static_cast<double>(args.in[i].as<float>()[0]); };
        const auto zero = [&](int i) { return whole_at(args.in[i], 0); };
        // In doubles, so that no compiler fuses what has to be rounded twice.
        const auto real = [&](int i, std::int64_t at) {
            return static_cast<double>(
                static_cast<float>((whole_at(args.in[i], at) - zero(5 + i)) * scale(2 + i)));
        };
        const DType type = args.out[0].dtype;
        const auto part = args.share.of(args.out[0].elements(), 64);
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            const auto sum = static_cast<float>(real(0, i) + real(1, i));
            store_rounded(args.out[0], i, sum / args.in[4].as<float>()[0], zero(7), a.low(type),
                          a.high(type));
        }
    }

    static bool applies(const Operands&, std::span<const bool>, const void*) { return true; }
    static void run(const TensorArgs& args, const void* attrs) {
        const auto& limits = detail::attrs_ref<Attrs>(attrs);
        const auto operand = [&](int i) -> kernels::Scaled {
            return {{args.in[i].data, args.in[i].dtype == DType::i8},
                    args.in[2 + i].as<float>()[0],
                    whole_at(args.in[5 + i], 0)};
        };
        const DType type = args.out[0].dtype;
        kernels::whole_add({.a = operand(0),
                            .b = operand(1),
                            .y_scale = args.in[4].as<float>()[0],
                            .y_zero = whole_at(args.in[7], 0),
                            .low = limits.low(type),
                            .high = limits.high(type),
                            .y = args.out[0].data,
                            .is_signed = type == DType::i8,
                            .n = static_cast<std::size_t>(args.out[0].elements())},
                           args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{KernelDef{.name = "whole_add", .applies = &applies, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 6);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType a, DType b, DType y, Shape shape, NamedAttrs attrs) {
            const auto whole = [](DType t, Shape s, bool constant) {
                const double low = t == DType::i8 ? -128 : 0;
                return SampleOperand{
                    .type = {t, std::move(s)}, .low = low, .high = low + 255, .constant = constant};
            };
            const SampleOperand scale{.type = {DType::f32, {}}, .low = 0.01, .high = 0.03, .constant = true};
            list.push_back({{whole(a, shape, false), whole(b, shape, false), scale, scale, scale,
                             whole(a, {}, true), whole(b, {}, true), whole(y, {}, true)},
                            std::move(attrs),
                            0});
        };
        for (const DType a : {DType::u8, DType::i8})
            for (const DType b : {DType::u8, DType::i8})
                for (const DType y : {DType::u8, DType::i8}) add(a, b, y, {3, 5, 7}, {});
        add(DType::u8, DType::u8, DType::u8, {130},
            {{"min_value", std::int64_t{7}}, {"max_value", std::int64_t{99}}});
        return list;
    }
};

}  // namespace

std::span<const OpDef> quantized_binary_ops() { return OpList<QuantizedAdd>::defs(); }

}  // namespace headrace::ops
