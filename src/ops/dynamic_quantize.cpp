/// Quantisation by the range of the numbers that a run has.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/int8/quantize_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantize.h"

namespace headrace::ops {
namespace {

struct DynamicQuantizeLinear {
    static constexpr std::string_view
        name = "dynamic_quantize_linear",
        summary = "input in u8 by its range, which is widened to hold 0; its scale; its zero point";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = {DType::f32}}};
    static constexpr int outputs = 3;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        return Types{{DType::u8, in[0].shape}, {DType::f32, {}}, {DType::u8, {}}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const ConstView& x = args.in[0];
        float lowest = 0, highest = 0;
        for (std::int64_t i = 0; i < x.elements(); ++i) {
            const float value = x.as<float>()[i];
            if (!(value >= lowest)) lowest = value;
            if (!(value <= highest)) highest = value;
            if (std::isnan(value)) break;
        }
        const kernels::ByteRange range = kernels::byte_range_of(lowest, highest);
        if (args.share.ith == 0) {
            args.out[1].as<float>()[0] = range.scale;
            args.out[2].as<std::uint8_t>()[0] = range.zero;
        }
        const auto part = args.share.of(x.elements(), 64);
        for (std::int64_t i = part.begin; i < part.end; ++i)
            args.out[0].as<std::uint8_t>()[i] = static_cast<std::uint8_t>(
                quantize(x.as<float>()[i] / range.scale, range.zero, integer_range(DType::u8)));
    }

    static bool applies(const Operands&, std::span<const bool>, const void*) { return true; }
    static void run(const TensorArgs& args, const void*) {
        headrace::kernels::quantize_by_range_f32(args.in[0].as<float>(), args.out[0].as<std::uint8_t>(),
                                                 args.out[1].as<float>(), args.out[2].as<std::uint8_t>(),
                                                 static_cast<std::size_t>(args.in[0].elements()),
                                                 args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "quantize_by_range_f32", .applies = &applies, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 6);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](Shape shape, double low, double high) {
            return Sample{{{.type = {DType::f32, std::move(shape)}, .low = low, .high = high}}, {}, 0};
        };
        return {sample({2, 3, 65}, -3, 5), sample({200}, 1, 7), sample({7}, -4, -2), sample({}, 0, 0)};
    }
};

}  // namespace

std::span<const OpDef> dynamic_quantize_ops() { return OpList<DynamicQuantizeLinear>::defs(); }

}  // namespace headrace::ops
