/// Reductions over axes.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "emit/emit.h"
#include "ops/arithmetic.h"
#include "ops/composed.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/reduction.h"

namespace headrace::ops {
namespace {

struct ReduceAttrs {
    std::optional<std::vector<std::int64_t>> axes;
    bool keep_dimensions = false;
    static void fields(auto&& f) {
        f("axes", &ReduceAttrs::axes, "dimensions to reduce; all by default; none: every element by itself");
        f("keep_dimensions", &ReduceAttrs::keep_dimensions, "keep reduced dimensions with extent 1");
    }
};

Result<std::vector<int>> reduced_axes(const ReduceAttrs& a, int rank) {
    if (a.axes) return normalize_axes(*a.axes, rank);
    std::vector<int> all(rank);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

/// A kernel for f32 beside an op whose state is one of the vector reductions.
template <class Op, kernels::Reduction kKind>
struct VectorReduceOp {
    static bool applies(const Operands& in, std::span<const bool>, const void*) {
        return in[0].dtype == DType::f32;
    }
    static void run(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<ReduceAttrs>(attrs);
        const Groups groups(args.in[0].shape, reduced_axes(a, args.in[0].rank()).value());
        reduce<Op, ByVectors<kKind>>(args.in[0].as<float>(), args.out[0].as<float>(), groups, args.share);
    }
    static constexpr std::array kernels{KernelDef{.name = "reduce_f32", .applies = &applies, .run = &run}};
};

template <class Self, DTypeSet kTypes>
struct ReduceOp {
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kTypes}};
    static constexpr LayoutRule layout = LayoutRule::axes;
    using Attrs = ReduceAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const auto axes, reduced_axes(a, in[0].rank()));
        TensorType out{in[0].dtype, {}};
        for (int d = 0; d < in[0].rank(); ++d) {
            const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
            if (!reduced)
                out.shape.push_back(in[0].shape[d]);
            else if (a.keep_dimensions)
                out.shape.push_back(1);
        }
        return Types{out};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Groups groups(args.in[0].shape, reduced_axes(a, args.in[0].rank()).value());
        visit_allowed<kTypes>(args.in[0].dtype, [&]<class T>() {
            reduce<Self, OneByOne<Self, T>>(args.in[0].as<T>(), args.out[0].as<T>(), groups, args.share);
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = elementwise_cost(in, out, 0);
        cost.flops = Self::kOperations * static_cast<double>(in[0].elements());
        return cost;
    }

    static std::vector<Sample> samples() {
        using Axes = std::vector<std::int64_t>;
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape shape, std::optional<Axes> axes, bool keep) {
            if (!kTypes.has(t)) return;
            Sample s{{{.type = {t, std::move(shape)}, .low = Self::kLow, .high = Self::kHigh}},
                     {{"keep_dimensions", keep}},
                     t == DType::f16 ? 2e-3 : 1e-5};
            if (axes) s.attrs.emplace_back("axes", *axes);
            list.push_back(std::move(s));
        };
        for (DType t : {DType::f32, DType::f16, DType::f64, DType::i32, DType::u8, DType::i64}) {
            add(t, {2, 3, 4}, std::nullopt, false);
            add(t, {2, 3, 4}, Axes{-1}, true);
            add(t, {2, 3, 4}, Axes{0}, false);
        }
        add(DType::f32, {}, std::nullopt, false);
        add(DType::f32, {5}, Axes{}, true);
        add(DType::f32, {3, 2, 70}, Axes{1}, false);
        add(DType::f32, {2, 1, 3}, Axes{1}, false);
        add(DType::f32, {2, 3, 2, 5}, Axes{2, 3}, false);
        add(DType::f32, {2, 3, 2, 5}, Axes{1, 3}, true);
        add(DType::f32, {2, 3, 2, 2, 3}, Axes{3, 4, 2}, true);
        add(DType::f32, {2, 2, 2, 2, 2, 3}, Axes{0, 2, 4}, false);
        return list;
    }

    /// Defaults: most reductions start from 0, and what they accumulate is the result.
    template <class A>
    static A start() {
        return A(0);
    }
    template <class A>
    static A result(A accumulated, std::int64_t /*count*/) {
        return accumulated;
    }

    static constexpr double kOperations = 1, kLow = -2, kHigh = 2;
};

/// Reductions under which a single element is itself.
template <class Self, DTypeSet kTypes>
struct SelectingReduceOp : ReduceOp<Self, kTypes> {
    static std::optional<int> same_as(const Operands& in, const ReduceAttrs& a) {
        const auto axes = reduced_axes(a, in[0].rank()).value();
        for (int axis : axes)
            if (!in[0].shape[axis].is(1)) return std::nullopt;
        if (ReduceOp<Self, kTypes>::infer(in, a).value()[0] == in[0]) return 0;
        return std::nullopt;
    }
};

/// Reductions that ggml's of rows of f32 give: Self::emit_rows(e, rows) -> [rows, 1].
template <class Self>
struct RowLowering {
    static Status lowerable(const Operands& in, const ReduceAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const ReduceAttrs& a) {
        const Groups groups(in[0].sizes(), reduced_axes(a, in[0].rank()).value());
        const std::array<std::int64_t, 2> rows{groups.count(false), groups.count(true)};
        ggml_tensor* last = reduced_last(e, to_f32(e, x[0], in[0].dtype), groups);
        return {from_f32(e, Self::emit_rows(e, e.reshape(last, rows)), Self::infer(in, a).value()[0])};
    }

private:
    /// Moves one group of reduced dimensions after the other behind all others.
    static ggml_tensor* reduced_last(Emit& e, ggml_tensor* x, const Groups& groups) {
        std::int64_t behind = 1;  // elements that the moved ones take
        for (std::size_t i = groups.groups.size(); i-- > 0;) {
            std::int64_t outer = 1, inner = 1;
            if (!groups.groups[i].reduced) continue;
            for (std::size_t k = 0; k < groups.groups.size(); ++k) {
                const auto& group = groups.groups[k];
                if (k < i) outer *= group.size;
                if (k > i && !group.reduced) inner *= group.size;
            }
            const std::array extents{outer, groups.groups[i].size, inner, behind};
            if (inner > 1) x = e.contiguous(e.permute(e.reshape(x, extents), std::array{0, 2, 1, 3}));
            behind *= groups.groups[i].size;
        }
        return x;
    }
};

constexpr DTypeSet kOrdered = kNumeric | DTypeSet{DType::boolean};

struct ReduceSum : SelectingReduceOp<ReduceSum, kNumeric>,
                   RowLowering<ReduceSum>,
                   VectorReduceOp<ReduceSum, kernels::Reduction::sum> {
    static constexpr std::string_view name = "reduce_sum", summary = "sum over axes; integers wrap";
    template <class A>
    static void take(A& sum, A x) {
        sum = wrapping_add(sum, x);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return e.sum_rows(x); }
};

struct ReduceMean : SelectingReduceOp<ReduceMean, kFloats>,
                    RowLowering<ReduceMean>,
                    VectorReduceOp<ReduceMean, kernels::Reduction::sum> {
    static constexpr std::string_view name = "reduce_mean", summary = "mean over axes";
    template <class A>
    static void take(A& sum, A x) {
        sum += x;
    }
    template <class A>
    static A result(A sum, std::int64_t count) {
        return sum / static_cast<A>(count);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return e.mean_rows(x); }
};

template <class A>
constexpr A lowest() {
    return std::floating_point<A> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
}
template <class A>
constexpr A highest() {
    return std::floating_point<A> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
}

struct ReduceMax : SelectingReduceOp<ReduceMax, kOrdered>,
                   RowLowering<ReduceMax>,
                   VectorReduceOp<ReduceMax, kernels::Reduction::largest> {
    static constexpr std::string_view name = "reduce_max",
                                      summary = "largest element over axes; NaN if any is";
    template <class A>
    static A start() {
        return lowest<A>();
    }
    template <class A>
    static void take(A& best, A x) {
        best = x > best || x != x ? x : best;
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return composed::largest_of_rows(e, x); }
};

struct ReduceMin : SelectingReduceOp<ReduceMin, kOrdered>,
                   RowLowering<ReduceMin>,
                   VectorReduceOp<ReduceMin, kernels::Reduction::smallest> {
    static constexpr std::string_view name = "reduce_min",
                                      summary = "smallest element over axes; NaN if any is";
    template <class A>
    static A start() {
        return highest<A>();
    }
    template <class A>
    static void take(A& best, A x) {
        best = x < best || x != x ? x : best;
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) {
        return e.unary(Unary::neg, composed::largest_of_rows(e, e.unary(Unary::neg, x)));
    }
};

struct ReduceProduct : SelectingReduceOp<ReduceProduct, kNumeric>, RowLowering<ReduceProduct> {
    static constexpr std::string_view name = "reduce_product", summary = "product over axes; integers wrap";
    template <class A>
    static A start() {
        return A(1);
    }
    template <class A>
    static void take(A& product, A x) {
        product = wrapping_mul(product, x);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return composed::product_of_rows(e, x); }
    static constexpr std::array kernels{OnePass<ReduceProduct>::kKernel};
};

struct ReduceL1 : ReduceOp<ReduceL1, kNumeric>,
                  RowLowering<ReduceL1>,
                  VectorReduceOp<ReduceL1, kernels::Reduction::sum_of_magnitudes> {
    static constexpr std::string_view name = "reduce_l1", summary = "sum of |x| over axes; integers wrap";
    static constexpr double kOperations = 2;
    template <class A>
    static void take(A& sum, A x) {
        sum = x < A(0) ? wrapping_sub(sum, x) : wrapping_add(sum, x);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return e.sum_rows(e.unary(Unary::abs, x)); }
};

struct ReduceSumSquare : ReduceOp<ReduceSumSquare, kNumeric>,
                         RowLowering<ReduceSumSquare>,
                         VectorReduceOp<ReduceSumSquare, kernels::Reduction::sum_of_squares> {
    static constexpr std::string_view name = "reduce_sum_square",
                                      summary = "sum of x^2 over axes; integers wrap";
    static constexpr double kOperations = 2;
    template <class A>
    static void take(A& sum, A x) {
        sum = wrapping_add(sum, wrapping_mul(x, x));
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return e.sum_rows(e.unary(Unary::square, x)); }
};

struct ReduceL2 : ReduceOp<ReduceL2, kFloats>,
                  RowLowering<ReduceL2>,
                  VectorReduceOp<ReduceL2, kernels::Reduction::sum_of_squares> {
    static constexpr std::string_view name = "reduce_l2", summary = "square root of the sum of x^2 over axes";
    static constexpr double kOperations = 2;
    template <class A>
    static void take(A& sum, A x) {
        sum += x * x;
    }
    template <class A>
    static A result(A sum, std::int64_t) {
        return std::sqrt(sum);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) {
        return e.unary(Unary::sqrt, e.sum_rows(e.unary(Unary::square, x)));
    }
};

struct ReduceLogSum : ReduceOp<ReduceLogSum, kFloats>,
                      RowLowering<ReduceLogSum>,
                      VectorReduceOp<ReduceLogSum, kernels::Reduction::sum> {
    static constexpr std::string_view name = "reduce_log_sum", summary = "logarithm of the sum over axes";
    static constexpr double kLow = 0.1;
    template <class A>
    static void take(A& sum, A x) {
        sum += x;
    }
    template <class A>
    static A result(A sum, std::int64_t) {
        return std::log(sum);
    }
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) { return e.unary(Unary::log, e.sum_rows(x)); }
};

struct ReduceLogSumExp : ReduceOp<ReduceLogSumExp, kFloats>, RowLowering<ReduceLogSumExp> {
    static constexpr std::string_view name = "reduce_log_sum_exp",
                                      summary = "logarithm of the sum of e^x over axes";
    static constexpr double kOperations = 20;

    /// largest + log(sum) is the value so far; the shift keeps the exponentials from overflowing.
    struct State {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    };
    template <class A>
    static State start() {
        return {};
    }
    static void take(State& s, double x) {
        if (x == s.largest) {  // also infinities, whose difference is NaN
            s.sum += x == -std::numeric_limits<double>::infinity() ? 0 : 1;
        } else if (x > s.largest) {
            s.sum = s.sum * std::exp(s.largest - x) + 1;
            s.largest = x;
        } else {
            s.sum += std::exp(x - s.largest);
        }
    }
    static double result(const State& s, std::int64_t) { return s.largest + std::log(s.sum); }

    /// Finite shifts keep infinities.
    static Emit::Tensor emit_rows(Emit& e, Emit::Tensor x) {
        constexpr float kLargest = composed::kLargest;
        Emit::Tensor shift = e.clamp(composed::largest_of_rows(e, x), -kLargest, kLargest);
        Emit::Tensor sums = e.sum_rows(e.unary(Unary::exp, e.binary(Binary::sub, x, shift)));
        return e.binary(Binary::add, shift, e.unary(Unary::log, sums));
    }
    static constexpr std::array kernels{OnePass<ReduceLogSumExp>::kKernel};
};

}  // namespace

std::span<const OpDef> reduce_ops() {
    return OpList<ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProduct, ReduceL1, ReduceL2,
                  ReduceLogSum, ReduceLogSumExp, ReduceSumSquare>::defs();
}

}  // namespace headrace::ops
