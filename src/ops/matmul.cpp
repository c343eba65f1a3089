/// Matrix products: over batches, and of two matrices with scaling and an added term.
#include <array>
#include <utility>

#include "ops/infer.h"
#include "ops/op.h"
#include "ops/product.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

bool all_f32(const Operands& in) {
    for (int i = 0; i < in.size(); ++i)
        if (in.has(i) && in[i].dtype != DType::f32) return false;
    return true;
}

struct MatMul {
    static constexpr std::string_view name = "matmul",
                                      summary =
                                          "product of matrices; leading dimensions are batches and broadcast";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kFloats, .min_rank = 2},
        OperandRule{.name = "b", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 2}};

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        const Shape &a = in[0].shape, &b = in[1].shape;
        if (!same_extent(in, a.back(), b[b.size() - 2]))
            return invalid("Incompatible shapes for matmul: {} and {}, whose inner extents {} and {} differ",
                           str(a), str(b), a.back().str(), b[b.size() - 2].str());
        auto batch = broadcast(in, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
        if (!batch.ok())
            return invalid("Incompatible shapes for matmul: {} and {}, whose batch extents do not broadcast",
                           str(a), str(b));
        Shape out = std::move(batch).value();
        out.push_back(a[a.size() - 2]);
        out.push_back(b.back());
        return Types{{in[0].dtype, std::move(out)}};
    }

    static Product product(const Operands& in) { return dense_product(sizes_of(in, 0), sizes_of(in, 1)); }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const Product p = dense_product(args.in[0].shape, args.in[1].shape);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            reference_product(
                args.in[0].as<T>(), args.in[1].as<T>(), p, args.share,
                [&](std::int64_t row, std::int64_t column, std::int64_t count, const double* sums) {
                    T* out = args.out[0].as<T>() + row * p.n + column;
                    std::transform(sums, sums + count, out, [](double x) { return convert<T>(x); });
                });
        });
    }

    static Status lowerable(const Operands& in, const NoAttrs&) { return product_lowerable(in, product(in)); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& a) {
        const TensorType out = infer(in, a).value()[0];
        ggml_tensor* c = lower_product(e, x[0], x[1], in, product(in));
        return {from_f32(e, c, out)};
    }

    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void*) {
        return all_f32(in) && is_constant[1] &&
               headrace::product({in[1].shape.begin(), in[1].shape.end() - 2}).is(1);
    }
    static std::size_t packed_bytes(const Operands& in, const void*) {
        return packed_matrix_bytes(in, false);
    }
    static void pack(const ConstView& b, const void*, std::byte* packed) { pack_matrix(b, false, packed); }
    static void run_packed(const TensorArgs& args, const void*) {
        kernels::gemm_f32(packed_gemm_args(args, false), args.share.ith, args.share.nth);
    }

    static bool batched_applies(const Operands& in, std::span<const bool>, const void*) {
        return all_f32(in) && product(in).batch.size() <= kernels::BatchedGemmArgs::kBatchDims;
    }
    static void run_batched(const TensorArgs& args, const void*) {
        const Product p = dense_product(args.in[0].shape, args.in[1].shape);
        kernels::BatchedGemmArgs g{.m = static_cast<std::size_t>(p.m),
                                   .n = static_cast<std::size_t>(p.n),
                                   .k = static_cast<std::size_t>(p.k),
                                   .a = args.in[0].as<float>(),
                                   .lda = static_cast<std::ptrdiff_t>(p.a_row),
                                   .b = args.in[1].as<float>(),
                                   .ldb = static_cast<std::ptrdiff_t>(p.n),
                                   .c = args.out[0].as<float>(),
                                   .ldc = static_cast<std::ptrdiff_t>(p.n)};
        std::int64_t c_stride = p.m * p.n;
        for (std::size_t i = p.batch.size(), d = kernels::BatchedGemmArgs::kBatchDims; i-- > 0;) {
            g.batch[--d] = static_cast<std::size_t>(p.batch[i].size);
            g.a_batch[d] = p.a_batch[i];
            g.b_batch[d] = p.b_batch[i];
            g.c_batch[d] = std::exchange(c_stride, c_stride * p.batch[i].size);
        }
        kernels::batched_gemm_f32(g, args.share.ith, args.share.nth);
    }

    static constexpr std::array kernels{
        KernelDef{"gemm_f32", &packed_applies, 1, &packed_bytes, &pack, &run_packed, true},
        KernelDef{.name = "batched_gemm_f32", .applies = &batched_applies, .run = &run_batched}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return product_cost(in, out, product(in));
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape a, Shape b, bool constant = false) {
            list.push_back({{{.type = {t, std::move(a)}}, {.type = {t, std::move(b)}, .constant = constant}},
                            {},
                            sample_tolerance(t)});
        };
        for (const bool constant : {false, true}) add(DType::f32, {5, 7}, {7, 3}, constant);
        add(DType::f32, {2, 33, 64}, {64, 48}, true);
        add(DType::f32, {2, 1, 64}, {1, 64, 70}, true);
        // Transposing these moves no element, which ggml must not take for a transposed operand.
        add(DType::f32, {4, 1}, {1, 3});
        add(DType::f32, {2, 4, 1}, {2, 1, 3});
        add(DType::f32, {1, 5}, {5, 1});
        add(DType::f32, {3, 4, 5}, {3, 5, 6});
        add(DType::f32, {2, 3, 4, 5}, {2, 1, 5, 6});
        add(DType::f32, {2, 3, 4, 5}, {3, 5, 6});
        add(DType::f32, {4, 5}, {2, 3, 5, 6});
        add(DType::f32, {1, 3, 4, 5}, {2, 1, 5, 6});
        add(DType::f32, {2, 2, 3, 4, 5}, {2, 2, 3, 5, 2});
        add(DType::f32, {2, 1, 3, 4, 5}, {2, 2, 1, 5, 2});
        add(DType::f32, {2, 1, 2, 1, 4, 5}, {1, 2, 1, 2, 5, 3});
        for (DType t : {DType::f16, DType::bf16, DType::f64}) {
            add(t, {5, 7}, {7, 3}, true);
            add(t, {2, 3, 4, 5}, {2, 1, 5, 6});
            add(t, {4, 5}, {2, 3, 5, 6});
        }
        return list;
    }
};

struct Gemm {
    static constexpr std::string_view name = "gemm", summary = "alpha · a · b + beta · c";
    static constexpr std::array operands{
        OperandRule{.name = "a", .dtypes = kFloats, .min_rank = 2, .max_rank = 2},
        OperandRule{.name = "b", .dtypes = kFloats, .same_dtype_as = 0, .min_rank = 2, .max_rank = 2},
        OperandRule{.name = "c", .dtypes = kFloats, .same_dtype_as = 0, .optional = true, .max_rank = 2}};

    struct Attrs {
        double alpha = 1, beta = 1;
        bool a_transpose = false, b_transpose = false;
        static void fields(auto&& f) {
            f("alpha", &Attrs::alpha, "factor of the product");
            f("beta", &Attrs::beta, "factor of c");
            f("a_transpose", &Attrs::a_transpose, "a is [k, m]");
            f("b_transpose", &Attrs::b_transpose, "b is [n, k]");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& attrs) {
        const Shape &a = in[0].shape, &b = in[1].shape;
        const Dim &m = a[attrs.a_transpose], &k = a[!attrs.a_transpose];
        const Dim &b_k = b[attrs.b_transpose], &n = b[!attrs.b_transpose];
        if (!same_extent(in, k, b_k))
            return invalid(
                "Incompatible shapes for gemm: {}{} and {}{}, whose inner extents {} and {} differ", str(a),
                attrs.a_transpose ? " transposed" : "", str(b), attrs.b_transpose ? " transposed" : "",
                k.str(), b_k.str());
        Shape out{m, n};
        if (in.has(2) && !broadcasts_to(in, in[2].shape, out))
            return invalid(
                "Incompatible shapes for gemm: c of shape {} does not broadcast to the product's {}",
                str(in[2].shape), str(out));
        return Types{{in[0].dtype, std::move(out)}};
    }

    static Product product(Sizes a, Sizes b, const Attrs& attrs) {
        std::array sizes{a[attrs.a_transpose], a[!attrs.a_transpose]};
        Product p = dense_product(sizes, b, attrs.b_transpose);
        if (attrs.a_transpose) {
            p.a_row = 1;
            p.a_inner = p.m;
        }
        return p;
    }
    static Product product(const Operands& in, const Attrs& attrs) {
        return product(sizes_of(in, 0), sizes_of(in, 1), attrs);
    }

    static void reference(const TensorArgs& args, const Attrs& attrs) {
        const Product p = product(args.in[0].shape, args.in[1].shape, attrs);
        const bool has_c = args.has(2);
        const auto c_strides =
            has_c ? broadcast_strides(args.in[2].shape, args.out[0].shape) : std::vector<std::int64_t>{0, 0};
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            reference_product(
                args.in[0].as<T>(), args.in[1].as<T>(), p, args.share,
                [&](std::int64_t row, std::int64_t column, std::int64_t count, const double* sums) {
                    T* out = args.out[0].as<T>() + row * p.n + column;
                    for (std::int64_t i = 0; i < count; ++i) {
                        double value = attrs.alpha * sums[i];
                        if (has_c) {
                            const T c = args.in[2].as<T>()[row * c_strides[0] + (column + i) * c_strides[1]];
                            value += attrs.beta * convert<double>(c);
                        }
                        out[i] = convert<T>(value);
                    }
                });
        });
    }

    static Status lowerable(const Operands& in, const Attrs& attrs) {
        return product_lowerable(in, product(in, attrs));
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& attrs) {
        const DType t = in[0].dtype;
        ggml_tensor* a = to_f32(e, x[0], t);
        if (attrs.a_transpose) a = e.contiguous(e.permute(a, std::array{1, 0}));
        const TensorType a_type{DType::f32,
                                attrs.a_transpose ? Shape{in[0].shape[1], in[0].shape[0]} : in[0].shape};
        const std::array types{&a_type, &in[1]};
        const Operands plain(types);
        ggml_tensor* out =
            lower_product(e, a, x[1], plain, dense_product(a_type.sizes(), in[1].sizes(), attrs.b_transpose));
        if (attrs.alpha != 1) out = e.scale(out, static_cast<float>(attrs.alpha), 0);
        if (in.has(2)) {
            ggml_tensor* c = to_f32(e, x[2], in[2].dtype);
            if (attrs.beta != 1) c = e.scale(c, static_cast<float>(attrs.beta), 0);
            out = e.binary(Binary::add, out, c);
        }
        return {from_f32(e, out, {t, infer(in, attrs).value()[0].shape})};
    }

    static const Attrs& cast(const void* attrs) { return detail::attrs_ref<Attrs>(attrs); }
    /// The packed kernel has no factors, reads A by rows, and adds either a row or a whole matrix.
    static bool packed_applies(const Operands& in, std::span<const bool> is_constant, const void* attrs) {
        const Attrs& g = cast(attrs);
        if (!all_f32(in) || !is_constant[1] || g.a_transpose || g.alpha != 1) return false;
        if (!in.has(2)) return true;
        const Shape& c = in[2].shape;
        return g.beta == 1 && !c.empty() && c.back() == in[1].shape[!g.b_transpose] &&
               (c.size() == 1 || c[0].is(1) || c[0] == in[0].shape[0]);
    }
    static std::size_t packed_bytes(const Operands& in, const void* attrs) {
        return packed_matrix_bytes(in, cast(attrs).b_transpose);
    }
    static void pack(const ConstView& b, const void* attrs, std::byte* packed) {
        pack_matrix(b, cast(attrs).b_transpose, packed);
    }
    static void run_packed(const TensorArgs& args, const void* attrs) {
        auto g = packed_gemm_args(args, cast(attrs).b_transpose);
        if (args.has(2)) {
            const bool one_row = args.in[2].elements() == static_cast<std::int64_t>(g.n);
            (one_row ? g.bias : g.residual) = args.in[2].as<float>();
            if (!one_row) g.ldr = g.ldc;
        }
        kernels::gemm_f32(g, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{"gemm_f32", &packed_applies, 1, &packed_bytes, &pack, &run_packed, true}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& attrs) {
        return product_cost(in, out, product(in, attrs));
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape a, Shape b, std::optional<Shape> c, NamedAttrs attrs,
                             bool constant = false) {
            Sample s{{{.type = {t, std::move(a)}}, {.type = {t, std::move(b)}, .constant = constant}},
                     std::move(attrs),
                     sample_tolerance(t)};
            if (c) s.operands.push_back({.type = {t, *c}, .constant = constant});
            list.push_back(std::move(s));
        };
        for (const bool constant : {false, true}) {
            add(DType::f32, {5, 7}, {7, 18}, std::nullopt, {}, constant);
            add(DType::f32, {5, 7}, {18, 7}, Shape{18}, {{"b_transpose", true}}, constant);
            add(DType::f32, {5, 7}, {7, 18}, Shape{5, 18}, {}, constant);
            add(DType::f32, {5, 7}, {7, 18}, Shape{1, 18}, {}, constant);
        }
        for (DType t : {DType::f32, DType::f16, DType::f64}) {
            add(t, {7, 5}, {7, 3}, Shape{5, 1}, {{"a_transpose", true}, {"alpha", 0.5}, {"beta", -2.0}});
            add(t, {7, 5}, {3, 7}, Shape{}, {{"a_transpose", true}, {"b_transpose", true}});
            add(t, {4, 6}, {6, 2}, Shape{1}, {{"beta", 0.0}});
        }
        return list;
    }
};

}  // namespace

std::span<const OpDef> matmul_ops() { return OpList<MatMul, Gemm>::defs(); }

}  // namespace headrace::ops
