/// Running sums.
#include <algorithm>
#include <array>

#include "emit/emit.h"
#include "ops/arithmetic.h"
#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct CumulativeSumAttrs {
    std::int64_t axis = 0;
    bool exclusive = false, reversed = false;
    static void fields(auto&& f) {
        f("axis", &CumulativeSumAttrs::axis, "dimension to sum along", kRequired);
        f("exclusive", &CumulativeSumAttrs::exclusive, "leave an element out of its own sum");
        f("reversed", &CumulativeSumAttrs::reversed, "sum from the end");
    }
};

/// One line of `count` elements, `step` apart; step is negative when the sum runs from the end.
template <class T>
void sum_line(const T* x, T* y, std::int64_t count, std::int64_t step, bool exclusive) {
    accumulator_t<T> sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto before = sum;
        sum = wrapping_add(sum, static_cast<accumulator_t<T>>(static_cast<compute_t<T>>(x[i * step])));
        y[i * step] = convert<T>(exclusive ? before : sum);
    }
}

struct CumulativeSum {
    static constexpr std::string_view name = "cumulative_sum",
                                      summary = "running sums along an axis; integers wrap";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kNumeric}};
    using Attrs = CumulativeSumAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(normalize_axis(a.axis, in[0].rank()));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Sizes shape = args.in[0].shape;
        const int axis = normalize_axis(a.axis, args.in[0].rank()).value();
        const std::int64_t extent = shape[axis], inner = dense_strides(shape)[axis];
        const std::int64_t elements = args.in[0].elements();
        if (elements == 0) return;
        const auto part = args.share.of(elements / extent);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t line = part.begin; line < part.end; ++line) {
                const std::int64_t first = line / inner * extent * inner + line % inner;
                const std::int64_t start = a.reversed ? first + (extent - 1) * inner : first;
                sum_line(args.in[0].as<T>() + start, args.out[0].as<T>() + start, extent,
                         a.reversed ? -inner : inner, a.exclusive);
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        const Dim& extent =
            in[0].shape[static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value())];
        if (extent.size() > composed::kMostPositions) return unsupported("extent {}", extent.size());
        return works_through_f32(in[0].dtype);
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto shape = in[0].sizes();
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value());
        const std::int64_t outer = extent_product(shape, 0, axis), extent = shape[axis],
                           inner = extent_product(shape, axis + 1, shape.size());
        const std::array lines{outer, extent, inner}, turned{outer, inner, extent};
        const std::array rows{outer * inner, extent};
        constexpr std::array exchange{0, 2, 1};
        ggml_tensor* y = e.reshape(to_f32(e, x[0], in[0].dtype), lines);
        if (a.reversed) y = composed::reversed_rows(e, y);
        if (inner > 1) y = e.contiguous(e.permute(y, exchange));
        y = e.cumulative_sum(e.reshape(y, rows));
        if (a.exclusive) y = moved_on(e, y);
        if (inner > 1) y = e.contiguous(e.permute(e.reshape(y, turned), exchange));
        if (a.reversed) y = composed::reversed_rows(e, e.reshape(y, lines));
        return {from_f32(e, y, in[0])};
    }
    /// Rows that begin with 0 and lack their last element.
    static ggml_tensor* moved_on(Emit& e, ggml_tensor* rows) {
        const std::int64_t count = Emit::extent(rows, 1), extent = Emit::extent(rows, 0);
        const auto part = [&](std::int64_t columns) {
            const std::array<std::int64_t, 2> start{0, 0}, size{count, columns};
            return e.contiguous(e.slice(rows, start, size));
        };
        ggml_tensor* first = e.fill(part(1), 0);
        return extent == 1 ? first : e.concat(first, part(extent - 1), 1, 2);
    }
    static constexpr std::array kernels{OnePass<CumulativeSum>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 1);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, std::int64_t axis, bool exclusive, bool reversed) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 5}},
                          {{"axis", axis}, {"exclusive", exclusive}, {"reversed", reversed}},
                          t == DType::f16 ? 2e-3 : 1e-5};
        };
        return {sample(DType::f32, {7}, 0, false, false),
                sample(DType::f32, {3, 5}, 1, true, false),
                sample(DType::f32, {3, 5}, 0, false, true),
                sample(DType::f32, {2, 1, 3, 1, 2}, -3, true, true),
                sample(DType::f16, {2, 3, 4}, 1, false, false),
                sample(DType::i32, {3, 6}, 1, false, true),
                sample(DType::u64, {3, 6}, 0, true, false)};
    }
};

}  // namespace

std::span<const OpDef> cumulative_sum_ops() { return OpList<CumulativeSum>::defs(); }

}  // namespace headrace::ops
