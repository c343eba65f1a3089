/// Elements in order.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "base/run_stop.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct SortAttrs {
    std::int64_t axis = 0;
    bool descending = false;
    std::optional<std::int64_t> count;
    static void fields(auto&& f) {
        f("axis", &SortAttrs::axis, "dimension to sort along", kRequired);
        f("descending", &SortAttrs::descending, "largest first");
        f("count", &SortAttrs::count, "how many of the first elements to give; absent: all");
    }
};

/// Positions of the first `count` elements of a line in order. NaN is larger than all numbers; equal elements
/// keep their order.
template <class T>
void order_line(const T* x, std::int64_t stride, bool descending, std::int64_t count,
                std::vector<std::int64_t>& order) {
    const auto value = [&](std::int64_t i) { return static_cast<compute_t<T>>(x[i * stride]); };
    const auto less = [&](auto a, auto b) { return a < b || (a == a && b != b); };
    StopCheck may_stop;
    const auto before = [&](std::int64_t i, std::int64_t j) {
        may_stop();
        const auto a = value(i), b = value(j);
        if (descending ? less(b, a) : less(a, b)) return true;
        return (descending ? !less(a, b) : !less(b, a)) && i < j;
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(), before);
}

struct Sort {
    static constexpr std::string_view
        name = "sort",
        summary = "the elements along an axis in order, and their positions (i64); NaN is largest";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kNumeric | DTypeSet{DType::boolean}, .min_rank = 1}};
    static constexpr int outputs = 2;
    using Attrs = SortAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        TensorType values = in[0];
        if (a.count) {
            Dim& extent = values.shape[static_cast<std::size_t>(axis)];
            if (*a.count < 0 || !at_least(in, extent, *a.count))
                return invalid("count is {}, must be within 0 and {}, the extent of dimension {}", *a.count,
                               extent.str(), axis);
            extent = *a.count;
        }
        return Types{values, {DType::i64, values.shape}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Sizes shape = args.in[0].shape;
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, args.in[0].rank()).value());
        const std::int64_t extent = shape[axis], inner = dense_strides(shape)[axis];
        const std::int64_t count = args.out[0].shape[axis];
        if (args.out[0].elements() == 0) return;
        const auto part = args.share.of(args.in[0].elements() / extent);
        std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t line = part.begin; line < part.end; ++line) {
                const T* x = args.in[0].as<T>() + line / inner * extent * inner + line % inner;
                const std::int64_t first = line / inner * count * inner + line % inner;
                order_line(x, inner, a.descending, count, order);
                for (std::int64_t i = 0; i < count; ++i) {
                    const std::int64_t at = order[static_cast<std::size_t>(i)];
                    args.out[0].as<T>()[first + i * inner] = x[at * inner];
                    args.out[1].as<std::int64_t>()[first + i * inner] = at;
                }
            }
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 20);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, NamedAttrs attrs) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 9}}, std::move(attrs)};
        };
        const std::int64_t last = -1, first = 0, middle = 1, three = 3;
        return {sample(DType::f32, {7}, {{"axis", first}}),
                sample(DType::f32, {3, 5}, {{"axis", last}, {"descending", true}}),
                sample(DType::f16, {2, 4, 3}, {{"axis", middle}, {"count", three}}),
                sample(DType::i32, {3, 6}, {{"axis", first}, {"descending", true}, {"count", three}}),
                sample(DType::u8, {2, 5}, {{"axis", last}})};
    }
};

}  // namespace

std::span<const OpDef> sort_ops() { return OpList<Sort>::defs(); }

}  // namespace headrace::ops
