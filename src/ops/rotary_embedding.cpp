/// Rotary position embedding (arXiv:2104.09864) with the angles' cosines and sines given.
#include <array>

#include "emit/emit.h"
#include "kernels/tensor/elementwise_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/repetition.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct RotaryEmbedding {
    static constexpr std::string_view name = "rotary_embedding",
                                      summary =
                                          "x · cos + r(x) · sin, where r turns the halves or pairs of a row";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 1},
        OperandRule{.name = "cos", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 1},
        OperandRule{.name = "sin", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 1}};

    struct Attrs {
        bool interleaved = false;
        static void fields(auto&& f) {
            f("interleaved", &Attrs::interleaved,
              "r(x) of neighbours (a, b) is (-b, a); else of the halves of the last dimension");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        const Dim& width = in[0].shape.back();
        if (!divides(in, 2, width))
            return invalid("the last dimension of {} must be an even number", in[0].str());
        if (!same_shape(in, in[1].shape, in[2].shape))
            return invalid("cos has shape {} but sin has {}", str(in[1].shape), str(in[2].shape));
        if (!same_extent(in, in[1].shape.back(), width) || !broadcasts_to(in, in[1].shape, in[0].shape))
            return invalid("cos has shape {}; it must broadcast to {} and have its last dimension",
                           str(in[1].shape), str(in[0].shape));
        return same_type(in[0]);
    }

    /// Calls f(row, angle, width): the first element of each row of this thread's share, in x and in cos.
    template <class F>
    static void for_rows(const TensorArgs& args, F&& f) {
        const Sizes shape = args.in[0].shape;
        const std::int64_t width = shape.back();
        auto strides = broadcast_strides(args.in[1].shape, shape);
        strides.pop_back();
        const Sizes outer = shape.first(shape.size() - 1);
        auto rows = dense_strides(outer);
        for (std::int64_t& stride : rows) stride *= width;
        const StridedWalk<2> walk(outer, {rows, strides});
        walk.run(args.share, [&](std::int64_t, const auto& start, std::int64_t n, const auto& step) {
            for (std::int64_t i = 0; i < n; ++i) f(start[0] + i * step[0], start[1] + i * step[1], width);
        });
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for_rows(args, [&](std::int64_t row, std::int64_t angle, std::int64_t n) {
                const T *x = args.in[0].as<T>() + row, *cos = args.in[1].as<T>() + angle,
                        *sin = args.in[2].as<T>() + angle;
                T* y = args.out[0].as<T>() + row;
                for (std::int64_t i = 0; i < n; ++i) {
                    const bool is_first = a.interleaved ? i % 2 == 0 : i < n / 2;
                    const std::int64_t step = a.interleaved ? 1 : n / 2;
                    const double other = convert<double>(x[is_first ? i + step : i - step]);
                    y[i] = convert<T>(convert<double>(x[i]) * convert<double>(cos[i]) +
                                      (is_first ? -other : other) * convert<double>(sin[i]));
                }
            });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        if (a.interleaved && in[0].elements() > INT32_MAX)
            return unsupported("{} elements as pairs", in[0].elements());
        return works_through_f32(in[0].dtype);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        const auto sizes = in[0].sizes();
        const bool is_wide = in[0].rank() > 4;  // more dimensions than ggml has
        ggml_tensor* value = to_f32(e, x[0], t);
        const auto angles = [&](int i) {
            ggml_tensor* given = to_f32(e, x[i], t);
            return is_wide ? e.flatten(repeat_to(e, given, in[i].sizes(), sizes)) : given;
        };
        ggml_tensor *cos = angles(1), *sin = angles(2);
        ggml_tensor* other = turned(e, value, sizes.back(), a.interleaved);
        if (is_wide)
            value = e.flatten(value), other = e.flatten(other);
        else
            other = e.reshape(other, sizes);
        ggml_tensor* y =
            e.binary(Binary::add, e.binary(Binary::mul, value, cos), e.binary(Binary::mul, other, sin));
        return {from_f32(e, y, in[0])};
    }
    /// Turns each row (first, second), or each pair in it, into (-second, first).
    static ggml_tensor* turned(Emit& e, ggml_tensor* x, std::int64_t width, bool by_pairs) {
        const std::int64_t length = by_pairs ? 2 : width, rows = Emit::elements(x) / length,
                           half = length / 2;
        const auto part = [&](std::int64_t first) {
            const std::array<std::int64_t, 2> all{rows, length}, start{0, first}, size{rows, half};
            return e.contiguous(e.slice(e.reshape(x, all), start, size));
        };
        return e.concat(e.unary(Unary::neg, part(half)), part(0), 1, 2);
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void*) {
        return in[0].dtype == DType::f32;
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const bool interleaved = detail::attrs_ref<Attrs>(attrs).interleaved;
        for_rows(args, [&](std::int64_t row, std::int64_t angle, std::int64_t n) {
            kernels::rotate_row_f32(args.in[0].as<float>() + row, args.in[1].as<float>() + angle,
                                    args.in[2].as<float>() + angle, args.out[0].as<float>() + row,
                                    static_cast<std::size_t>(n), interleaved);
        });
    }
    static constexpr std::array kernels{
        KernelDef{.name = "rotate_f32", .applies = &kernel_applies, .run = &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 3);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shape& shape, const Shape& angles, bool interleaved) {
            list.push_back({{{.type = {t, shape}}, {.type = {t, angles}}, {.type = {t, angles}}},
                            {{"interleaved", interleaved}},
                            sample_tolerance(t)});
        };
        for (const bool interleaved : {false, true}) {
            add(DType::f32, {2, 3, 5, 64}, {1, 1, 5, 64}, interleaved);
            add(DType::f32, {2, 3, 5, 10}, {2, 1, 5, 10}, interleaved);
            add(DType::f32, {3, 2, 2, 2, 6}, {3, 1, 2, 1, 6}, interleaved);
            add(DType::f32, {7, 32}, {32}, interleaved);
            add(DType::f32, {8}, {8}, interleaved);
            for (DType t : {DType::f16, DType::bf16, DType::f64}) add(t, {2, 3, 12}, {3, 12}, interleaved);
        }
        return list;
    }
};

}  // namespace

std::span<const OpDef> rotary_embedding_ops() { return OpList<RotaryEmbedding>::defs(); }

}  // namespace headrace::ops
