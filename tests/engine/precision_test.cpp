/// Products that may be rounded: Precision::fast.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "kernels/gemm/bf16_gemm_f32.h"
#include "plan/tuning.h"
#include "temporary_folder.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kModelWidth = 768;

/// A dense layer, attention among its columns, and a second one.
Graph dense_layers(Dim rows = 24) {
    TestGraph g;
    const auto matrix = [&](unsigned seed) {
        return g.constant<float>({kModelWidth, kModelWidth}, random_floats(kModelWidth * kModelWidth, seed));
    };
    const ValueId x = g.input("x", {std::move(rows), kModelWidth});
    const ValueId y = g.op("gelu", {g.op("matmul", {x, matrix(1)})});
    const ValueId a = g.op("scaled_dot_product_attention", {y, y, y});
    g.output("y", g.op("matmul", {a, matrix(2)}));
    return g.finish();
}

/// Windows of 3 x 3 twice, one every second pixel, and one of a single pixel.
Graph convolutions() {
    TestGraph g;
    using List = std::vector<std::int64_t>;
    const auto filter = [&](Shape shape, unsigned seed) {
        std::size_t count = 1;
        for (const Dim& d : shape) count *= static_cast<std::size_t>(d.size());
        return g.constant<float>(std::move(shape), random_floats(count, seed));
    };
    ValueId v = g.input("x", {1, 64, 20, 20});
    v = g.op("relu", {g.op("conv2d", {v, filter({64, 64, 3, 3}, 1)}, {{"padding", List{1, 1, 1, 1}}})});
    v = g.op("conv2d", {v, filter({96, 64, 3, 3}, 2)}, {{"strides", List{2, 2}}});
    g.output("y", g.op("conv2d", {v, filter({32, 96, 1, 1}, 3)}));
    return g.finish();
}

struct Ran {
    std::vector<float> y;
    std::vector<std::string> implementations;
};

Ran run_as(const Graph& graph, std::vector<std::int64_t> shape, const CompileOptions& options) {
    std::size_t count = 1;
    for (const std::int64_t d : shape) count *= static_cast<std::size_t>(d);
    Session session(compile(graph, options));
    Ran ran{.y = run(session, {std::move(shape)}, {random_floats(count, 9)})[0]};
    for (const NodeStats& node : session.stats().nodes) ran.implementations.push_back(node.implementation);
    return ran;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double product = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        product += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
    return product / std::sqrt(aa * bb);
}

const CompileOptions kExact{.threads = 2, .tuning = "off"};
const CompileOptions kFast{.threads = 2, .precision = Precision::fast, .tuning = "off"};

struct FastPrecision : ::testing::Test {
    void SetUp() override {
        if (!kernels::has_bf16_gemm()) GTEST_SKIP() << "this processor does not multiply bf16";
    }
};

TEST_F(FastPrecision, RoundsProductsAndAttentionToBf16) {
    const Graph graph = dense_layers();
    const Ran exact = run_as(graph, {24, kModelWidth}, kExact),
              fast = run_as(graph, {24, kModelWidth}, kFast);
    EXPECT_THAT(exact.implementations, Each(Not(HasSubstr("bf16"))));
    EXPECT_THAT(fast.implementations, AllOf(Contains("bf16_gemm_f32"), Contains("attention_bf16")));
    EXPECT_GT(cosine(fast.y, exact.y), 0.9995);
    EXPECT_NE(fast.y, exact.y);
}

TEST_F(FastPrecision, RoundsConvolutionsToBf16) {
    const Graph graph = convolutions();
    const Ran exact = run_as(graph, {1, 64, 20, 20}, kExact), fast = run_as(graph, {1, 64, 20, 20}, kFast);
    EXPECT_THAT(exact.implementations, Each(Not(HasSubstr("bf16"))));
    EXPECT_THAT(fast.implementations,
                AllOf(Contains("nhwc_bf16_winograd_conv2d"), Contains("nhwc_bf16_conv2d").Times(2)));
    EXPECT_GT(cosine(fast.y, exact.y), 0.9995);
    EXPECT_NE(fast.y, exact.y);
}

TEST_F(FastPrecision, HalvesPackedWeights) {
    const auto packed = [](const CompileOptions& options) {
        return compile(dense_layers(), options).stats().packed_bytes;
    };
    EXPECT_EQ(packed(kFast), packed(kExact) / 2);
    EXPECT_TRUE(compile(dense_layers(), kFast).stats().is_fast);
    EXPECT_FALSE(compile(dense_layers(), kExact).stats().is_fast);
}

TEST_F(FastPrecision, HoldsForEveryShapeOfAnOpenGraph) {
    const Graph graph = dense_layers(Dim::symbolic("n", 1, 64));
    for (const std::int64_t rows : {1, 5, 40}) {
        const Ran exact = run_as(graph, {rows, kModelWidth}, kExact),
                  fast = run_as(graph, {rows, kModelWidth}, kFast);
        EXPECT_THAT(fast.implementations, Contains("bf16_gemm_f32").Times(2));
        EXPECT_GT(cosine(fast.y, exact.y), 0.9995) << rows;
    }
}

TEST_F(FastPrecision, HasPackedWeightsAndMeasuredChoicesOfItsOwn) {
    const TemporaryFolder folder;
    const auto with_cache = [&](CompileOptions options) {
        options.packed_cache = folder.path().string();
        return options;
    };
    const Graph graph = dense_layers();
    const Ran exact = run_as(graph, {24, kModelWidth}, with_cache(kExact)),
              fast = run_as(graph, {24, kModelWidth}, with_cache(kFast));
    const auto files = std::filesystem::directory_iterator(folder.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 2);
    EXPECT_EQ(run_as(graph, {24, kModelWidth}, with_cache(kExact)).y, exact.y);
    EXPECT_EQ(run_as(graph, {24, kModelWidth}, with_cache(kFast)).y, fast.y);
    EXPECT_GT(compile(graph, with_cache(kFast)).stats().packed_mapped_bytes, 0u);

    const Graph as_exact = compile(graph, kExact).graph(), as_fast = compile(graph, kFast).graph();
    EXPECT_NE(kind_of(as_exact, as_exact.nodes[0], 2), kind_of(as_fast, as_fast.nodes[0], 2));
}

TEST_F(FastPrecision, LeavesWeightsInBlocksAlone) {
    CompileOptions blocks = kFast;
    blocks.weights = WeightFormat::q8_0;
    EXPECT_THAT(run_as(dense_layers(), {24, kModelWidth}, blocks).implementations,
                Not(Contains("bf16_gemm_f32")));
}

// It is told in a process of its own, once.
TEST(FastPrecisionDeathTest, SaysOnceThatItChangesNothingWithoutPackedKernels) {
    const auto compile_twice = [] {
        CompileOptions options = kFast;
        options.packed_kernels = false;
        const bool is_fast = compile(dense_layers(), options).stats().is_fast;
        std::fprintf(stderr, "between\n");
        const bool is_still = compile(dense_layers(), options).stats().is_fast;
        std::fprintf(stderr, is_fast || is_still ? "fast\n" : "exact\n");
        std::exit(0);
    };
    EXPECT_EXIT(compile_twice(), ::testing::ExitedWithCode(0),
                "^[^ \n]+Z warn  precision fast changes nothing: [^\n]+\nbetween\nexact\n");
}

}  // namespace
}  // namespace headrace
