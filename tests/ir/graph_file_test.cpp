#include "ir/graph_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/mapped_file.h"
#include "ggml_ir_generated.h"
#include "ir/graph_file_tables.h"
#include "ir/print.h"
#include "ir/sample_ops.h"
#include "ir/verify.h"
#include "temporary_folder.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

void expect_equal(const Graph& a, const Graph& b) {
    EXPECT_EQ(print(a), print(b));
    ASSERT_EQ(a.values.size(), b.values.size());
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        EXPECT_EQ(a.values[i].type, b.values[i].type);
        EXPECT_EQ(a.values[i].name, b.values[i].name);
        ASSERT_EQ(a.values[i].constant == nullptr, b.values[i].constant == nullptr);
        if (!a.values[i].constant) continue;
        const auto x = a.values[i].constant->bytes, y = b.values[i].constant->bytes;
        EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << a.values[i].name;
    }
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
        EXPECT_EQ(a.nodes[i].op, b.nodes[i].op);
        EXPECT_EQ(a.nodes[i].label, b.nodes[i].label);
        EXPECT_EQ(a.nodes[i].op->attr_values(a.nodes[i].attrs.get()),
                  b.nodes[i].op->attr_values(b.nodes[i].attrs.get()));
    }
}

Result<Graph> from_bytes(std::vector<std::byte> bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    return graph_from_bytes(owner, *owner, find_sample_op);
}

TEST(GraphFile, KeepsEverythingOnARoundTripThroughMemory) {
    const Graph graph = rich_graph();
    const auto loaded = from_bytes(graph_bytes(graph).value());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    expect_equal(graph, loaded.value());
}

TEST(GraphFile, KeepsTheSignOfZeroAndTheRangesOfSymbols) {
    const auto loaded = from_bytes(graph_bytes(rich_graph()).value());
    ASSERT_TRUE(loaded.ok());
    const auto& nodes = loaded.value().nodes;
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.label == "attributes"; });
    ASSERT_NE(node, nodes.end());
    const auto* attrs = static_cast<const EverythingOp::Attrs*>(node->attrs.get());
    EXPECT_TRUE(std::signbit(attrs->scale));
    EXPECT_FALSE(attrs->limit.has_value());
    EXPECT_EQ(attrs->shape[2].min_size(), 0);
    EXPECT_EQ(attrs->shape[2].max_size(), 9);
    EXPECT_EQ(loaded.value().values[0].type.shape[1].max_size(), 512);
}

TEST(GraphFile, KeepsExpressionsWithTheRangesOfTheirSymbolsAndConditions) {
    GraphBuilder b;
    const Dim n = Dim::symbolic("n", 2, 9), m = Dim::symbolic("m", 1, 4);
    const Dim largest = Dim::of(Expression::largest({n.expression() - 1, m.expression()}));
    const ValueId x = b.input("x", {DType::f32, {n, largest}}).value();
    const ValueId y = b.input("y", {DType::f32, {m, largest}}).value();
    (void)b.mark_output("z", b.op(sample_op("sum"), {x, y}).value()[0]);
    const Graph graph = b.finish().value();
    ASSERT_EQ(graph.conditions.size(), 1U);
    const auto loaded = from_bytes(graph_bytes(graph).value());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded.value().conditions, graph.conditions);
    const Dim& extent = loaded.value().values[0].type.shape[1];
    EXPECT_EQ(extent, largest);
    EXPECT_EQ(extent.expression().symbols(), largest.expression().symbols());
}

TEST(GraphFile, KeepsNamesThatLookLikeExpressions) {
    for (const char* name : {"floor", "a*b", "2", "min(a,b)", "it's", "batch size", "(n+1)", "'n'"}) {
        GraphBuilder b;
        const Dim n = Dim::named(name, 2, 9);
        const ValueId x = b.input("x", {DType::f32, {n, Dim::of(n.expression() * 2)}}).value();
        (void)b.mark_output("z", b.op(sample_op("sum"), {x, x}).value()[0]);
        const Graph graph = b.finish().value();
        const auto loaded = from_bytes(graph_bytes(graph).value());
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        expect_equal(graph, loaded.value());
        EXPECT_EQ(loaded.value().values[0].type.shape[0].name(), name);
        const std::vector<std::vector<std::int64_t>> shapes{{3, 6}};
        EXPECT_EQ(bind_symbols(loaded.value(), shapes).value().at(n.text()), 3);
    }
}

TEST(GraphFile, StoresSharedConstantsOnceAndSharesThemAgain) {
    Graph graph = rich_graph();
    const std::size_t before = graph_bytes(graph).value().size();
    const auto loaded = from_bytes(graph_bytes(graph).value()).value();
    std::vector<const Constant*> shared;
    for (const Value& v : loaded.values)
        if (v.name == "shared" || v.name == "filled" || (v.kind == ValueKind::constant && v.name.empty()))
            shared.push_back(v.constant.get());
    ASSERT_EQ(shared.size(), 3U);
    EXPECT_EQ(shared[0], shared[1]);
    EXPECT_EQ(shared[0], shared[2]);

    Value& filled = graph.value(graph.states[1]);
    filled.constant = std::make_shared<Constant>(*filled.constant);
    EXPECT_GT(graph_bytes(graph).value().size(), before);
}

TEST(GraphFile, HasElementsTimesTheirFactors) {
    const std::vector<float> elements{1, 2, 3, 4};
    const Constant multiplied{.bytes = std::as_bytes(std::span(elements)),
                              .owner = nullptr,
                              .key = "",
                              .factors = std::make_shared<const ElementFactors>(ElementFactors{{2, -1}, 2})};
    GraphBuilder b;
    const ValueId w = b.constant({DType::f32, {4}}, std::make_shared<const Constant>(multiplied)).value();
    EXPECT_TRUE(b.mark_output("y", b.op(*find_sample_op("sum"), {w, w}).value()[0]).ok());
    const auto loaded = from_bytes(graph_bytes(b.finish().value()).value());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto read = std::ranges::find(loaded.value().values, ValueKind::constant, &Value::kind)->constant;
    EXPECT_EQ(read->factors, nullptr);
    const auto* written = reinterpret_cast<const float*>(read->bytes.data());
    EXPECT_EQ(std::vector(written, written + 4), (std::vector<float>{2, 4, -3, -4}));
}

TEST(GraphFile, IsMappedNotCopied) {
    const TemporaryFolder folder;
    const std::string path = folder / "graph.hdr";
    ASSERT_TRUE(write_graph(rich_graph(), path).ok());
    const auto loaded = read_graph(path, find_sample_op);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    expect_equal(rich_graph(), loaded.value());
    for (const Value& v : loaded.value().values) {
        if (!v.constant) continue;
        EXPECT_TRUE(v.constant->mapped);
        const auto* mapping = static_cast<const MappedFile*>(v.constant->owner.get());
        const std::byte* start = mapping->bytes().data();
        EXPECT_GE(v.constant->bytes.data(), start);
        EXPECT_LE(v.constant->bytes.data() + v.constant->bytes.size(), start + mapping->bytes().size());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(v.constant->bytes.data()) % 64, 0U);
    }
}

TEST(GraphFile, OutlivesTheFilesName) {
    Graph loaded;
    {
        const TemporaryFolder folder;
        const std::string path = folder / "graph.hdr";
        ASSERT_TRUE(write_graph(rich_graph(), path).ok());
        loaded = read_graph(path, find_sample_op).value();
    }
    expect_equal(rich_graph(), loaded);
}

TEST(GraphFile, CanBeSavedOverTheFileItIsMappedFrom) {
    const TemporaryFolder folder;
    const std::string path = folder / "graph.hdr";
    ASSERT_TRUE(write_graph(rich_graph(), path).ok());
    const Graph loaded = read_graph(path, find_sample_op).value();
    ASSERT_TRUE(write_graph(loaded, path).ok());
    expect_equal(rich_graph(), read_graph(path, find_sample_op).value());
}

TEST(GraphFile, PointsIntoAlignedMemoryAndCopiesOther) {
    const auto bytes = graph_bytes(small_graph()).value();
    std::vector<std::byte> room(bytes.size() + 128);
    std::byte* aligned = room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64;
    for (const int shift : {0, 16, 1, 8}) {
        std::byte* at = aligned + shift;
        std::memcpy(at, bytes.data(), bytes.size());
        const auto loaded = graph_from_bytes(nullptr, {at, bytes.size()}, find_sample_op);
        ASSERT_TRUE(loaded.ok());
        const std::byte* constant = loaded.value().values[2].constant->bytes.data();
        EXPECT_EQ(constant >= at && constant < at + bytes.size(), shift % 16 == 0) << shift;
        EXPECT_EQ(std::memcmp(constant, counting_bytes(24).data(), 24), 0);
    }
}

TEST(GraphFile, RefusesToSaveABrokenGraph) {
    Graph graph = small_graph();
    graph.nodes[0].inputs[0] = 50;
    const TemporaryFolder folder;
    const std::string path = folder / "graph.hdr";
    EXPECT_THAT(write_graph(graph, path).error().message, HasSubstr("operand 0 is 50"));
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(GraphFile, DoesNotTakeTheNameOfAnOnnxModel) {
    const TemporaryFolder folder;
    for (const char* name : {"model.onnx", "MODEL.ONNX"}) {
        const Status refused = write_graph(small_graph(), folder / name);
        EXPECT_EQ(refused.error().code, Code::invalid_argument);
        EXPECT_THAT(refused.error().message, HasSubstr("give it a name that ends in .hrg"));
        EXPECT_FALSE(std::filesystem::exists(folder / name));
    }
}

TEST(GraphFile, ReportsFilesThatCannotBeReadOrWritten) {
    const auto absent = read_graph("/no/such/file.hdr", find_sample_op);
    EXPECT_EQ(absent.error().code, Code::io);
    EXPECT_THAT(absent.error().message, HasSubstr("/no/such/file.hdr"));
    EXPECT_EQ(write_graph(small_graph(), "/no/such/file.hdr").error().code, Code::io);
    EXPECT_EQ(read_graph(::testing::TempDir(), find_sample_op).error().code, Code::io);
}

TEST(GraphFile, NamesOpsAndVersionsThatThisBuildDoesNotKnow) {
    const auto bytes = graph_bytes(small_graph()).value();
    const auto load = [&](OpLookup lookup) {
        auto owner = std::make_shared<std::vector<std::byte>>(bytes);
        return graph_from_bytes(owner, *owner, lookup).error().message;
    };
    EXPECT_EQ(load([](std::string_view name) { return name == "store" ? nullptr : find_sample_op(name); }),
              "unknown op 'store' version 2; this build knows no op of that name");
    OpDef older = sample_op("store");
    older.version = 1;
    EXPECT_EQ(load([&](std::string_view name) { return name == "store" ? &older : find_sample_op(name); }),
              "unknown op 'store' version 2; this build knows versions 1 to 1");
}

TEST(GraphFile, ReadsOlderVersionsOfAnOp) {
    auto owner = std::make_shared<std::vector<std::byte>>(graph_bytes(small_graph()).value());
    OpDef newer = sample_op("store");
    newer.version = 3;
    EXPECT_TRUE(graph_from_bytes(owner, *owner, [&](std::string_view name) {
                    return name == "store" ? &newer : find_sample_op(name);
                }).ok());
}

TEST(GraphFile, RefusesWrongHeaders) {
    const auto bytes = graph_bytes(small_graph()).value();
    const auto refusal = [&](std::size_t offset, std::uint64_t value, std::size_t size) {
        auto changed = bytes;
        std::memcpy(changed.data() + offset, &value, size);
        const auto loaded = from_bytes(changed);
        return loaded.ok() ? "accepted" : loaded.error().message;
    };
    EXPECT_THAT(refusal(0, 'X', 1), HasSubstr("does not start with HDRGRAPH"));
    EXPECT_THAT(refusal(8, 2, 4), HasSubstr("graph file version 2.0; this build reads version 1.0"));
    EXPECT_THAT(refusal(16, UINT64_MAX, 8), HasSubstr("within its 18446744073709551615 bytes of tables"));
    EXPECT_THAT(refusal(16, 0, 8), HasSubstr("tables are damaged"));
    EXPECT_THAT(refusal(24, UINT64_MAX - 63, 8), HasSubstr("weights cannot start"));
    EXPECT_THAT(refusal(24, 33, 8), HasSubstr("weights cannot start"));
    EXPECT_THAT(from_bytes({}).error().message, HasSubstr("too few"));
}

/// Every prefix of a file is refused: each part's end is known from what is before it.
TEST(GraphFile, RefusesEveryTruncation) {
    const auto bytes = graph_bytes(small_graph()).value();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        // A vector of exactly this size lets the sanitizer see each read past the end.
        const auto loaded = from_bytes({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
        ASSERT_FALSE(loaded.ok()) << size;
    }
}

/// Whatever random damage does to a file: an error, or a graph that passes verify.
TEST(GraphFile, SurvivesRandomDamage) {
    const auto original = graph_bytes(rich_graph()).value();
    std::mt19937 random(20240607);
    const auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    int accepted = 0;
    for (int round = 0; round < 20'000; ++round) {
        auto bytes = original;
        const std::size_t changes = 1 + below(4);
        for (std::size_t i = 0; i < changes; ++i) {
            std::byte& target = bytes[below(bytes.size())];
            switch (below(4)) {
                case 0: target ^= static_cast<std::byte>(1 << below(8)); break;
                case 1: target = static_cast<std::byte>(below(256)); break;
                case 2: target = std::byte{0xFF}; break;
                default: target = std::byte{0}; break;
            }
        }
        if (below(10) == 0) bytes.resize(below(bytes.size()));
        const auto loaded = from_bytes(std::move(bytes));
        if (!loaded.ok()) {
            ASSERT_FALSE(loaded.error().message.empty());
            continue;
        }
        ++accepted;
        const Status status = verify(loaded.value());
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_FALSE(print(loaded.value()).empty());
    }
    // Damage to weights and unused bytes is not noticed; damage to tables mostly is.
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 15'000);
}

/// Whole words of the tables replaced: offsets, lengths and ids that are far off, negative or overlapping.
TEST(GraphFile, SurvivesHostileOffsets) {
    const auto original = graph_bytes(rich_graph()).value();
    std::uint64_t table_bytes = 0;
    std::memcpy(&table_bytes, original.data() + 16, 8);
    for (std::size_t at = 32; at + 4 <= 32 + table_bytes; at += 4) {
        for (const std::uint32_t word : {0U, 1U, 4U, 64U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU, 0xFFFFFFF0U,
                                         static_cast<std::uint32_t>(table_bytes)}) {
            auto bytes = original;
            std::memcpy(bytes.data() + at, &word, 4);
            const auto loaded = from_bytes(std::move(bytes));
            ASSERT_TRUE(!loaded.ok() || verify(loaded.value()).ok()) << at << ": " << word;
        }
    }
}

/// The tables of a graph whose `count` nodes all have `inputs` as their list of inputs, stored once.
flatbuffers::DetachedBuffer overlapping_tables(std::size_t count, const std::vector<std::int32_t>& inputs) {
    flatbuffers::FlatBufferBuilder b;
    const auto list = b.CreateVector(inputs);
    const auto ops = b.CreateVector(std::vector{schema::CreateOp(b, b.CreateString("everything"), 1)});
    std::vector<flatbuffers::Offset<schema::Node>> nodes;
    for (std::size_t i = 0; i < count; ++i) nodes.push_back(schema::CreateNode(b, 0, list));
    const auto nodes_at = b.CreateVector(nodes);
    b.Finish(schema::CreateGraph(b, 0, ops, 0, 0, nodes_at), schema::GraphIdentifier());
    return b.Release();
}

TEST(GraphFile, RefusesListsThatOverlapAndWouldUnfoldToABillionNumbers) {
    const auto tables = overlapping_tables(30'000, std::vector<std::int32_t>(30'000, 0));
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(tables.data()), tables.size());
    const auto loaded = detail::decode_graph(bytes, {}, find_sample_op);
    EXPECT_THAT(loaded.error().message, HasSubstr("lists overlap"));
}

TEST(GraphFile, RefusesTablesThatAreVisitedMoreOftenThanOffsetsFit) {
    flatbuffers::FlatBufferBuilder b;
    const auto attr = schema::CreateAttr(b, b.CreateString("a"));
    const auto attrs = b.CreateVector(std::vector(2'000, attr));
    const auto node = schema::CreateNode(b, 0, 0, 0, attrs);
    const auto nodes = b.CreateVector(std::vector(2'000, node));
    b.Finish(schema::CreateGraph(b, 0, 0, 0, 0, nodes), schema::GraphIdentifier());
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(b.GetBufferPointer()),
                                           b.GetSize());
    EXPECT_EQ(detail::decode_graph(bytes, {}, find_sample_op).error().message,
              "the graph's tables are damaged");
}

}  // namespace
}  // namespace headrace::testing
