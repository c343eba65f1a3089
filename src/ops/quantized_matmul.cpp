/// Products of matrices of integers that stand for real ones.
#include <array>

#include "kernels/int8/int8_conv2d.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/product.h"
#include "ops/quantized.h"

namespace headrace::ops {
namespace {

struct QuantizedMatMul {
    static constexpr std::string_view
        name = "quantized_matmul",
        summary =
            "(a - input_zero_point) · b, plus bias, times scale, rounded to even, + "
            "zero_point, saturated; b is one matrix";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kBytes, .min_rank = 2},
        OperandRule{.name = "b", .dtypes = {DType::i8, DType::i16}, .min_rank = 2, .max_rank = 2},
        kSumBias,
        kSumScale,
        kInputZero,
        kResultZero};

    struct Attrs : Int8Limits {
        bool transpose_b = false;
        static void fields(auto&& f) {
            f("transpose_b", &Attrs::transpose_b, "b is [n, k]");
            Int8Limits::fields(f);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& attrs) {
        HR_TRY(attrs.check());
        const Shape &a = in[0].shape, &b = in[1].shape;
        const Dim &k = b[attrs.transpose_b], &n = b[!attrs.transpose_b];
        if (!same_extent(in, a.back(), k))
            return invalid(
                "Incompatible shapes for matmul: {} and {}{}, whose inner extents {} and {} differ", str(a),
                str(b), attrs.transpose_b ? " transposed" : "", a.back().str(), k.str());
        for (int i : {2, 3})
            if (in.has(i) && !same_extent(in, in[i].shape[0], n))
                return invalid("{} has shape {} but the product has {} columns", operands[i].name,
                               str(in[i].shape), n.str());
        Shape out = a;
        out.back() = n;
        return Types{{in[5].dtype, std::move(out)}};
    }

    static void reference(const TensorArgs& args, const Attrs& attrs) {
        const SumRounder rounder(args, attrs);
        const std::vector<double> a = cleared(args.in[0], int8_at(args.in[4], 0)), b = cleared(args.in[1], 0);
        const Product p = dense_product(args.in[0].shape, args.in[1].shape, attrs.transpose_b);
        reference_product(a.data(), b.data(), p, args.share,
                          [&](std::int64_t row, std::int64_t column, std::int64_t count, const double* sums) {
                              for (std::int64_t i = 0; i < count; ++i)
                                  rounder.store(row * p.n + column + i, sums[i], column + i);
                          });
    }

    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    struct Extents {
        std::size_t k, n;
        Extents(const Sizes& b, bool transposed)
            : k(static_cast<std::size_t>(b[transposed])), n(static_cast<std::size_t>(b[!transposed])) {}
    };
    static bool applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        const Extents b(in[1].sizes(), cast(attrs).transpose_b);
        return is_constant[1] && b.k > 0 && b.n > 0 && kernels::have_room(b.k);
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        const Extents b(in[1].sizes(), cast(attrs).transpose_b);
        return kernels::packed_pairs_bytes(b.n, 1, b.k);
    }
    static void pack(const ConstView& b, const void* attrs, std::byte* packed) {
        visit_weights(b, [&]<class T>() { pack_as<T>(b, cast(attrs), packed); });
    }
    template <class T>
    static void pack_as(const ConstView& b, const Attrs& attrs, std::byte* packed) {
        const Extents size(b.shape, attrs.transpose_b);
        if (attrs.transpose_b) return kernels::pack_pairs(b.as<T>(), size.n, 1, size.k, packed);
        std::vector<T> columns(size.n * size.k);
        for (std::size_t i = 0; i < size.k; ++i)
            for (std::size_t j = 0; j < size.n; ++j) columns[j * size.k + i] = b.as<T>()[i * size.n + j];
        kernels::pack_pairs(columns.data(), size.n, 1, size.k, packed);
    }
    /// Rows are the pixels of an image of one row.
    static void run(const TensorArgs& args, const void* attrs) {
        const Extents b(args.in[1].shape, cast(attrs).transpose_b);
        const std::size_t rows = static_cast<std::size_t>(args.in[0].elements()) / b.k;
        kernels::int8_conv2d({.in_channels = b.k,
                              .in_w = rows,
                              .out_channels = b.n,
                              .out_w = rows,
                              .x = bytes_of(args.in[0]),
                              .x_zero = int8_at(args.in[4], 0),
                              .result = SumRounder::kernel_args(args, cast(attrs))},
                             args.in[1].data, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{KernelDef{"int8_matmul", &applies, 1, &packed_bytes, &pack, &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& attrs) {
        return product_cost(in, out, dense_product(sizes_of(in, 0), sizes_of(in, 1), attrs.transpose_b));
    }

    static std::vector<Sample> samples();
};

std::vector<Sample> QuantizedMatMul::samples() {
    std::vector<Sample> list;
    const auto add = [&](DType a, DType b, DType result, Shape rows, Shape matrix, std::int64_t n,
                         NamedAttrs attrs, bool has_bias = true) {
        list.push_back(product_sample({a, std::move(rows)}, {b, std::move(matrix)}, result, n,
                                      std::move(attrs), has_bias));
    };
    for (const DType a : {DType::u8, DType::i8})
        for (const DType b : {DType::i8, DType::i16})
            add(a, b, a, {2, 5, 19}, {19, 37}, 37, {}, b == DType::i8);
    add(DType::u8, DType::i8, DType::i8, {3, 40}, {16, 40}, 16,
        {{"transpose_b", true}, {"min_value", std::int64_t{2}}});
    return list;
}

}  // namespace

std::span<const OpDef> quantized_matmul_ops() { return OpList<QuantizedMatMul>::defs(); }

}  // namespace headrace::ops
