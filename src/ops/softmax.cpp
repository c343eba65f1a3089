/// Softmax along one axis.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/tensor/normalize_f32.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct Softmax {
    static constexpr std::string_view name = "softmax", summary = "e^x / sum of e^x along an axis";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kFloats}};

    struct Attrs {
        std::int64_t axis = 0;
        static void fields(auto&& f) { f("axis", &Attrs::axis, "the axis whose values sum to 1", kRequired); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(normalize_axis(a.axis, in[0].rank()));
        return same_type(in[0]);
    }

    /// The shape as [outer, axis, inner].
    static std::array<std::int64_t, 3> split(std::span<const std::int64_t> shape, const Attrs& a) {
        const auto axis =
            static_cast<std::size_t>(a.axis < 0 ? a.axis + static_cast<std::int64_t>(shape.size()) : a.axis);
        std::array<std::int64_t, 3> parts{1, shape[axis], 1};
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (i != axis) parts[i < axis ? 0 : 2] *= shape[i];
        return parts;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto [outer, size, inner] = split(args.in[0].shape, a);
        const auto part = args.share.of(outer * inner);
        visit_dtype(args.in[0].dtype, [&, size = size, inner = inner]<class T>() {
            for (std::int64_t line = part.begin; line < part.end; ++line) {
                const std::int64_t start = line / inner * size * inner + line % inner;
                const T* x = args.in[0].as<T>() + start;
                T* y = args.out[0].as<T>() + start;
                double largest = -std::numeric_limits<double>::infinity(), sum = 0;
                for (std::int64_t i = 0; i < size; ++i)
                    largest = std::max(largest, convert<double>(x[i * inner]));
                for (std::int64_t i = 0; i < size; ++i)
                    sum += std::exp(convert<double>(x[i * inner]) - largest);
                for (std::int64_t i = 0; i < size; ++i)
                    y[i * inner] = convert<T>(std::exp(convert<double>(x[i * inner]) - largest) / sum);
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto [outer, size, inner] = split(in[0].sizes(), a);
        constexpr std::array swap{0, 2, 1};
        ggml_tensor* y = to_f32(e, x[0], in[0].dtype);
        if (inner == 1) {
            y = e.soft_max(e.reshape(y, std::array{outer, size}));
        } else {
            y = e.contiguous(e.permute(e.reshape(y, std::array{outer, size, inner}), swap));
            y = e.contiguous(e.permute(e.soft_max(y), swap));
        }
        return {from_f32(e, y, in[0])};
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto sizes = in[0].sizes();
        return in[0].dtype == DType::f32 && split(sizes, detail::attrs_ref<Attrs>(attrs))[2] == 1;
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const auto [rows, n, inner] = split(args.in[0].shape, detail::attrs_ref<Attrs>(attrs));
        kernels::softmax_f32({.rows = static_cast<std::size_t>(rows),
                              .n = static_cast<std::size_t>(n),
                              .x = args.in[0].as<float>(),
                              .x_stride = static_cast<std::ptrdiff_t>(n),
                              .y = args.out[0].as<float>(),
                              .y_stride = static_cast<std::ptrdiff_t>(n)},
                             args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "softmax_f32", .applies = &kernel_applies, .run = &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 15);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape shape, std::int64_t axis, double range) {
            list.push_back({{{.type = {t, std::move(shape)}, .low = -range, .high = range}},
                            {{"axis", axis}},
                            sample_tolerance(t)});
        };
        for (const std::int64_t axis : {0, 1, 2, -1}) add(DType::f32, {5, 6, 17}, axis, 4);
        add(DType::f32, {9}, 0, 80);
        add(DType::f32, {2, 3, 1, 2, 2, 5}, 5, 4);
        add(DType::f32, {2, 3, 1, 2, 2, 5}, 1, 4);
        add(DType::f32, {2, 1, 3}, 1, 4);
        add(DType::f32, {1, 4, 3}, 1, 4);
        add(DType::f32, {1, 7, 1, 1}, 1, 4);
        for (DType t : {DType::f16, DType::bf16, DType::f64}) {
            add(t, {3, 40}, 1, 6);
            add(t, {3, 5, 2}, 1, 6);
        }
        return list;
    }
};

}  // namespace

std::span<const OpDef> softmax_ops() { return OpList<Softmax>::defs(); }

}  // namespace headrace::ops
