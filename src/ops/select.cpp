/// Choice between two tensors, element by element.
#include <algorithm>
#include <array>
#include <type_traits>

#include "emit/emit.h"
#include "ops/composed.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/repetition.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// f(1) or f(0), the step as a constant.
template <class F>
void with_step(std::int64_t step, F&& f) {
    if (step) return f(std::integral_constant<std::int64_t, 1>());
    f(std::integral_constant<std::int64_t, 0>());
}

template <class T>
void copy_row(const T* from, std::int64_t step, std::int64_t count, T* to) {
    if (step)
        std::copy_n(from, count, to);
    else
        std::fill_n(to, count, *from);
}

template <class T>
void select(const TensorArgs& args) {
    const Sizes shape = args.out[0].shape;
    const StridedWalk<3> walk(
        shape, {broadcast_strides(args.in[0].shape, shape), broadcast_strides(args.in[1].shape, shape),
                broadcast_strides(args.in[2].shape, shape)});
    walk.run(args.share,
             [&](std::int64_t position, const auto& offsets, std::int64_t count, const auto& steps) {
                 const std::uint8_t* condition = args.in[0].as<std::uint8_t>() + offsets[0];
                 const T* a = args.in[1].as<T>() + offsets[1];
                 const T* b = args.in[2].as<T>() + offsets[2];
                 T* y = args.out[0].as<T>() + position;
                 if (!steps[0]) {
                     const bool first = *condition;
                     copy_row(first ? a : b, first ? steps[1] : steps[2], count, y);
                 } else {
                     // Steps are 1, or 0 where the operand repeats. As constants they leave a loop that reads
                     // both values and has no branch, which the compiler turns into vectors.
                     with_step(steps[1], [&](auto step_a) {
                         with_step(steps[2], [&](auto step_b) {
                             for (std::int64_t i = 0; i < count; ++i) {
                                 const T yes = a[i * step_a], no = b[i * step_b];
                                 y[i] = condition[i] ? yes : no;
                             }
                         });
                     });
                 }
             });
}

struct Where {
    static constexpr std::string_view name = "where",
                                      summary = "true_value where condition is not 0, else false_value";
    static constexpr std::array operands{
        OperandRule{.name = "condition", .dtypes = kTruth}, OperandRule{.name = "true_value", .dtypes = kAny},
        OperandRule{.name = "false_value", .dtypes = kAny, .same_dtype_as = 1}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(const Shape values, broadcast(in, in[1].shape, in[2].shape));
        HR_ASSIGN(Shape shape, broadcast(in, in[0].shape, values));
        return Types{{in[1].dtype, std::move(shape)}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        move_elements(args, [](const TensorArgs& elements) {
            visit_width(element_bytes(elements.out[0].dtype), [&]<class T>() { select<T>(elements); });
        });
    }

    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[1].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& none) {
        const TensorType out = infer(in, none).value()[0];
        const auto sizes = out.sizes();
        const auto whole = [&](int i, ggml_tensor* given) {
            return e.flatten(repeat_to(e, given, in[i].sizes(), sizes));
        };
        const auto value = [&](int i) { return whole(i, to_f32(e, x[i], in[i].dtype)); };
        ggml_tensor* truth = whole(0, e.truth_of_bytes(x[0]));
        return {from_f32(e, composed::select(e, truth, value(1), value(2)), out)};
    }
    /// ggml looks every element up.
    static constexpr std::array kernels{
        KernelDef{.name = "one_pass",
                  .applies = [](const Operands& in, std::span<const bool>,
                                const void*) { return works_through_f32(in[1].dtype).ok(); },
                  .run = [](const TensorArgs& args, const void*) { reference(args, {}); }}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape condition, Shape a, Shape b, DType truth = DType::u8) {
            return Sample{{{.type = {truth, std::move(condition)}, .low = 0, .high = 1},
                           {.type = {t, std::move(a)}, .low = 0, .high = 7},
                           {.type = {t, std::move(b)}, .low = 0, .high = 7}},
                          {}};
        };
        return {sample(DType::f32, {2, 3}, {2, 3}, {2, 3}),
                sample(DType::f32, {}, {}, {}),
                sample(DType::f32, {3, 1, 1}, {4, 1}, {5}),
                sample(DType::f32, {1, 1, 4, 4}, {2, 3, 4, 4}, {}),
                sample(DType::f32, {2, 1, 3, 1, 2}, {2}, {3, 1, 1}),
                sample(DType::f16, {3}, {2, 3}, {1}),
                sample(DType::i64, {2, 2}, {2, 2}, {2}, DType::boolean),
                sample(DType::u8, {4}, {}, {4}),
                sample(DType::u4, {3}, {3, 3}, {})};
    }
};

}  // namespace

std::span<const OpDef> select_ops() { return OpList<Where>::defs(); }

}  // namespace headrace::ops
