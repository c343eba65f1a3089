/// Products of bytes with integers: the sums as they are, and as real numbers with what follows them.
#include <array>

#include "ops/fused_activation.h"
#include "ops/integer_matrix.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

constexpr OperandRule kRowsZero{
    .name = "zero_point", .dtypes = kBytes, .same_dtype_as = 0, .optional = true, .max_rank = 0};

/// Operand 2: the zero point of the rows.
std::int32_t rows_zero(const TensorArgs& args) { return args.has(2) ? int8_at(args.in[2], 0) : 0; }

/// What both share: b is [k, n], one matrix.
template <class Op>
struct ByteProduct {
    static bool applies(const Operands& in, std::span<const bool> is_constant, const void*) {
        return IntegerMatrix::applies(in, is_constant, false);
    }
    static std::size_t packed_bytes(const Operands& in, const void*) {
        return IntegerMatrix::packed_bytes(in, false);
    }
    static void pack(const ConstView& b, const void*, std::byte* packed) {
        IntegerMatrix::pack(b, false, packed);
    }
    static bool quads_apply(const Operands& in, std::span<const bool> is_constant, const void*) {
        return IntegerMatrix::quads_apply(in, is_constant, false);
    }
    static std::size_t packed_quads_bytes(const Operands& in, const void*) {
        return IntegerMatrix::packed_quads_bytes(in, false);
    }
    static void pack_quads(const ConstView& b, const void*, std::byte* packed) {
        IntegerMatrix::pack_quads(b, false, packed);
    }
    template <auto Kernel>
    static void run(const TensorArgs& args, const void* attrs) {
        auto product = byte_product_args(args, false, rows_zero(args));
        Op::set_result(product, args, attrs);
        Kernel(product, args.in[1].data, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{"quad_matmul", &quads_apply, 1, &packed_quads_bytes, &pack_quads,
                  &run<&headrace::kernels::quad_matmul>},
        KernelDef{"int8_matmul", &applies, 1, &packed_bytes, &pack, &run<&headrace::kernels::int8_matmul>}};
};

struct MatMulInteger : ByteProduct<MatMulInteger> {
    static constexpr std::string_view name = "matmul_integer",
                                      summary = "(a - zero_point) · b in i32, which wraps; b is one matrix";
    static constexpr std::array operands{kByteRows, kIntegerMatrix, kRowsZero};

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(Shape out, product_shape(in, false));
        return Types{{DType::i32, std::move(out)}};
    }
    static void reference(const TensorArgs& args, const NoAttrs&) {
        std::int32_t* y = args.out[0].as<std::int32_t>();
        reference_sums(args, false, rows_zero(args),
                       [&](std::int64_t place, std::int64_t, double sum) { y[place] = wrapped(sum); });
    }
    static void set_result(kernels::Int8MatMulArgs& product, const TensorArgs& args, const void*) {
        product.result = args.out[0].as<std::int32_t>();
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return product_cost(in, out, dense_product(sizes_of(in, 0), sizes_of(in, 1)));
    }
    static std::vector<Sample> samples();
};

/// An operand list as samples have them: rows, the matrix and the zero point.
std::vector<SampleOperand> product_operands(DType a, DType b, Shape rows, std::int64_t n) {
    const std::int64_t k = rows.back().size();
    const double low = integer_range(a).low, most = b == DType::i8 ? 127 : 255;
    return {{.type = {a, std::move(rows)}, .low = low, .high = low + 255},
            {.type = {b, {k, n}}, .low = -most, .high = most, .constant = true},
            {.type = {a, {}}, .low = low, .high = low + 255}};
}

std::vector<Sample> MatMulInteger::samples() {
    std::vector<Sample> list;
    for (const DType a : {DType::u8, DType::i8})
        for (const DType b : {DType::i8, DType::i16})
            list.push_back({product_operands(a, b, {2, 5, 19}, 37), {}, 0});
    list.push_back({product_operands(DType::u8, DType::i8, {1, 40}, 16), {}, 0});
    list.back().operands[2].absent = true;
    return list;
}

struct DequantizedMatMul : ByteProduct<DequantizedMatMul> {
    static constexpr std::string_view
        name = "dequantized_matmul",
        summary =
            "activation((a - zero_point) · b · a_scale · b_scale + bias) + residual, where b is one matrix";
    static constexpr std::array operands{
        kByteRows,
        kIntegerMatrix,
        kRowsZero,
        OperandRule{.name = "a_scale", .dtypes = {DType::f32}, .max_rank = 0},
        OperandRule{.name = "b_scale", .dtypes = {DType::f32}, .min_rank = 1, .max_rank = 1},
        OperandRule{.name = "bias", .dtypes = {DType::f32}, .optional = true, .min_rank = 1, .max_rank = 1},
        OperandRule{.name = "residual", .dtypes = {DType::f32}, .optional = true, .min_rank = 2}};

    struct Attrs {
        Activation activation = Activation::none;
        static void fields(auto&& f) {
            f("activation", &Attrs::activation, "applied before the residual is added; gelu is the erf form");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        HR_ASSIGN(Shape out, product_shape(in, false));
        for (int i : {4, 5})
            if (in.has(i) && !same_extent(in, in[i].shape[0], out.back()))
                return invalid("{} has shape {} but the product has {} columns", operands[i].name,
                               str(in[i].shape), out.back().str());
        if (in.has(6) && !same_shape(in, in[6].shape, out))
            return invalid("residual has shape {} but the product has shape {}", str(in[6].shape), str(out));
        return Types{{DType::f32, std::move(out)}};
    }

    static void reference(const TensorArgs& args, const Attrs& attrs) {
        const float factor = args.in[3].as<float>()[0], *scale = args.in[4].as<float>();
        const float* bias = args.has(5) ? args.in[5].as<float>() : nullptr;
        const float* residual = args.has(6) ? args.in[6].as<float>() : nullptr;
        float* y = args.out[0].as<float>();
        reference_sums(args, false, rows_zero(args),
                       [&](std::int64_t place, std::int64_t column, double sum) {
                           const double real = wrapped(sum) * static_cast<double>(factor * scale[column]);
                           const double value = activate(attrs.activation, real + (bias ? bias[column] : 0));
                           y[place] = static_cast<float>(value + (residual ? residual[place] : 0));
                       });
    }
    static void set_result(kernels::Int8MatMulArgs& product, const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        product.result =
            headrace::kernels::RealSums{.bias = args.has(5) ? args.in[5].as<float>() : nullptr,
                                        .scale = args.in[4].as<float>(),
                                        .factor = args.in[3].as<float>()[0],
                                        .activation = kernel_activation(a.activation),
                                        .residual = args.has(6) ? args.in[6].as<float>() : nullptr,
                                        .y = args.out[0].as<float>()};
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        Cost cost = product_cost(in, out, dense_product(sizes_of(in, 0), sizes_of(in, 1)));
        cost.flops += 10.0 * static_cast<double>(out[0].elements());
        return cost;
    }
    static std::vector<Sample> samples();
};

std::vector<Sample> DequantizedMatMul::samples() {
    std::vector<Sample> list;
    const auto add = [&](DType a, DType b, Shape rows, std::int64_t n, std::string_view activation,
                         bool has_bias, bool has_residual) {
        Shape out = rows;
        out.back() = n;
        Sample s{product_operands(a, b, std::move(rows), n), {{"activation", std::string(activation)}}};
        s.operands.push_back({.type = {DType::f32, {}}, .low = 0.01, .high = 0.02});
        s.operands.push_back({.type = {DType::f32, {n}}, .low = 0.001, .high = 0.004, .constant = true});
        s.operands.push_back({.type = {DType::f32, {n}}, .constant = true, .absent = !has_bias});
        s.operands.push_back({.type = {DType::f32, std::move(out)}, .absent = !has_residual});
        list.push_back(std::move(s));
    };
    for (std::string_view f : detail::kEnumNames<Activation>)
        add(DType::u8, DType::i8, {2, 5, 19}, 37, f, true, true);
    add(DType::i8, DType::i16, {3, 40}, 16, "none", true, false);
    add(DType::u8, DType::i16, {1, 64}, 50, "gelu", false, false);
    add(DType::i8, DType::i8, {7, 31}, 17, "none", false, true);
    return list;
}

}  // namespace

std::span<const OpDef> matmul_integer_ops() { return OpList<MatMulInteger, DequantizedMatMul>::defs(); }

}  // namespace headrace::ops
