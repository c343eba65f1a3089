/// A function of one byte, by a table.
#include <array>
#include <cstring>

#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantized.h"

namespace headrace::ops {
namespace {

struct ByteTable {
    static constexpr std::string_view name = "byte_table", summary = "table[x], where x counts from 0 to 255";
    static constexpr std::int64_t kBytesOfTable = 256;
    static constexpr std::array operands{
        OperandRule{.name = "x", .dtypes = kBytes},
        OperandRule{.name = "table", .dtypes = kBytes, .min_rank = 1, .max_rank = 1}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        if (!same_shape(in, in[1].shape, {kBytesOfTable}))
            return invalid("table has shape {}; it must have {} elements, those of negative numbers behind",
                           str(in[1].shape), kBytesOfTable);
        return Types{{in[1].dtype, in[0].shape}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const auto* x = reinterpret_cast<const std::uint8_t*>(args.in[0].data);
        // A copy, which what is written cannot change.
        std::array<std::uint8_t, kBytesOfTable> table;
        std::memcpy(table.data(), args.in[1].data, table.size());
        auto* y = reinterpret_cast<std::uint8_t*>(args.out[0].data);
        const auto part = args.share.of(args.out[0].elements(), 64);
        for (std::int64_t i = part.begin; i < part.end; ++i) y[i] = table[std::size_t{x[i]}];
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (const DType x : {DType::u8, DType::i8})
            for (const DType y : {DType::u8, DType::i8}) {
                const auto all = [](DType type, Shape shape, bool is_constant) {
                    const double low = type == DType::i8 ? -128 : 0;
                    return SampleOperand{.type = {type, std::move(shape)},
                                         .low = low,
                                         .high = low + 255,
                                         .constant = is_constant};
                };
                list.push_back({{all(x, {3, 5, 17}, false), all(y, {kBytesOfTable}, true)}, {}, 0});
            }
        return list;
    }
};

}  // namespace

std::span<const OpDef> byte_table_ops() { return OpList<ByteTable>::defs(); }

}  // namespace headrace::ops
