/// Joining tensors along an axis.
#include <algorithm>
#include <array>
#include <cstring>

#include "emit/emit.h"
#include "ir/expression.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct ConcatAttrs {
    std::int64_t axis = 0;
    static void fields(auto&& f) {
        f("axis", &ConcatAttrs::axis, "dimension to join; all others must agree", kRequired);
    }
};

struct Concat {
    static constexpr std::string_view name = "concat", summary = "the inputs one after another along an axis";
    static constexpr std::array operands{OperandRule{.name = "inputs", .dtypes = kAny, .min_rank = 1}};
    static constexpr bool variadic = true;
    static constexpr LayoutRule layout = LayoutRule::axes;

    using Attrs = ConcatAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        TensorType out = in[0];
        for (int i = 1; i < in.size(); ++i) {
            if (in[i].rank() != out.rank())
                return invalid("inputs have ranks {} and {} (input {}); all must be equal", out.rank(),
                               in[i].rank(), i);
            for (int d = 0; d < out.rank(); ++d)
                if (d != axis && !same_extent(in, in[i].shape[d], in[0].shape[d]))
                    return invalid(
                        "Incompatible shapes {} and {} (input {}): dimension {} differs, only axis {} may",
                        str(in[0].shape), str(in[i].shape), i, d, axis);
            HR_ASSIGN(out.shape[axis], sum(out.shape[axis], in[i].shape[axis]));
        }
        return Types{out};
    }

    static std::optional<int> same_as(const Operands& in, const Attrs&) {
        if (in.size() == 1) return 0;
        return std::nullopt;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            const int axis = normalize_axis(a.axis, view.out[0].rank()).value();
            std::int64_t outer = 1, inner = static_cast<std::int64_t>(element_bytes(view.out[0].dtype));
            for (int d = 0; d < axis; ++d) outer *= view.out[0].shape[d];
            for (int d = axis + 1; d < view.out[0].rank(); ++d) inner *= view.out[0].shape[d];
            const std::int64_t row = view.out[0].shape[axis] * inner;
            std::int64_t at = 0;
            for (const ConstView& in : view.in) {
                copy_rows(in.data, in.shape[axis] * inner, view.out[0].data + at, row, outer, view.share);
                at += in.shape[axis] * inner;
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs&) {
        constexpr DTypeSet kJoined{DType::f32, DType::f16, DType::bf16, DType::i32, DType::i16, DType::i8};
        if (!kJoined.has(in[0].dtype)) return unsupported("{}", name_of(in[0].dtype));
        return success();
    }

    /// As [before, axis, after], which every rank fits.
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const int axis = normalize_axis(a.axis, in[0].rank()).value();
        std::int64_t before = 1, after = 1;
        for (int d = 0; d < axis; ++d) before *= in[0].shape[d].size();
        for (int d = axis + 1; d < in[0].rank(); ++d) after *= in[0].shape[d].size();
        ggml_tensor* joined = nullptr;
        for (int i = 0; i < in.size(); ++i) {
            const std::array extents{before, in[i].shape[axis].size() * after};
            ggml_tensor* part = e.reshape(x[i], extents);
            joined = joined ? e.concat(joined, part, 1, 2) : part;
        }
        return {e.shaped(joined, infer(in, a).value()[0])};
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, std::vector<Shape> shapes, std::int64_t axis) {
            Sample s{{}, {{"axis", axis}}};
            for (Shape& shape : shapes)
                s.operands.push_back({.type = {t, std::move(shape)}, .low = 0, .high = 7});
            return s;
        };
        Sample many = sample(DType::f32, std::vector<Shape>(12, Shape{2, 3}), 1);
        many.operands[3].constant = true;
        return {sample(DType::f32, {{4}, {8}, {12}}, 0),
                sample(DType::f32, {{2, 3, 1}, {2, 1, 1}}, 1),
                sample(DType::f32, {{2, 2, 3}, {2, 2, 1}}, -1),
                sample(DType::f32, {{3, 1, 1, 2, 2}, {3, 1, 2, 2, 2}}, 2),
                std::move(many),
                sample(DType::f16, {{2, 3}, {1, 3}}, 0),
                sample(DType::i32, {{2, 3}, {2, 2}}, 1),
                sample(DType::i64, {{2, 3}, {2, 2}}, 1),
                sample(DType::u8, {{2, 3}, {2, 2}}, 1),
                sample(DType::i8, {{5}, {2}}, 0),
                sample(DType::u4, {{3, 1}, {3, 2}}, 1)};
    }

private:
    static Result<Dim> sum(const Dim& a, const Dim& b) {
        if (a.is_symbolic() || b.is_symbolic()) return symbolic_sum(a, b);
        std::int64_t size = 0;
        if (__builtin_add_overflow(a.size(), b.size(), &size))
            return invalid("extents {} and {} add up to more than the largest integer", a.size(), b.size());
        return Dim(size);
    }
    static Dim symbolic_sum(const Dim& a, const Dim& b) {
        if (a.is(0)) return b;
        if (b.is(0)) return a;
        // Bounds that are found term by term may lie below what an extent can be.
        const std::int64_t least_a = std::max<std::int64_t>(a.min_size(), 0),
                           least_b = std::max<std::int64_t>(b.min_size(), 0);
        std::int64_t low = 0, high = 0;
        if (__builtin_add_overflow(least_a, least_b, &low)) low = INT64_MAX;
        if (__builtin_add_overflow(a.max_size(), b.max_size(), &high)) high = INT64_MAX;
        return Dim::of(Expression(a) + Expression(b), {low, high});
    }
    static void copy_rows(const std::byte* from, std::int64_t bytes, std::byte* to, std::int64_t to_stride,
                          std::int64_t rows, Share share) {
        auto part = share.of(rows * bytes, 64);
        while (part.begin < part.end) {
            const std::int64_t row = part.begin / bytes, at = part.begin % bytes;
            const std::int64_t count = std::min(bytes - at, part.end - part.begin);
            std::memcpy(to + row * to_stride + at, from + part.begin, static_cast<std::size_t>(count));
            part.begin += count;
        }
    }
    static bool always(const Operands&, std::span<const bool>, const void*) { return true; }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<ConcatAttrs>(attrs));
    }

public:
    /// ggml joins two tensors at a time and copies element by element; the reference copies rows once.
    static constexpr std::array kernels{KernelDef{.name = "copy_rows", .applies = &always, .run = &run}};
};

}  // namespace

std::span<const OpDef> concat_ops() { return OpList<Concat>::defs(); }

}  // namespace headrace::ops
