/// What fusion makes of a dense layer: product, bias, activation and residual connection in one pass over
/// memory.
#include <array>

#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/gemm/block_gemm_f32.h"
#include "kernels/gemm/block_gemm_int8.h"
#include "kernels/gemm/f16_gemm_f32.h"
#include "ops/fused_activation.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/product.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct FusedMatMul {
    static constexpr std::string_view name = "fused_matmul",
                                      summary = "activation(a · b + bias) + residual, where b is one matrix";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kFloats, .min_rank = 2},
        OperandRule{.name = "b", .dtypes = kFloats, .min_rank = 2, .max_rank = 2, .blocks = true},
        OperandRule{.name = "bias",
                    .dtypes = kFloats,
                    .same_dtype_as = 0,
                    .optional = true,
                    .min_rank = 1,
                    .max_rank = 1},
        OperandRule{
            .name = "residual", .dtypes = kFloats, .same_dtype_as = 0, .optional = true, .min_rank = 2}};

    struct Attrs {
        bool transpose_b = false;
        Activation activation = Activation::none;
        bool round_a = false;
        bool round_to_bf16 = false;
        static void fields(auto&& f) {
            f("transpose_b", &Attrs::transpose_b, "b is [n, k]");
            f("activation", &Attrs::activation, "applied before the residual is added; gelu is the erf form");
            f("round_a", &Attrs::round_a,
              "a may be rounded: where b is in blocks, each 32 elements of a row to 8 bits and a scale; "
              "where b is bf16, to bf16");
            f("round_to_bf16", &Attrs::round_to_bf16,
              "a and b, where they are f32, may be rounded to bf16 as they are multiplied");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& attrs) {
        const Shape &a = in[0].shape, &b = in[1].shape;
        const Dim &k = b[attrs.transpose_b], &n = b[!attrs.transpose_b];
        if (in[1].dtype != in[0].dtype && !is_widened(in))
            return invalid("b is {}; with a in {} it must be {}", name_of(in[1].dtype), name_of(in[0].dtype),
                           in[0].dtype == DType::f32 ? "f32, f16 or bf16" : name_of(in[0].dtype));
        if (in[1].format != BlockFormat::plain && !attrs.transpose_b)
            return invalid("b is {}; blocks lie along the inner extent, so b must be transposed",
                           in[1].str());
        if (!same_extent(in, a.back(), k))
            return invalid(
                "Incompatible shapes for matmul: {} and {}{}, whose inner extents {} and {} differ", str(a),
                str(b), attrs.transpose_b ? " transposed" : "", a.back().str(), k.str());
        Shape out = a;
        out.back() = n;
        if (in.has(2) && !same_extent(in, in[2].shape[0], n))
            return invalid("bias has shape {} but the product has {} columns", str(in[2].shape), n.str());
        if (in.has(3) && !same_shape(in, in[3].shape, out))
            return invalid("residual has shape {} but the product has shape {}", str(in[3].shape), str(out));
        return Types{{in[0].dtype, std::move(out)}};
    }

    /// f16 and bf16 matrices may be multiplied with f32, in f32.
    static bool is_widened(const Operands& in) {
        return in[0].dtype == DType::f32 && kHalfFloats.has(in[1].dtype);
    }

    static Product product(const Operands& in, const Attrs& attrs) {
        return dense_product(sizes_of(in, 0), sizes_of(in, 1), attrs.transpose_b);
    }

    static void reference(const TensorArgs& args, const Attrs& attrs) {
        const ConstView& b = args.in[1];
        if (b.format == BlockFormat::plain && b.dtype == args.in[0].dtype)
            return plain_reference(args, attrs, b.data);
        std::vector<float> values(static_cast<std::size_t>(b.elements()));
        if (b.format == BlockFormat::plain)
            visit_dtype(b.dtype, [&]<class T>() {
                std::transform(b.as<T>(), b.as<T>() + values.size(), values.begin(), convert<float, T>);
            });
        else
            dequantize(b.format, b.data, b.elements(), values.data());
        plain_reference(args, attrs, reinterpret_cast<const std::byte*>(values.data()));
    }

    static void plain_reference(const TensorArgs& args, const Attrs& attrs, const std::byte* b) {
        const Product p = dense_product(args.in[0].shape, args.in[1].shape, attrs.transpose_b);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            reference_product(
                args.in[0].as<T>(), reinterpret_cast<const T*>(b), p, args.share,
                [&](std::int64_t row, std::int64_t column, std::int64_t count, const double* sums) {
                    for (std::int64_t i = 0; i < count; ++i) {
                        const std::int64_t at = row * p.n + column + i;
                        const double bias = args.has(2) ? convert<double>(args.in[2].as<T>()[column + i]) : 0;
                        const double residual = args.has(3) ? convert<double>(args.in[3].as<T>()[at]) : 0;
                        args.out[0].as<T>()[at] =
                            convert<T>(activate(attrs.activation, sums[i] + bias) + residual);
                    }
                });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& attrs) {
        if (!is_of_ggml(in[1].format)) return unsupported("b in {}", name_of(in[1].format));
        return product_lowerable(in, product(in, attrs));
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& attrs) {
        const TensorType out = infer(in, attrs).value()[0];
        const Product p = product(in, attrs);
        ggml_tensor* y = lower_product(e, x[0], x[1], in, p);
        if (in.has(2)) y = e.binary(Binary::add, y, to_f32(e, x[2], out.dtype));
        y = lower_activation(e, attrs.activation, y);
        if (in.has(3)) {
            const std::array extents{p.m, p.n};
            y = e.binary(Binary::add, y, to_f32(e, e.reshape(x[3], extents), out.dtype));
        }
        return {from_f32(e, y, out)};
    }

    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void*) {
        return in[0].dtype == DType::f32 && in[1].dtype == DType::f32 && is_constant[1] &&
               in[1].format == BlockFormat::plain;
    }
    static bool blocks_apply(const Operands& in, std::span<const bool>, const void*) {
        return in[1].format != BlockFormat::plain;
    }
    static bool half_applies(const Operands& in, std::span<const bool> is_constant, const void*) {
        return is_constant[1] && is_widened(in);
    }
    static bool bf16_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        const Attrs& a = cast(attrs);
        const bool may_round = in[1].dtype == DType::bf16
                                   ? half_applies(in, is_constant, attrs) && (a.round_a || a.round_to_bf16)
                                   : packed_applies(in, is_constant, attrs) && a.round_to_bf16;
        return may_round && kernels::has_bf16_gemm();
    }
    static bool int8_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        return is_constant[1] && cast(attrs).round_a && in[1].elements() > 0 &&
               kernels::has_block_gemm_int8(in[1].format);
    }
    static std::array<std::size_t, 2> block_sizes(Sizes b) {
        return {static_cast<std::size_t>(b[1]), static_cast<std::size_t>(b[0])};
    }
    static std::size_t packed_blocks_bytes(const Operands& in, const void*) {
        const auto [k, n] = block_sizes(sizes_of(in, 1));
        return kernels::packed_blocks_bytes(in[1].format, k, n);
    }
    static void pack_blocks(const ConstView& b, const void*, std::byte* packed) {
        const auto [k, n] = block_sizes(b.shape);
        kernels::pack_blocks(b.format, b.data, k, n, packed);
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        return packed_matrix_bytes(in, cast(attrs).transpose_b);
    }
    static void pack(const ConstView& b, const void* attrs, std::byte* packed) {
        pack_matrix(b, cast(attrs).transpose_b, packed);
    }
    static void run_packed(const TensorArgs& args, const void* attrs) {
        kernels::gemm_f32(gemm_args(args, attrs), args.share.ith, args.share.nth);
    }
    template <auto Kernel>
    static void run_blocks(const TensorArgs& args, const void* attrs) {
        Kernel(unpacked_args(args, attrs), args.in[1].format, args.in[1].data, args.share.ith,
               args.share.nth);
    }
    static std::size_t packed_half_bytes(const Operands& in, const void* attrs) {
        return packed_bytes(in, attrs) / 2;
    }
    static std::size_t packed_bf16_bytes(const Operands& in, const void* attrs) {
        const auto b = sizes_of(in, 1);
        const bool transposed = cast(attrs).transpose_b;
        return kernels::packed_bf16_bytes(static_cast<std::size_t>(b[transposed]),
                                          static_cast<std::size_t>(b[!transposed]));
    }
    static void pack_bf16(const ConstView& b, const void* attrs, std::byte* packed) {
        if (b.dtype == DType::bf16) return pack_16_bits<std::uint16_t, &kernels::pack_bf16>(b, attrs, packed);
        pack_16_bits<float, &kernels::pack_as_bf16>(b, attrs, packed);
    }
    static void pack_half_floats(const ConstView& b, const void* attrs, std::byte* packed) {
        pack_in_parts<std::uint16_t>(b, cast(attrs).transpose_b, reinterpret_cast<std::uint16_t*>(packed),
                                     &kernels::pack_half_floats);
    }
    /// Packs elements of T.
    template <class T, auto Pack>
    static void pack_16_bits(const ConstView& b, const void* attrs, std::byte* packed) {
        const std::int64_t columns = b.shape[1];
        std::array<std::int64_t, 2> size{b.shape[0], columns}, stride{columns, 1};
        if (cast(attrs).transpose_b) std::swap(size[0], size[1]), std::swap(stride[0], stride[1]);
        Pack(reinterpret_cast<const T*>(b.data), stride[0], stride[1], static_cast<std::size_t>(size[0]),
             static_cast<std::size_t>(size[1]), reinterpret_cast<std::uint16_t*>(packed));
    }
    static void run_half(const TensorArgs& args, const void* attrs) {
        kernels::f16_gemm_f32(unpacked_args(args, attrs), args.in[1].as<std::uint16_t>(),
                              args.in[1].dtype == DType::bf16, args.share.ith, args.share.nth);
    }
    static void run_bf16(const TensorArgs& args, const void* attrs) {
        kernels::bf16_gemm_f32(unpacked_args(args, attrs), args.in[1].as<std::uint16_t>(), args.share.ith,
                               args.share.nth);
    }
    static kernels::GemmArgs gemm_args(const TensorArgs& args, const void* attrs) {
        auto g = packed_gemm_args(args, cast(attrs).transpose_b);
        if (args.has(2)) g.bias = args.in[2].as<float>();
        if (args.has(3)) {
            g.residual = args.in[3].as<float>();
            g.ldr = g.ldc;
        }
        g.activation = kernel_activation(cast(attrs).activation);
        return g;
    }
    /// For kernels that take b, which is not f32, beside the arguments.
    static kernels::GemmArgs unpacked_args(const TensorArgs& args, const void* attrs) {
        kernels::GemmArgs g = gemm_args(args, attrs);
        g.packed_b = nullptr;
        return g;
    }
    static constexpr std::array kernels{
        KernelDef{"bf16_gemm_f32", &bf16_applies, 1, &packed_bf16_bytes, &pack_bf16, &run_bf16},
        KernelDef{"gemm_f32", &packed_applies, 1, &packed_bytes, &pack, &run_packed, true},
        KernelDef{"block_gemm_int8", &int8_applies, 1, &packed_blocks_bytes, &pack_blocks,
                  &run_blocks<&kernels::block_gemm_int8>},
        KernelDef{"f16_gemm_f32", &half_applies, 1, &packed_half_bytes, &pack_half_floats, &run_half, true},
        KernelDef{.name = "block_gemm_f32",
                  .applies = &blocks_apply,
                  .run = &run_blocks<&kernels::block_gemm_f32>}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& attrs) {
        Cost cost = product_cost(in, out, product(in, attrs));
        cost.flops += 10.0 * static_cast<double>(out[0].elements());
        return cost;
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape a, Shape b, bool bias, bool residual, NamedAttrs attrs,
                             bool constant) {
            Sample s{{{.type = {t, a}}, {.type = {t, b}, .constant = constant}},
                     std::move(attrs),
                     sample_tolerance(t)};
            const bool transposed = infer_transposed(s.attrs);
            Shape out = a;
            out.back() = b[!transposed];
            s.operands.push_back({.type = {t, {out.back()}}, .constant = constant, .absent = !bias});
            s.operands.push_back({.type = {t, out}, .absent = !residual});
            list.push_back(std::move(s));
        };
        for (const bool constant : {false, true}) {
            for (std::string_view f : detail::kEnumNames<Activation>)
                add(DType::f32, {2, 9, 24}, {24, 40}, true, true, {{"activation", std::string(f)}}, constant);
            add(DType::f32, {9, 24}, {40, 24}, true, false, {{"transpose_b", true}}, constant);
            add(DType::f32, {2, 1, 2, 1, 24}, {24, 40}, false, true, {}, constant);
        }
        add(DType::f32, {3, 1}, {1, 40}, true, true, {}, false);
        add(DType::f16, {3, 5}, {7, 5}, true, true,
            {{"transpose_b", true}, {"activation", std::string("tanh")}}, true);
        for (const DType half : {DType::f16, DType::bf16})
            for (const bool transposed : {false, true})
                for (const std::int64_t rows : {1, 9}) {
                    add(DType::f32, {rows, 70}, {transposed ? 45 : 70, transposed ? 70 : 45}, true, true,
                        {{"transpose_b", transposed}, {"activation", std::string("silu")}}, transposed);
                    list.back().operands[1].type.dtype = half;
                }
        for (const std::int64_t rows : {1, 9, 50}) {
            add(DType::f32, {rows, 71}, {45, 71}, true, true,
                {{"transpose_b", true}, {"activation", std::string("silu")}, {"round_a", true}}, true);
            list.back().operands[1].type.dtype = DType::bf16;
            list.back().tolerance = 0.06;
            for (const bool transposed : {false, true}) {
                add(DType::f32, {rows, 71}, {transposed ? 45 : 71, transposed ? 71 : 45}, true, true,
                    {{"transpose_b", transposed}, {"round_to_bf16", true}}, true);
                list.back().tolerance = 0.12;
            }
        }
        // ggml rounds the other operand to 8 bits as well.
        for (int i = 1; i < kBlockFormatCount; ++i) {
            const auto format = static_cast<BlockFormat>(i);
            const std::int64_t k = 2 * block_elements(format);
            for (const bool round_a : {false, true}) {
                add(DType::f32, {9, k}, {40, k}, true, true,
                    {{"transpose_b", true}, {"activation", std::string("gelu")}, {"round_a", round_a}}, true);
                list.back().operands[1].type.format = format;
                list.back().tolerance = 0.05;
            }
        }
        add(DType::f64, {3, 5}, {5, 7}, true, true, {{"activation", std::string("silu")}}, false);
        return list;
    }
    static bool infer_transposed(const NamedAttrs& attrs) {
        for (const auto& [key, value] : attrs)
            if (key == "transpose_b") return std::get<bool>(value);
        return false;
    }
};

}  // namespace

std::span<const OpDef> fused_matmul_ops() { return OpList<FusedMatMul>::defs(); }

}  // namespace headrace::ops
