/// Repetition of a tensor's elements.
#include <algorithm>
#include <array>

#include "emit/emit.h"
#include "ops/extents.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/repetition.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

void repeat(const TensorArgs& args) {
    move_elements(args, [](const TensorArgs& view) {
        const Repetition r = repetition(view.in[0].shape, view.out[0].shape);
        const auto dense = dense_strides(r.sizes);
        std::vector<std::int64_t> shape, strides;
        for (std::size_t i = 0; i < dense.size(); ++i) {
            shape.insert(shape.end(), {r.times[i], r.sizes[i]});
            strides.insert(strides.end(), {0, dense[i]});
        }
        strided_copy(view.in[0].data, 0, shape, strides, view.out[0].data, element_bytes(view.in[0].dtype),
                     view.share);
    });
}

Status repeat_lowerable(const TensorType& from, const TensorType& to) {
    constexpr DTypeSet kRepeated{DType::f32, DType::f16};
    if (from.elements() == to.elements()) return success();
    if (!kRepeated.has(from.dtype)) return unsupported("{}", name_of(from.dtype));
    return success();
}

/// What expand and tile share; Self gives name, summary, Attrs, infer and samples.
template <class Self, class A>
struct RepeatOp {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    using Attrs = A;

    static std::optional<int> same_as(const Operands& in, const A& a) {
        if (Self::infer(in, a).value()[0] == in[0]) return 0;
        return std::nullopt;
    }
    static void reference(const TensorArgs& args, const A&) { repeat(args); }
    static Status lowerable(const Operands& in, const A& a) {
        return repeat_lowerable(in[0], Self::infer(in, a).value()[0]);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const A& a) {
        const TensorType to = Self::infer(in, a).value()[0];
        if (in[0].elements() == to.elements()) return {e.shaped(x[0], to)};
        return {e.shaped(repeat_to(e, x[0], in[0].sizes(), to.sizes()), to)};
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const A&) {
        return elementwise_cost(in, out, 0);
    }

    static bool repeats(const Operands& in, std::span<const bool>, const void* attrs) {
        return Self::infer(in, detail::attrs_ref<A>(attrs)).value()[0].elements() != in[0].elements();
    }
    static void run(const TensorArgs& args, const void*) { repeat(args); }
    /// ggml repeats on one thread; where only the shape changes its view costs nothing.
    static constexpr std::array kernels{KernelDef{.name = "strided_copy", .applies = &repeats, .run = &run}};
};

struct ExpandAttrs {
    Shape new_shape;
    static void fields(auto&& f) {
        f("new_shape", &ExpandAttrs::new_shape, "the output's extents, to which the input broadcasts",
          kRequired);
    }
};

struct Expand : RepeatOp<Expand, ExpandAttrs> {
    static constexpr std::string_view name = "expand", summary = "the input broadcast to a shape";

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (in[0].rank() > static_cast<int>(a.new_shape.size()) ||
            !broadcasts_to(in, in[0].shape, a.new_shape))
            return invalid("Incompatible shapes: {} does not broadcast to {}", str(in[0].shape),
                           str(a.new_shape));
        return Types{{in[0].dtype, a.new_shape}};
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape from, Shape to) {
            return Sample{{{.type = {t, std::move(from)}, .low = 0, .high = 7}},
                          {{"new_shape", std::move(to)}}};
        };
        return {sample(DType::f32, {}, {24}),
                sample(DType::f32, {1, 6}, {4, 6}),
                sample(DType::f32, {4, 1}, {2, 4, 6}),
                sample(DType::f32, {2, 1, 3, 1, 2}, {2, 4, 3, 2, 2}),
                sample(DType::f32, {1, 3, 1}, {1, 1, 1, 1, 3, 1}),
                sample(DType::f16, {1, 3}, {2, 3}),
                sample(DType::i32, {3, 1}, {3, 5}),
                sample(DType::i64, {3, 1}, {3, 5}),
                sample(DType::u8, {1}, {2, 2, 3}),
                sample(DType::i4, {3, 1}, {3, 3})};
    }
};

struct TileAttrs {
    Shape repetitions;
    static void fields(auto&& f) {
        f("repetitions", &TileAttrs::repetitions, "how often the input is repeated along each dimension",
          kRequired);
    }
};

struct Tile : RepeatOp<Tile, TileAttrs> {
    static constexpr std::string_view name = "tile", summary = "copies of the input side by side";

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.repetitions.size() != in[0].shape.size())
            return invalid("repetitions {} must have one entry per dimension of {}", str(a.repetitions),
                           str(in[0].shape));
        TensorType out = in[0];
        for (std::size_t i = 0; i < a.repetitions.size(); ++i) {
            const Dim& times = a.repetitions[i];
            if (!at_least(in, times, 0))
                return invalid("repetitions {} must not be negative", str(a.repetitions));
            std::int64_t size = 0;
            if (out.shape[i].is_symbolic() || times.is_symbolic())
                out.shape[i] = product({out.shape[i], times});
            else if (__builtin_mul_overflow(out.shape[i].size(), times.size(), &size))
                return invalid("{} repetitions of extent {} are more than the largest integer", times.str(),
                               out.shape[i].size());
            else
                out.shape[i] = size;
        }
        return Types{out};
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape from, std::vector<std::int64_t> repetitions) {
            return Sample{{{.type = {t, std::move(from)}, .low = 0, .high = 7}},
                          {{"repetitions", std::move(repetitions)}}};
        };
        return {sample(DType::f32, {4}, {2}),
                sample(DType::f32, {}, {}),
                sample(DType::f32, {2, 3}, {3, 2}),
                sample(DType::f32, {2, 1, 3, 2, 1}, {1, 2, 1, 3, 2}),
                sample(DType::f32, {2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}),
                sample(DType::f16, {2, 3}, {1, 2}),
                sample(DType::u32, {2, 2}, {2, 3}),
                sample(DType::i16, {3, 2}, {2, 1}),
                sample(DType::u4, {3, 1}, {1, 3})};
    }
};

}  // namespace

std::span<const OpDef> expand_ops() { return OpList<Expand, Tile>::defs(); }

}  // namespace headrace::ops
