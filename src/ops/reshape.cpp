/// The same elements under another shape.
#include <algorithm>
#include <array>

#include "emit/emit.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct Reshape {
    static constexpr std::string_view name = "reshape",
                                      summary = "the same elements, row-major, in another shape";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};

    struct Attrs {
        Shape new_shape;
        static void fields(auto&& f) { f("new_shape", &Attrs::new_shape, "the output's extents", kRequired); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const TensorType type{in[0].dtype, a.new_shape};
        HR_TRY(type.check());
        const Dim from = product(in[0].shape), to = product(a.new_shape);
        if (same_extent(in, from, to)) return Types{type};
        return invalid("Reshape requires same number of elements, got {} ({}) and {} ({})", str(in[0].shape),
                       from.str(), str(a.new_shape), to.str());
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        if (in[0].shape == a.new_shape) return 0;
        return std::nullopt;
    }

    static void reference(const TensorArgs& args, const Attrs&) {
        const auto bytes = static_cast<std::int64_t>(bytes_of(args.in[0].dtype, args.in[0].elements()));
        const auto part = args.share.of(bytes, 64);
        std::copy(args.in[0].data + part.begin, args.in[0].data + part.end, args.out[0].data + part.begin);
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        return {e.shaped(x[0], {in[0].dtype, a.new_shape})};
    }

    static Cost cost(const Operands&, std::span<const TensorType>, const Attrs&) { return {}; }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape from, Shape to) {
            return Sample{{{.type = {t, std::move(from)}, .low = 0, .high = 7}},
                          {{"new_shape", std::move(to)}}};
        };
        return {sample(DType::f32, {2, 3, 4}, {4, 6}),
                sample(DType::f32, {2, 3, 2, 2}, {2, 3, 1, 2, 2, 1}),
                sample(DType::f16, {2, 1, 3, 2, 1, 2}, {12, 2}),
                sample(DType::i64, {1, 1}, {}),
                sample(DType::u32, {}, {1, 1, 1, 1, 1}),
                sample(DType::u8, {5, 3}, {3, 5}),
                sample(DType::i4, {3, 3}, {9})};
    }
};

}  // namespace

std::span<const OpDef> reshape_ops() { return OpList<Reshape>::defs(); }

}  // namespace headrace::ops
