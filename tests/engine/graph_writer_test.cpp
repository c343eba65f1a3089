#include "headrace/graph_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "temporary_folder.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<float> kWeights = random_floats(4 * 3, 1);

std::span<const std::byte> weight_bytes() { return std::as_bytes(std::span(kWeights)); }

/// y = relu(x · w) with w outside, and a sum kept in a state.
std::vector<std::byte> written() {
    GraphWriter w;
    const auto x = w.input("in0", DType::f32, {Extent::symbol("n", 1, 16), 4});
    const auto matrix = w.constant(DType::f32, {4, 3}, weight_bytes(), nullptr, "layer.weight");
    const auto y = w.op("relu", {w.op("matmul", {x, matrix})[0]})[0];
    EXPECT_EQ(w.dtype(y), DType::f32);
    EXPECT_EQ(w.shape(y)[0].str(), "n");
    EXPECT_EQ(w.shape(y)[1].number(), 3);
    w.output("out0", y);
    const auto total = w.state("total", DType::f32, {3}, {}, nullptr);
    w.output("out1", w.op("assign",
                          {total, w.op("reduce_sum", {y}, {{"axes", std::vector<std::int64_t>{0}}})[0]})[0]);
    return graph_to_bytes(*w.finish());
}

NamedWeight find(const std::string& key) {
    if (key != "layer.weight") throw Exception(Code::io, "no weights named " + key);
    return {weight_bytes(), nullptr};
}

TEST(GraphWriter, NamesItsKeyedWeightsAndFindsThemAgainInPlace) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(written());
    const auto graph = graph_from_memory(*bytes, bytes, find);
    for (const Value& v : graph->values)
        if (v.kind == ValueKind::constant) {
            EXPECT_EQ(v.constant->bytes.data(), weight_bytes().data());
        }
    Session session(compile(*graph));
    const auto x = random_floats(2 * 4, 2);
    const auto y = run(session, {{2, 4}}, {x});
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j) {
            float sum = 0;
            for (int k = 0; k < 4; ++k) sum += x[i * 4 + k] * kWeights[k * 3 + j];
            EXPECT_NEAR(y[0][i * 3 + j], std::max(sum, 0.0f), 1e-6);
        }
}

TEST(GraphWriter, ReportsWeightsThatAreMissingOrOfAnotherSize) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(written());
    const auto message = [&](const FindNamedWeight& lookup, Code code) {
        return message_of([&] { graph_from_memory(*bytes, bytes, lookup); }, code);
    };
    EXPECT_NE(message({}, Code::invalid_argument).find("layer.weight"), std::string::npos);
    EXPECT_NE(message([](const std::string&) -> NamedWeight { throw Exception(Code::io, "gone"); }, Code::io)
                  .find("gone"),
              std::string::npos);
    EXPECT_NE(message(
                  [](const std::string&) {
                      return NamedWeight{weight_bytes().first(40), nullptr};
                  },
                  Code::invalid_argument)
                  .find("40 bytes, the graph expects 48"),
              std::string::npos);
}

TEST(GraphWriter, SavesKeyedWeightsLikeAnyOthersInAFile) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(written());
    const auto graph = graph_from_memory(*bytes, bytes, find);
    const TemporaryFolder folder;
    const std::string path = folder / "keyed.hrg";
    save_graph(*graph, path);
    EXPECT_EQ(print_graph(*load_graph(path)), print_graph(*graph));
}

TEST(GraphWriter, ChecksEveryCall) {
    GraphWriter w;
    EXPECT_THROW(w.op("no_such_op", {}), Exception);
    EXPECT_THROW(w.op("relu", {7}), Exception);
    EXPECT_THROW(w.constant(DType::f32, {5}, weight_bytes(), nullptr), Exception);
    EXPECT_THROW(w.finish(), Exception);
    EXPECT_THROW(w.output("y", -3), Exception);
}

TEST(GraphWriter, CastsElementsAsAGraphWould) {
    const std::array<float, 3> x{300, -1.5, 7};
    const auto bytes = std::as_bytes(std::span(x));
    EXPECT_THAT(cast_elements(DType::f32, bytes, 3, DType::u8),
                ElementsAre(std::byte{44}, std::byte{255}, std::byte{7}));
    EXPECT_THAT(cast_elements(DType::f32, bytes, 3, DType::i4), ElementsAre(std::byte{0xFC}, std::byte{7}));
    EXPECT_TRUE(cast_elements(DType::i64, {}, 0, DType::f32).empty());
    EXPECT_THAT([&] { (void)cast_elements(DType::f32, bytes, 4, DType::u8); },
                ThrowsMessage<Exception>(HasSubstr("12 bytes are not 4 elements of f32")));
}

TEST(GraphWriter, DamagedBytesAreErrors) {
    const std::vector<std::byte> bytes = written();
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        auto damaged = std::make_shared<std::vector<std::byte>>(bytes);
        (*damaged)[i] ^= std::byte{0x55};
        try {
            graph_from_memory(*damaged, damaged, find);
        } catch (const Exception&) {
        }
    }
    EXPECT_THROW(graph_from_memory(std::span(bytes).first(20), nullptr, find), Exception);
}

}  // namespace
}  // namespace headrace
