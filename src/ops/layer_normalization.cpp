/// Normalisation of each position's values over some axes.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernels/tensor/normalize_f32.h"
#include "ops/composed.h"
#include "ops/infer.h"
#include "ops/normalize.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct LayerNormalization {
    static constexpr std::string_view name = "layer_normalization",
                                      summary = "normalises over some axes, for each position of the others";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats},
        OperandRule{.name = "scale", .dtypes = kFloats, .same_dtype_as = 0, .optional = true},
        OperandRule{.name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};

    struct Attrs {
        std::optional<std::vector<std::int64_t>> axes;
        double epsilon = 1e-5;
        static void fields(auto&& f) {
            f("axes", &Attrs::axes, "axes over which to normalise; absent: all but the first");
            f("epsilon", &Attrs::epsilon, "added to the variance");
        }
    };

    /// The axes in the order in which scale and bias have them.
    static std::vector<int> axes_of(const Attrs& a, int rank) {
        std::vector<int> axes;
        if (a.axes)
            for (std::int64_t axis : *a.axes) axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
        else
            for (int i = 1; i < rank; ++i) axes.push_back(i);
        return axes;
    }

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.axes) HR_TRY(normalize_axes(*a.axes, in[0].rank()));
        Shape expected;
        for (int axis : axes_of(a, in[0].rank())) expected.push_back(in[0].shape[axis]);
        for (int i : {1, 2})
            if (in.has(i) && !same_shape(in, in[i].shape, expected))
                return invalid("{} has shape {} but the normalised axes have {}", operands[i].name,
                               str(in[i].shape), str(expected));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Sizes shape = args.in[0].shape;
        const auto strides = dense_strides(shape);
        const auto axes = axes_of(a, static_cast<int>(shape.size()));
        std::vector<std::int64_t> kept_sizes, kept_strides, offsets{0};
        for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
            if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
            kept_sizes.push_back(shape[d]);
            kept_strides.push_back(strides[d]);
        }
        for (int axis : axes) {  // offsets of one group, in the order of scale and bias
            std::vector<std::int64_t> next;
            next.reserve(offsets.size() * static_cast<std::size_t>(shape[axis]));
            for (std::int64_t offset : offsets)
                for (std::int64_t i = 0; i < shape[axis]; ++i) next.push_back(offset + i * strides[axis]);
            offsets = std::move(next);
        }
        const StridedWalk<1> groups(kept_sizes, {kept_strides});
        const auto count = static_cast<std::int64_t>(offsets.size());
        if (count == 0) return;
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            groups.run(args.share, [&](std::int64_t, const auto& starts, std::int64_t n, const auto& steps) {
                for (std::int64_t i = 0; i < n; ++i) {
                    const std::int64_t start = starts[0] + i * steps[0];
                    normalize(
                        args.in[0].as<T>() + start, args.out[0].as<T>() + start, count, a.epsilon,
                        [&](std::int64_t j) { return offsets[static_cast<std::size_t>(j)]; },
                        [&](std::int64_t j) {
                            return std::pair{read_or<T>(args, 1, j, 1), read_or<T>(args, 2, j, 0)};
                        });
                }
            });
        });
    }

    /// True when the axes are the last ones in order, so that every group is a row in memory.
    static bool is_by_rows(const Attrs& a, int rank) {
        const auto axes = axes_of(a, rank);
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (axes[i] != rank - static_cast<int>(axes.size()) + static_cast<int>(i)) return false;
        return !axes.empty();
    }
    static std::array<std::int64_t, 2> rows_of(Sizes shape, const Attrs& a) {
        const auto axes = axes_of(a, static_cast<int>(shape.size()));
        std::array<std::int64_t, 2> rows{1, 1};
        for (std::size_t i = 0; i < shape.size(); ++i)
            rows[std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end()] *= shape[i];
        return rows;
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return normalizes_through_f32(in[0].dtype, a.epsilon);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        const auto row = [&](ggml_tensor* v) { return to_f32(e, e.flatten(v), t); };
        const int rank = in[0].rank();
        const bool is_moved = !axes_of(a, rank).empty() && !is_by_rows(a, rank);
        const auto [extents, order] = with_axes_last(in[0].sizes(), a);
        ggml_tensor* y = to_f32(e, x[0], t);
        if (is_moved) y = composed::permuted(e, y, in[0].sizes(), order);
        y = e.norm(e.reshape(y, rows_of(in[0].sizes(), a)), static_cast<float>(a.epsilon));
        if (in.has(1)) y = e.binary(Binary::mul, y, row(x[1]));
        if (in.has(2)) y = e.binary(Binary::add, y, row(x[2]));
        if (is_moved) y = composed::permuted(e, y, extents, inverse_of(order));
        return {from_f32(e, y, in[0])};
    }
    /// The extents with the normalised dimensions behind the others, in the order of the axes, and which
    /// dimensions they are.
    static std::pair<std::vector<std::int64_t>, std::vector<int>> with_axes_last(Sizes shape,
                                                                                 const Attrs& a) {
        const auto axes = axes_of(a, static_cast<int>(shape.size()));
        std::vector<int> order;
        for (int d = 0; d < static_cast<int>(shape.size()); ++d)
            if (std::find(axes.begin(), axes.end(), d) == axes.end()) order.push_back(d);
        order.insert(order.end(), axes.begin(), axes.end());
        std::vector<std::int64_t> extents;
        for (int d : order) extents.push_back(shape[d]);
        return {extents, order};
    }
    static std::vector<int> inverse_of(const std::vector<int>& order) {
        std::vector<int> inverse(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int>(i);
        return inverse;
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        return in[0].dtype == DType::f32 && is_by_rows(detail::attrs_ref<Attrs>(attrs), in[0].rank());
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        const auto [rows, n] = rows_of(args.in[0].shape, a);
        kernels::layer_norm_f32({.rows = static_cast<std::size_t>(rows),
                                 .n = static_cast<std::size_t>(n),
                                 .x = args.in[0].as<float>(),
                                 .x_stride = static_cast<std::ptrdiff_t>(n),
                                 .scale = args.has(1) ? args.in[1].as<float>() : nullptr,
                                 .bias = args.has(2) ? args.in[2].as<float>() : nullptr,
                                 .y = args.out[0].as<float>(),
                                 .y_stride = static_cast<std::ptrdiff_t>(n),
                                 .eps = static_cast<float>(a.epsilon)},
                                args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "layer_norm_f32", .applies = &kernel_applies, .run = &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 8);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shape& shape, NamedAttrs attrs, std::optional<Shape> scale) {
            const SampleOperand vector{
                .type = {t, scale.value_or(Shape{})}, .constant = true, .absent = !scale};
            list.push_back({{{.type = {t, shape}}, vector, vector}, std::move(attrs), sample_tolerance(t)});
        };
        using Axes = std::vector<std::int64_t>;
        add(DType::f32, {4, 9, 48}, {{"axes", Axes{2}}, {"epsilon", 1e-3}}, Shape{48});
        add(DType::f32, {4, 9, 48}, {{"axes", Axes{-1}}}, std::nullopt);
        add(DType::f32, {4, 5, 6}, {}, Shape{5, 6});
        add(DType::f32, {2, 3, 2, 2, 2, 4}, {{"axes", Axes{4, 5}}}, Shape{2, 4});
        add(DType::f32, {2, 1, 4, 3}, {{"axes", Axes{0, 3, 1}}}, Shape{2, 3, 1});
        add(DType::f32, {2, 3}, {{"axes", Axes{}}}, Shape{});
        add(DType::f32, {}, {}, std::nullopt);
        for (DType t : {DType::f16, DType::bf16, DType::f64}) {
            add(t, {3, 32}, {}, Shape{32});
            add(t, {3, 4, 5}, {{"axes", Axes{1, 0}}}, Shape{4, 3});
        }
        return list;
    }
};

}  // namespace

std::span<const OpDef> layer_normalization_ops() { return OpList<LayerNormalization>::defs(); }

}  // namespace headrace::ops
