/// Sums of integers that stand for real ones.
#include <array>

#include "kernels/int8/quantize_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantized.h"

namespace headrace::ops {
namespace {

struct QuantizedAddAttrs : Int8Limits {
    DType data_type = DType::u8;
    static void fields(auto&& f) {
        f("data_type", &QuantizedAddAttrs::data_type, "of the result: i8 or u8", kRequired);
        Int8Limits::fields(f);
    }
};

struct QuantizedAdd {
    static constexpr std::string_view
        name = "quantized_add",
        summary =
            "a * a_ratio + (b * b_ratio + shift), rounded to even, saturated; tensors "
            "of one shape";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kBytes}, OperandRule{.name = "b", .dtypes = kBytes},
        OperandRule{.name = "a_ratio", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "b_ratio", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "shift", .dtypes = {DType::f32}, .max_rank = 0}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = QuantizedAddAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(a.check());
        if (!kBytes.has(a.data_type))
            return invalid("data_type is {}; i8 and u8 are possible", name_of(a.data_type));
        if (!same_shape(in, in[0].shape, in[1].shape))
            return invalid("a has shape {} and b {}; they must be equal", str(in[0].shape), str(in[1].shape));
        return Types{{a.data_type, in[0].shape}};
    }

    static float number(const TensorArgs& args, int i) { return args.in[i].as<float>()[0]; }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const double a_ratio = number(args, 2), b_ratio = number(args, 3), shift = number(args, 4);
        // In doubles, so that no compiler fuses what has to be rounded at each step.
        const auto rounded = [](double x) { return static_cast<double>(static_cast<float>(x)); };
        const IntegerRange limits = a.of(a.data_type);
        const auto part = args.share.of(args.out[0].elements(), 64);
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            const double right = rounded(rounded(int8_at(args.in[1], i) * b_ratio) + shift);
            const double sum = rounded(int8_at(args.in[0], i) * a_ratio) + right;
            store_rounded(args.out[0], i, static_cast<float>(sum), 0, limits);
        }
    }

    static bool applies(const Operands&, std::span<const bool>, const void*) { return true; }
    static void run(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        const IntegerRange limits = a.of(a.data_type);
        headrace::kernels::int8_add({.a = bytes_of(args.in[0]),
                                     .b = bytes_of(args.in[1]),
                                     .a_ratio = number(args, 2),
                                     .b_ratio = number(args, 3),
                                     .shift = number(args, 4),
                                     .low = static_cast<std::int32_t>(limits.low),
                                     .high = static_cast<std::int32_t>(limits.high),
                                     .y = args.out[0].data,
                                     .is_signed = a.data_type == DType::i8,
                                     .n = static_cast<std::size_t>(args.out[0].elements())},
                                    args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{KernelDef{.name = "int8_add", .applies = &applies, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 4);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType a, DType b, DType y, Shape shape, NamedAttrs attrs) {
            const auto integer = [&](DType t) {
                const double low = t == DType::i8 ? -128 : 0;
                return SampleOperand{.type = {t, shape}, .low = low, .high = low + 255};
            };
            const auto real = [](double low, double high) {
                return SampleOperand{.type = {DType::f32, {}}, .low = low, .high = high, .constant = true};
            };
            attrs.emplace_back("data_type", y);
            list.push_back({{integer(a), integer(b), real(0.2, 1.5), real(0.2, 1.5), real(-50, 50)},
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
