/// New entries of a key-value cache: a state's rows at given positions, in place.
#include <array>
#include <cstring>

#include "emit/emit.h"
#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct CacheUpdate {
    static constexpr std::string_view
        name = "cache_update",
        summary = "the state's slices at the positions along an axis take those of the update, in place";
    static constexpr std::array operands{
        OperandRule{.name = "state", .dtypes = kNumeric, .min_rank = 1},
        OperandRule{.name = "positions", .dtypes = kIndices, .min_rank = 1, .max_rank = 1},
        OperandRule{.name = "update", .dtypes = kNumeric, .same_dtype_as = 0}};
    static constexpr int writes_state = 0;

    struct Attrs {
        std::int64_t axis = 0;
        static void fields(auto&& f) {
            f("axis", &Attrs::axis, "dimension in which the positions count; the last of equal ones wins");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        HR_TRY(check_indexable(in[0], axis, in[1]));
        Shape expected = in[0].shape;
        expected[static_cast<std::size_t>(axis)] = in[1].shape[0];
        if (!same_shape(in, in[2].shape, expected))
            return invalid("update has shape {}; {} positions in dimension {} of a state {} take {}",
                           str(in[2].shape), in[1].shape[0].str(), axis, str(in[0].shape), str(expected));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto shape = args.out[0].shape;
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, args.out[0].rank()).value());
        const auto size = static_cast<std::int64_t>(bytes_of(args.out[0].dtype, 1));
        const std::int64_t outer = extent_product(shape, 0, axis), extent = shape[axis],
                           inner = extent_product(shape, axis + 1, shape.size()) * size;
        const std::int64_t count = args.in[1].elements();
        const Indices positions(args.in[1]);
        const auto part = args.share.of(outer * inner, 64);
        for (std::int64_t o = inner ? part.begin / inner : 0; o * inner < part.end; ++o) {
            const std::int64_t begin = std::max(part.begin, o * inner) - o * inner,
                               end = std::min(part.end, (o + 1) * inner) - o * inner;
            for (std::int64_t i = 0; i < count; ++i)
                std::memcpy(args.out[0].data + (o * extent + positions.at(i, extent)) * inner + begin,
                            args.in[2].data + (o * count + i) * inner + begin,
                            static_cast<std::size_t>(end - begin));
        }
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        // Several threads could write one row, in no known order.
        if (in[1].elements() != 1) return unsupported("{} positions, which may be equal", in[1].elements());
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("{}", name_of(in[0].dtype));
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value());
        if (in[0].shape[axis].size() > composed::kMostPositions)
            return unsupported("extent {}", in[0].shape[axis].size());
        return success();
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto shape = in[0].sizes();
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value());
        const std::array extents{extent_product(shape, 0, axis), shape[axis],
                                 extent_product(shape, axis + 1, shape.size())};
        const std::array rows{extents[0], std::int64_t{1}, extents[2]};
        ggml_tensor* update = e.reshape(to_f32(e, x[2], in[2].dtype), rows);
        ggml_tensor* at = composed::indices_within(e, x[1], in[1].dtype, extents[1]);
        return {e.shaped(e.set_rows(e.reshape(x[0], extents), update, at), in[0])};
    }
    /// ggml computes with the position first.
    static constexpr std::array kernels{OnePass<CacheUpdate>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType>, const Attrs&) {
        return {0, 2 * static_cast<double>(in[2].bytes())};
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape state, DType index, std::int64_t count, Shape update,
                               std::int64_t axis) {
            return Sample{{{.type = {t, std::move(state)}, .low = 0},
                           {.type = {index, {count}}, .low = index == DType::u32 ? 0. : -3., .high = 4},
                           {.type = {t, std::move(update)}, .low = 0}},
                          {{"axis", axis}}};
        };
        return {sample(DType::f32, {2, 3, 5, 4}, DType::i64, 2, {2, 3, 2, 4}, 2),
                sample(DType::f32, {7}, DType::i32, 3, {3}, 0),
                sample(DType::f32, {2, 5, 3}, DType::i32, 1, {2, 1, 3}, 1),
                sample(DType::f16, {4, 6}, DType::u32, 1, {4, 1}, -1),
                sample(DType::i64, {2, 2, 2, 1, 2}, DType::i64, 3, {3, 2, 2, 1, 2}, 0)};
    }
};

}  // namespace

std::span<const OpDef> cache_update_ops() { return OpList<CacheUpdate>::defs(); }

}  // namespace headrace::ops
