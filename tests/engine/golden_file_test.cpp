/// Graph files of every released version must load for ever: tests/engine/golden/<version>.hrg.
#include <cstdlib>
#include <filesystem>

#include "checkout.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// One of everything that the format knows: symbols, a state with an initial value, packed 4-bit and block
/// constants, attributes of every kind, an absent operand, several outputs, labels.
Graph everything() {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("rows", 1, 64), 32});
    static const std::vector<float> start{1, 2, 3, 4};
    const auto initial =
        std::make_shared<Constant>(Constant{.bytes = {reinterpret_cast<const std::byte*>(start.data()), 16}});
    const ValueId total = must(g.builder.state("total", {DType::f32, {4}}, initial));
    std::vector<float> w(16 * 32);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 17) - 8;
    const TensorType blocks{DType::f32, {16, 32}, BlockFormat::q8_0};
    std::vector<std::byte> packed(blocks.bytes());
    quantize(BlockFormat::q8_0, w.data(), 16 * 32, packed.data());
    const ValueId matrix = must(g.builder.constant(blocks, packed, "matrix"));
    const ValueId nibbles =
        must(g.builder.constant({DType::i4, {16}}, std::vector<std::byte>(8, std::byte{0x2F}), "nibbles"));
    const ValueId scale = g.constant<float>({1}, {0.5f});
    const ValueId bias = g.op("dequantize_linear", {nibbles, scale});
    const ValueId y =
        g.op("fused_matmul", {x, matrix, bias}, {{"transpose_b", true}, {"activation", std::string("relu")}});
    const ValueId clamped = g.op("clamp", {y}, {{"min_value", 0.25}, {"max_value", std::int64_t{100}}});
    const auto parts = must(
        g.builder.op(*find_op("split"), {clamped},
                     {{"splits", std::vector<std::int64_t>{4, 12}}, {"axis", std::int64_t{1}}}, "halves"));
    const ValueId first = g.op("cast", {parts[0]}, {{"data_type", DType::f16}});
    g.output("first", first);
    g.output("mean", g.op("reduce_mean", {parts[1]}, {{"axes", std::vector<std::int64_t>{1}}}));
    const ValueId step =
        g.op("reshape", {g.constant<float>({2, 2}, {1, 1, 1, 1})}, {{"new_shape", Shape{4}}});
    g.output("total", g.op("accumulate", {total, step}, {{"offset", std::int64_t{0}}}));
    return g.finish();
}

std::vector<std::vector<std::byte>> results(const Graph& graph) {
    Session session(compile(graph));
    const auto x = random_floats(3 * 32, 5);
    const std::vector<std::int64_t> shape{3, 32};
    std::vector<std::vector<std::byte>> outputs{std::vector<std::byte>(3 * 4 * 2),
                                                std::vector<std::byte>(3 * 4), std::vector<std::byte>(4 * 4)};
    std::vector<OutputView> out;
    for (auto& o : outputs) out.push_back({o.data(), o.size()});
    const InputView in{DType::f32, shape, x.data()};
    for (int run = 0; run < 2; ++run) session.run({&in, 1}, out);
    return outputs;
}

TEST(GoldenFile, AFileOfVersion1LoadsAndRunsAsItDid) {
    const auto path = std::filesystem::path(checkout_path("tests/engine/golden/v1.hrg"));
    const Graph graph = everything();
    if (std::getenv("HEADRACE_WRITE_GOLDEN")) save_graph(graph, path);  // when a version is released
    const auto loaded = load_graph(path);
    EXPECT_EQ(print_graph(*loaded), print_graph(graph));
    EXPECT_EQ(results(*loaded), results(graph));
}

}  // namespace
}  // namespace headrace
