/// Normalisation by the root of the mean square (arXiv:1910.07467), over the last dimensions.
#include <array>
#include <cmath>

#include "emit/emit.h"
#include "kernels/tensor/normalize_f32.h"
#include "ops/infer.h"
#include "ops/normalize.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct RmsNorm {
    static constexpr std::string_view name = "rms_norm",
                                      summary =
                                          "x / sqrt(mean of x² + epsilon) · scale over the last dimensions";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 1},
        OperandRule{.name = "scale", .dtypes = kFloats, .same_dtype_as = 0, .optional = true, .min_rank = 1}};

    struct Attrs {
        std::int64_t dimensions = 1;
        double epsilon = 1e-5;
        static void fields(auto&& f) {
            f("dimensions", &Attrs::dimensions, "how many of the last dimensions are one group");
            f("epsilon", &Attrs::epsilon, "added to the mean square");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const int rank = in[0].rank();
        if (a.dimensions < 1 || a.dimensions > rank)
            return invalid("dimensions is {}; an input of rank {} has 1 to {}", a.dimensions, rank, rank);
        const Shape group(in[0].shape.end() - a.dimensions, in[0].shape.end());
        if (in.has(1) && !same_shape(in, in[1].shape, group))
            return invalid("scale has shape {} but the normalised dimensions have {}", str(in[1].shape),
                           str(group));
        return same_type(in[0]);
    }

    static std::array<std::int64_t, 2> rows_of(std::span<const std::int64_t> shape, const Attrs& a) {
        std::array<std::int64_t, 2> rows{1, 1};
        for (std::size_t i = 0; i < shape.size(); ++i)
            rows[i + static_cast<std::size_t>(a.dimensions) >= shape.size()] *= shape[i];
        return rows;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const auto [rows, n] = rows_of(args.in[0].shape, a);
        const auto part = args.share.of(rows);
        visit_dtype(args.in[0].dtype, [&, n = n]<class T>() {
            for (std::int64_t row = part.begin; row < part.end; ++row) {
                const T* x = args.in[0].as<T>() + row * n;
                T* y = args.out[0].as<T>() + row * n;
                double squares = 0;
                for (std::int64_t i = 0; i < n; ++i) squares += convert<double>(x[i]) * convert<double>(x[i]);
                const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + a.epsilon);
                for (std::int64_t i = 0; i < n; ++i)
                    y[i] = convert<T>(convert<double>(x[i]) * factor * read_or<T>(args, 1, i, 1));
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return normalizes_through_f32(in[0].dtype, a.epsilon);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        ggml_tensor* y = to_f32(e, e.reshape(x[0], rows_of(in[0].sizes(), a)), t);
        y = e.rms_norm(y, static_cast<float>(a.epsilon));
        if (in.has(1)) y = e.binary(Binary::mul, y, to_f32(e, e.flatten(x[1]), t));
        return {from_f32(e, y, in[0])};
    }

    static bool kernel_applies(const Operands& in, std::span<const bool>, const void*) {
        return in[0].dtype == DType::f32;
    }
    static void run_kernel(const TensorArgs& args, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        const auto [rows, n] = rows_of(args.in[0].shape, a);
        kernels::rms_norm_f32({.rows = static_cast<std::size_t>(rows),
                               .n = static_cast<std::size_t>(n),
                               .x = args.in[0].as<float>(),
                               .x_stride = static_cast<std::ptrdiff_t>(n),
                               .scale = args.has(1) ? args.in[1].as<float>() : nullptr,
                               .y = args.out[0].as<float>(),
                               .y_stride = static_cast<std::ptrdiff_t>(n),
                               .eps = static_cast<float>(a.epsilon)},
                              args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "rms_norm_f32", .applies = &kernel_applies, .run = &run_kernel}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 5);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shape& shape, NamedAttrs attrs, const Shape& scale) {
            list.push_back({{{.type = {t, shape}}, {.type = {t, scale}, .absent = scale.empty()}},
                            std::move(attrs),
                            sample_tolerance(t)});
        };
        add(DType::f32, {4, 9, 48}, {{"epsilon", 1e-6}}, {48});
        add(DType::f32, {4, 9, 17}, {}, {});
        add(DType::f32, {7}, {}, {7});
        add(DType::f32, {2, 3, 2, 2, 2, 4}, {{"dimensions", std::int64_t{2}}}, {2, 4});
        for (DType t : {DType::f16, DType::bf16, DType::f64}) add(t, {3, 4, 8}, {}, {8});
        return list;
    }
};

}  // namespace

std::span<const OpDef> rms_norm_ops() { return OpList<RmsNorm>::defs(); }

}  // namespace headrace::ops
