/// Products of matrices of integers that stand for real ones.
#include <array>

#include "ops/integer_matrix.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct QuantizedMatMul {
    static constexpr std::string_view
        name = "quantized_matmul",
        summary =
            "(a - input_zero_point) · b, plus bias, times scale, rounded to even, + "
            "zero_point, saturated; b is one matrix";
    static constexpr std::array operands{kByteRows, kIntegerMatrix, kSumBias,
                                         kSumScale, kInputZero,     kResultZero};

    struct Attrs : Int8Limits {
        bool transpose_b = false;
        static void fields(auto&& f) {
            f("transpose_b", &Attrs::transpose_b, "b is [n, k]");
            Int8Limits::fields(f);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& attrs) {
        HR_TRY(attrs.check());
        HR_ASSIGN(Shape out, product_shape(in, attrs.transpose_b));
        for (int i : {2, 3})
            if (in.has(i) && !same_extent(in, in[i].shape[0], out.back()))
                return invalid("{} has shape {} but the product has {} columns", operands[i].name,
                               str(in[i].shape), out.back().str());
        return Types{{in[5].dtype, std::move(out)}};
    }

    static void reference(const TensorArgs& args, const Attrs& attrs) {
        const SumRounder rounder(args, attrs);
        reference_sums(
            args, attrs.transpose_b, int8_at(args.in[4], 0),
            [&](std::int64_t place, std::int64_t column, double sum) { rounder.store(place, sum, column); });
    }

    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    static bool applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return IntegerMatrix::applies(in, is_constant, cast(attrs).transpose_b);
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        return IntegerMatrix::packed_bytes(in, cast(attrs).transpose_b);
    }
    static void pack(const ConstView& b, const void* attrs, std::byte* packed) {
        IntegerMatrix::pack(b, cast(attrs).transpose_b, packed);
    }
    static bool quads_apply(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return IntegerMatrix::quads_apply(in, is_constant, cast(attrs).transpose_b);
    }
    static std::size_t packed_quads_bytes(const Operands& in, const void* attrs) {
        return IntegerMatrix::packed_quads_bytes(in, cast(attrs).transpose_b);
    }
    static void pack_quads(const ConstView& b, const void* attrs, std::byte* packed) {
        IntegerMatrix::pack_quads(b, cast(attrs).transpose_b, packed);
    }
    template <auto Kernel>
    static void run(const TensorArgs& args, const void* attrs) {
        auto product = byte_product_args(args, cast(attrs).transpose_b, int8_at(args.in[4], 0));
        product.result = SumRounder::kernel_args(args, cast(attrs));
        Kernel(product, args.in[1].data, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{"quad_matmul", &quads_apply, 1, &packed_quads_bytes, &pack_quads,
                  &run<&headrace::kernels::quad_matmul>},
        KernelDef{"int8_matmul", &applies, 1, &packed_bytes, &pack, &run<&headrace::kernels::int8_matmul>}};

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
