/// Positions of extreme elements.
#include <array>

#include "kernels/tensor/arg_reduce_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct ArgReduceAttrs {
    std::int64_t axis = 0;
    bool keep_dimensions = false;
    DType output_data_type = DType::i32;
    static void fields(auto&& f) {
        f("axis", &ArgReduceAttrs::axis, "dimension to search", kRequired);
        f("keep_dimensions", &ArgReduceAttrs::keep_dimensions, "keep the searched dimension with extent 1");
        f("output_data_type", &ArgReduceAttrs::output_data_type, "i32 or i64");
    }
};

/// The first position of the best element, or of the first NaN, as NumPy has it.
template <class Self, class T>
std::int64_t search(const T* x, std::int64_t count, std::int64_t stride) {
    using C = compute_t<T>;
    std::int64_t best = 0;
    C value = static_cast<C>(x[0]);
    for (std::int64_t i = 1; i < count && value == value; ++i) {
        const C candidate = static_cast<C>(x[i * stride]);
        if (!Self::is_better(candidate, value) && candidate == candidate) continue;
        best = i;
        value = candidate;
    }
    return best;
}

template <class Self>
struct ArgReduceOp {
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kNumeric | DTypeSet{DType::boolean}}};
    using Attrs = ArgReduceAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        if (a.output_data_type != DType::i32 && a.output_data_type != DType::i64)
            return invalid("output_data_type is {}, must be i32 or i64", name_of(a.output_data_type));
        const Dim& extent = in[0].shape[axis];
        if (extent.is(0)) return invalid("dimension {} of input {} is empty", axis, str(in[0].shape));
        if (a.output_data_type == DType::i32 && !extent.is_symbolic() && extent.size() > INT32_MAX)
            return invalid("positions in dimension {} of input {} do not fit in i32", axis, str(in[0].shape));
        TensorType out{a.output_data_type, in[0].shape};
        if (a.keep_dimensions)
            out.shape[axis] = 1;
        else
            out.shape.erase(out.shape.begin() + axis);
        return Types{out};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            find_each<T>(args, a, [](const T* x, std::int64_t count, std::int64_t stride) {
                return search<Self>(x, count, stride);
            });
        });
    }

    static bool vectors_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const std::int64_t axis = detail::attrs_ref<Attrs>(attrs).axis;
        const std::vector<std::int64_t> shape = in[0].sizes();
        return in[0].dtype == DType::f32 &&
               dense_strides(shape)[normalize_axis(axis, in[0].rank()).value()] == 1;
    }
    static void run_vectors(const TensorArgs& args, const void* attrs) {
        find_each<float>(args, detail::attrs_ref<Attrs>(attrs),
                         [](const float* x, std::int64_t count, std::int64_t) {
                             return static_cast<std::int64_t>(headrace::kernels::arg_extreme_f32(
                                 Self::is_better(1, 0), x, static_cast<std::size_t>(count)));
                         });
    }
    static constexpr std::array kernels{
        KernelDef{.name = "arg_reduce_f32", .applies = &vectors_apply, .run = &run_vectors}};

    /// find(x, count, stride) is the position among `count` elements of the input.
    template <class T, class Find>
    static void find_each(const TensorArgs& args, const Attrs& a, Find find) {
        const Sizes shape = args.in[0].shape;
        const int axis = normalize_axis(a.axis, args.in[0].rank()).value();
        const std::int64_t inner = dense_strides(shape)[axis];
        const auto part = args.share.of(args.out[0].elements(), 8);
        for (std::int64_t o = part.begin; o < part.end; ++o) {
            const T* x = args.in[0].as<T>() + o / inner * shape[axis] * inner + o % inner;
            const std::int64_t at = find(x, shape[axis], inner);
            if (a.output_data_type == DType::i64)
                args.out[0].as<std::int64_t>()[o] = at;
            else
                args.out[0].as<std::int32_t>()[o] = static_cast<std::int32_t>(at);
        }
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = elementwise_cost(in, out, 0);
        cost.flops = static_cast<double>(in[0].elements());
        return cost;
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, std::int64_t axis, bool keep, DType out) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 9}},
                          {{"axis", axis}, {"keep_dimensions", keep}, {"output_data_type", out}}};
        };
        return {sample(DType::f32, {7}, 0, false, DType::i32),
                sample(DType::f32, {3, 5}, 1, true, DType::i64),
                sample(DType::f32, {3, 5}, 0, false, DType::i32),
                sample(DType::f32, {2, 1, 3, 1, 2}, -3, true, DType::i32),
                sample(DType::f16, {2, 3, 4}, 1, false, DType::i64),
                sample(DType::i32, {3, 6}, 1, false, DType::i32),
                sample(DType::i64, {3, 6}, 0, true, DType::i32),
                sample(DType::u8, {4, 4}, -1, false, DType::i64)};
    }
};

struct ArgMax : ArgReduceOp<ArgMax> {
    static constexpr std::string_view
        name = "arg_max",
        summary = "first position of the largest element along an axis; NaN is largest";
    static bool is_better(auto x, auto than) { return x > than; }
};
struct ArgMin : ArgReduceOp<ArgMin> {
    static constexpr std::string_view
        name = "arg_min",
        summary = "first position of the smallest element along an axis; NaN is smallest";
    static bool is_better(auto x, auto than) { return x < than; }
};

}  // namespace

std::span<const OpDef> arg_reduce_ops() { return OpList<ArgMax, ArgMin>::defs(); }

}  // namespace headrace::ops
