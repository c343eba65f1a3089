/// Indices that must lie within extents, for doors whose operators do not clamp.
#include <array>
#include <cstring>

#include "ir/kernel_error.h"
#include "ops/checked.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct CheckedIndicesAttrs {
    Shape extents;
    static void fields(auto&& f) {
        f("extents", &CheckedIndicesAttrs::extents,
          "what they point into: one for all, or one for each of the last dimension", kRequired);
    }
};

struct CheckedIndices {
    static constexpr std::string_view name = "checked_indices",
                                      summary =
                                          "the indices themselves; a run in which one is outside [-extent, "
                                          "extent) fails";
    static constexpr std::array operands{OperandRule{.name = "indices", .dtypes = kIndices}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = CheckedIndicesAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const std::size_t count = a.extents.size();
        if (count == 0) return invalid("extents must have a value");
        if (count > 1 && (in[0].rank() == 0 || !in[0].shape.back().is(static_cast<std::int64_t>(count))))
            return invalid("extents {} are {} for indices {}", str(a.extents), count, str(in[0].shape));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto count = static_cast<std::int64_t>(a.extents.size());
        copy_checked<kIndices>(args, [&](std::int64_t i, std::int64_t index) {
            const std::int64_t extent = a.extents[static_cast<std::size_t>(i % count)].size();
            if (index < -extent || index >= extent)
                throw KernelError(fmt::format("index {} is outside the extent {}", index, extent));
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 2);
    }
    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, Shape extents) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 3}},
                          {{"extents", std::move(extents)}}};
        };
        return {sample(DType::i32, {2, 3}, {5}), sample(DType::i64, {4, 2}, {5, 4}),
                sample(DType::u32, {}, {9})};
    }
};

}  // namespace

std::span<const OpDef> checked_indices_ops() { return OpList<CheckedIndices>::defs(); }

}  // namespace headrace::ops
