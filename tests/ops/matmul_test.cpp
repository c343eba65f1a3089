#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Values 1, 2, 3, ... modulo a prime, signed: no two rows or columns are alike.
TestTensor counting(DType dtype, Shape shape) {
    const std::int64_t n = TensorType{dtype, shape}.elements();
    std::vector<double> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 23) - 11;
    return tensor(dtype, std::move(shape), values);
}

/// The kernel that would run the node, or "".
std::string_view kernel(std::string_view op, const std::vector<TensorType>& types, bool b_is_constant,
                        const NamedAttrs& named = {}) {
    std::vector<const TensorType*> pointers;
    for (const TensorType& t : types) pointers.push_back(&t);
    const bool constants[] = {false, b_is_constant, false, false};
    const AttrBox attrs = find_op(op)->make_attrs(named).value();
    for (const KernelDef& k : find_op(op)->kernels)
        if (k.applies(Operands(pointers), {constants, types.size()}, attrs.get())) return k.name;
    return "";
}

TEST(MatMul, MultipliesTwoMatrices) {
    EXPECT_THAT(values("matmul", {tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                                  tensor(DType::f32, {3, 2}, {7, 8, 9, 10, 11, 12})}),
                ElementsAre(58, 64, 139, 154));
}

TEST(MatMul, IsTheSameInEveryFloatType) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(
            values<double>("matmul", {tensor(t, {1, 2}, {1.5, -2}), tensor(t, {2, 2}, {2, 4, 1, 0.5})}),
            ElementsAre(1, 5))
            << name_of(t);
}

TEST(MatMul, BroadcastsBatchesBothWays) {
    const Shape shapes[][3] = {{{2, 1, 3, 4}, {5, 4, 2}, {2, 5, 3, 2}},
                               {{3, 4}, {2, 3, 4, 5}, {2, 3, 3, 5}},
                               {{2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6}},
                               {{2, 1, 2, 1, 2, 3}, {1, 3, 1, 2, 3, 2}, {2, 3, 2, 2, 2, 2}},
                               {{2, 2, 3, 4}, {2, 1, 4, 300}, {2, 2, 3, 300}}};
    for (const auto& [a_shape, b_shape, out_shape] : shapes) {
        const TestTensor a = counting(DType::f32, a_shape), b = counting(DType::f32, b_shape);
        const auto result = run("matmul", {a, b});
        ASSERT_EQ(result.size(), 1u);
        ASSERT_EQ(result[0].type, f32(out_shape));
        const auto at = [](const TestTensor& t, std::vector<std::int64_t> index) {
            const auto sizes = t.type.sizes();
            std::int64_t offset = 0;
            index.erase(index.begin(), index.end() - t.type.rank());
            for (std::size_t d = 0; d < sizes.size(); ++d)
                offset = offset * sizes[d] + (sizes[d] == 1 ? 0 : index[d]);
            return t.as<double>()[static_cast<std::size_t>(offset)];
        };
        const auto sizes = result[0].type.sizes();
        const std::int64_t k = a.type.sizes().back();
        const auto actual = result[0].as<double>();
        for (std::size_t i = 0; i < actual.size(); i += 7) {
            std::vector<std::int64_t> index(sizes.size());
            for (std::size_t d = sizes.size(), rest = i; d-- > 0; rest /= static_cast<std::size_t>(sizes[d]))
                index[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(sizes[d]));
            double expected = 0;
            for (std::int64_t j = 0; j < k; ++j) {
                auto in_a = index, in_b = index;
                in_a.back() = j;
                in_b[in_b.size() - 2] = j;
                expected += at(a, in_a) * at(b, in_b);
            }
            ASSERT_EQ(actual[i], expected) << str(a_shape) << " · " << str(b_shape) << " at " << i;
        }
    }
}

TEST(MatMul, AccumulatesLongF16RowsWithoutLosingBits) {
    // In f16 itself the sum would stall at 2048.
    const std::vector<double> ones(8193, 1);
    EXPECT_THAT(values("matmul", {tensor(DType::f16, {1, 8193}, ones), tensor(DType::f16, {8193, 1}, ones)}),
                ElementsAre(8192));
}

TEST(MatMul, LetsNaNAndInfinityThrough) {
    const auto result = values("matmul", {tensor(DType::f32, {2, 2}, {NAN, 0, INFINITY, 1}),
                                          tensor(DType::f32, {2, 2}, {0, 1, 2, -3})});
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]) && std::isnan(result[2]));
    EXPECT_EQ(result[3], INFINITY);
}

TEST(MatMul, OverNoElementsIsZero) {
    EXPECT_THAT(values("matmul", {tensor(DType::f32, {2, 0}, {}), tensor(DType::f32, {0, 1}, {})}),
                ElementsAre(0, 0));
    EXPECT_EQ(run("matmul", {tensor(DType::f32, {0, 2, 3}, {}), counting(DType::f32, {3, 4})})[0].type,
              f32({0, 2, 4}));
}

TEST(MatMul, KeepsSymbolicExtents) {
    const Dim batch = Dim::symbolic("batch"), tokens = Dim::symbolic("tokens"),
              width = Dim::symbolic("width");
    EXPECT_EQ(infer("matmul", {f32({batch, tokens, width}), f32({width, 8})}).value()[0],
              f32({batch, tokens, 8}));
    EXPECT_THAT(conditions("matmul", {f32({2, tokens}), f32({width, 8})}), ElementsAre("tokens = width"));
    EXPECT_THAT(infer_error("matmul", {f32({2, tokens}), f32({product({tokens, 2}), 8})}),
                HasSubstr("tokens and 2*tokens differ"));
}

TEST(MatMul, RejectsShapesThatDoNotMatch) {
    EXPECT_EQ(infer_error("matmul", {f32({2, 3}), f32({4, 5})}),
              "Incompatible shapes for matmul: [2, 3] and [4, 5], whose inner extents 3 and 4 differ");
    EXPECT_EQ(
        infer_error("matmul", {f32({2, 2, 3}), f32({3, 3, 5})}),
        "Incompatible shapes for matmul: [2, 2, 3] and [3, 3, 5], whose batch extents do not broadcast");
    EXPECT_THAT(infer_error("matmul", {f32({3}), f32({3, 5})}), HasSubstr("rank"));
    EXPECT_THAT(infer_error("matmul", {f32({2, 3}), {{DType::f16, {3, 5}}}}), HasSubstr("f16"));
    EXPECT_THAT(infer_error("matmul", {{{DType::i32, {2, 3}}}, {{DType::i32, {3, 5}}}}), HasSubstr("i32"));
}

TEST(MatMul, PacksOnlyConstantSingleMatrices) {
    EXPECT_EQ(kernel("matmul", {f32({2, 4, 8}), f32({8, 16})}, true), "gemm_f32");
    EXPECT_EQ(kernel("matmul", {f32({2, 4, 8}), f32({1, 8, 16})}, true), "gemm_f32");
    EXPECT_EQ(kernel("matmul", {f32({2, 4, 8}), f32({2, 8, 16})}, true), "batched_gemm_f32");
    EXPECT_EQ(kernel("matmul", {f32({2, 4, 8}), f32({8, 16})}, false), "batched_gemm_f32");
    EXPECT_EQ(kernel("matmul", {{DType::f16, {4, 8}}, {DType::f16, {8, 16}}}, true), "");
}

TEST(Gemm, ScalesTheProductAndTheAddedMatrix) {
    EXPECT_THAT(values("gemm",
                       {tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), tensor(DType::f32, {2, 2}, {5, 6, 7, 8}),
                        tensor(DType::f32, {2, 2}, {1, 2, 3, 4})},
                       {{"alpha", 0.5}, {"beta", 10.0}}),
                ElementsAre(9.5 + 10, 11 + 20, 21.5 + 30, 25 + 40));
}

TEST(Gemm, ReadsTransposedOperands) {
    const auto a = counting(DType::f64, {5, 3}), b = counting(DType::f64, {3, 4});
    const auto expected = values<double>("gemm", {a, b});
    const auto transposed = [](const TestTensor& t) {
        const auto in = t.as<double>();
        const auto rows = static_cast<std::size_t>(t.type.sizes()[0]), columns = in.size() / rows;
        std::vector<double> out(in.size());
        for (std::size_t i = 0; i < in.size(); ++i) out[i % columns * rows + i / columns] = in[i];
        return tensor(t.type.dtype, {t.type.shape[1], t.type.shape[0]}, out);
    };
    EXPECT_EQ(values<double>("gemm", {transposed(a), b}, {{"a_transpose", true}}), expected);
    EXPECT_EQ(values<double>("gemm", {a, transposed(b)}, {{"b_transpose", true}}), expected);
    EXPECT_EQ(values<double>("gemm", {transposed(a), transposed(b)},
                             {{"a_transpose", true}, {"b_transpose", true}}),
              expected);
    EXPECT_EQ(expected, values<double>("matmul", {a, b}));
}

TEST(Gemm, BroadcastsTheAddedOperand) {
    const auto a = tensor(DType::f32, {2, 1}, {1, 2}), b = tensor(DType::f32, {1, 3}, {10, 20, 30});
    EXPECT_THAT(values("gemm", {a, b, tensor(DType::f32, {}, {1})}), ElementsAre(11, 21, 31, 21, 41, 61));
    EXPECT_THAT(values("gemm", {a, b, tensor(DType::f32, {3}, {1, 2, 3})}),
                ElementsAre(11, 22, 33, 21, 42, 63));
    EXPECT_THAT(values("gemm", {a, b, tensor(DType::f32, {2, 1}, {1, 2})}),
                ElementsAre(11, 21, 31, 22, 42, 62));
}

TEST(Gemm, RejectsShapesThatDoNotMatch) {
    EXPECT_EQ(
        infer_error("gemm", {f32({2, 3}), f32({3, 4})}, {{"a_transpose", true}}),
        "Incompatible shapes for gemm: [2, 3] transposed and [3, 4], whose inner extents 2 and 3 differ");
    EXPECT_EQ(infer_error("gemm", {f32({2, 3}), f32({3, 4}), f32({3})}),
              "Incompatible shapes for gemm: c of shape [3] does not broadcast to the product's [2, 4]");
    // c may not enlarge the product.
    EXPECT_THAT(infer_error("gemm", {f32({1, 3}), f32({3, 4}), f32({2, 4})}),
                HasSubstr("does not broadcast"));
    EXPECT_THAT(infer_error("gemm", {f32({1, 2, 3}), f32({3, 4})}), HasSubstr("rank"));
}

TEST(Gemm, PacksWhatTheKernelCanAdd) {
    const TensorType a = f32({2, 8}), b = f32({8, 16});
    EXPECT_EQ(kernel("gemm", {a, b}, true), "gemm_f32");
    EXPECT_EQ(kernel("gemm", {a, b, f32({16})}, true), "gemm_f32");
    EXPECT_EQ(kernel("gemm", {a, b, f32({2, 16})}, true), "gemm_f32");
    EXPECT_EQ(kernel("gemm", {a, b, f32({2, 1})}, true), "");
    EXPECT_EQ(kernel("gemm", {a, b, f32({})}, true), "");
    EXPECT_EQ(kernel("gemm", {a, b, f32({16})}, true, {{"beta", 2.0}}), "");
    EXPECT_EQ(kernel("gemm", {a, b}, true, {{"alpha", 2.0}}), "");
    EXPECT_EQ(kernel("gemm", {a, f32({16, 2})}, true, {{"a_transpose", true}, {"b_transpose", true}}), "");
    EXPECT_EQ(kernel("gemm", {a, b}, false), "");
}

TEST(FusedMatMul, AddsTheResidualAfterTheActivation) {
    EXPECT_THAT(values("fused_matmul",
                       {tensor(DType::f32, {2, 2}, {1, 2, -3, 4}), tensor(DType::f32, {2, 2}, {1, 0, 0, -1}),
                        tensor(DType::f32, {2}, {0.5, 1}), tensor(DType::f32, {2, 2}, {10, 20, 30, 40})},
                       {{"activation", std::string("relu")}}),
                ElementsAre(11.5, 20, 30, 40));
}

TEST(FusedMatMul, AppliesEachActivation) {
    const auto apply = [](const char* f) {
        return values<double>("fused_matmul",
                              {tensor(DType::f64, {1, 1}, {0.7}), tensor(DType::f64, {1, 2}, {1, -2})},
                              {{"activation", std::string(f)}});
    };
    const auto expect = [&](const char* f, double first, double second) {
        EXPECT_NEAR(apply(f)[0], first, 1e-12) << f;
        EXPECT_NEAR(apply(f)[1], second, 1e-12) << f;
    };
    // From the C library, by erfc.
    expect("none", 0.7, -1.4);
    expect("relu", 0.7, 0);
    expect("gelu", 0.5306254434438489, -0.11305932292727951);
    expect("tanh", 0.6043677771171636, -0.8853516482022625);
    expect("sigmoid", 0.668187772168166, 0.19781611144141822);
    expect("silu", 0.4677314405177162, -0.2769425560179855);
}

TEST(FusedMatMul, KeepsLeadingDimensionsAndReadsTransposedB) {
    const auto a = counting(DType::f32, {2, 3, 4}), b = counting(DType::f32, {5, 4});
    const auto result = run("fused_matmul", {a, b}, {{"transpose_b", true}});
    EXPECT_EQ(result[0].type, f32({2, 3, 5}));
    const auto flat = tensor(DType::f32, {6, 4}, a.as<double>());
    EXPECT_EQ(result[0].as<float>(), values("gemm", {flat, b}, {{"b_transpose", true}}));
}

TEST(FusedMatMul, RejectsShapesThatDoNotMatch) {
    EXPECT_THAT(infer_error("fused_matmul", {f32({2, 3}), f32({4, 3})}),
                HasSubstr("inner extents 3 and 4 differ"));
    EXPECT_EQ(infer_error("fused_matmul", {f32({2, 3}), f32({3, 4}), f32({3})}),
              "bias has shape [3] but the product has 4 columns");
    EXPECT_EQ(infer_error("fused_matmul", {f32({2, 3}), f32({3, 4}), std::nullopt, f32({1, 4})}),
              "residual has shape [1, 4] but the product has shape [2, 4]");
    EXPECT_THAT(infer_error("fused_matmul", {f32({2, 3}), f32({2, 3, 4})}), HasSubstr("rank"));
}

}  // namespace
}  // namespace headrace::testing
