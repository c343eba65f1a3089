#include "doors/webnn/files/graph_files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

#include "doors/webnn/op_table.h"
#include "engine/sample_graph.h"
#include "headrace/graph_files.h"
#include "ir/graph_file.h"
#include "temporary_folder.h"

namespace headrace::webnn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace headrace::testing;

Graph load(const std::string& path, const WeightPaths& paths = {}) {
    return must(read_graph_file(path, paths));
}
void save(const Graph& graph, const std::string& path) { must(write_graph_file(graph, path)); }
std::string save_error(const Graph& graph, const std::string& path) {
    const Status status = write_graph_file(graph, path);
    return status.ok() ? "" : status.error().message;
}

using Bytes = std::vector<std::byte>;

/// The outputs of a run on the inputs that belong to the sample.
std::vector<Bytes> run(const Graph& graph, const std::vector<Bytes>& inputs) {
    Session session(compile(graph, {.threads = 1}));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const ValueId id : graph.inputs) shapes.push_back(graph.value(id).type.sizes());
    std::vector<InputView> in;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        in.push_back({graph.value(graph.inputs[i]).type.dtype, shapes[i], inputs[i].data()});
    std::vector<Bytes> results;
    for (const auto& [name, id] : graph.outputs) results.emplace_back(graph.value(id).type.bytes());
    std::vector<OutputView> out;
    for (Bytes& result : results) out.push_back({result.data(), result.size()});
    session.run(in, out);
    return results;
}

bool is_webnn(const TensorType& type) {
    for (const Dim& d : type.shape)
        if (d.is(0)) return false;
    return kWebnnTypes.has(type.dtype) &&
           (type.format == BlockFormat::plain || type.format == BlockFormat::q8_0);
}

/// Weights that files spell out as integers with their scales.
bool has_blocks(const Graph& graph) {
    return std::any_of(graph.values.begin(), graph.values.end(),
                       [](const Value& v) { return v.type.format != BlockFormat::plain; });
}

/// Whether the specification has the sample's operator and types.
bool is_expressible(const Graph& graph) {
    if (!graph.states.empty() || !find_row(*graph.nodes[0].op).op) return false;
    for (const AttrValue& value : graph.nodes[0].op->attr_values(graph.nodes[0].attrs.get()))
        if (const auto* type = std::get_if<DType>(&value); type && !kWebnnTypes.has(*type)) return false;
    return std::all_of(graph.values.begin(), graph.values.end(),
                       [](const Value& v) { return is_webnn(v.type); });
}

/// Which WebNN lacks and its forms say in several operators, or leave out.
bool is_spelled_out(const OpDef& op) {
    constexpr std::array<std::string_view, 5> kNames = {"silu", "gelu_tanh", "glu", "checked_indices",
                                                        "checked_numbers"};
    return std::find(kNames.begin(), kNames.end(), op.name) != kNames.end();
}

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, EverySampleOfEveryOperatorComputesTheSameBits) {
    const TemporaryFolder folder;
    const std::string path = folder / ("graph" + GetParam());
    std::set<const OpDef*> covered;
    int samples = 0;
    for (const Case& c : all_cases()) {
        SCOPED_TRACE(std::string(c.op->name) + " " + std::to_string(c.index));
        const Built built = build(c);
        if (is_spelled_out(*c.op)) continue;
        if (!is_expressible(built.graph)) {
            EXPECT_NE(save_error(built.graph, path), "");
            continue;
        }
        save(built.graph, path);
        const Graph loaded = load(path);
        EXPECT_EQ(run(loaded, built.inputs), run(built.graph, built.inputs));
        if (has_blocks(built.graph)) continue;
        ASSERT_EQ(loaded.nodes.size(), 1u);
        EXPECT_EQ(loaded.nodes[0].op, c.op);
        EXPECT_EQ(c.op->attr_values(loaded.nodes[0].attrs.get()),
                  c.op->attr_values(built.graph.nodes[0].attrs.get()));
        covered.insert(c.op);
        ++samples;
    }
    for (const OpRow& row : op_rows()) EXPECT_TRUE(covered.contains(find_row(row.name).op)) << row.name;
    EXPECT_GT(samples, 300);
}

TEST_P(RoundTrip, ActivationsThatWebnnLacksAreWrittenInItsOperators) {
    const TemporaryFolder folder;
    const std::string path = folder / ("graph" + GetParam());
    std::set<std::string_view> covered;
    for (const Case& c : all_cases()) {
        if (!is_spelled_out(*c.op) || c.sample.operands[0].type.dtype != DType::f32) continue;
        SCOPED_TRACE(std::string(c.op->name) + " " + std::to_string(c.index));
        const Built built = build(c);
        save(built.graph, path);
        const Graph loaded = load(path);
        for (const Node& node : loaded.nodes) EXPECT_FALSE(is_spelled_out(*node.op));
        const auto actual = run(loaded, built.inputs), expected = run(built.graph, built.inputs);
        ASSERT_EQ(actual[0].size(), expected[0].size());
        const auto* a = reinterpret_cast<const float*>(actual[0].data());
        const auto* b = reinterpret_cast<const float*>(expected[0].data());
        for (std::size_t i = 0; i < actual[0].size() / sizeof(float); ++i) ASSERT_NEAR(a[i], b[i], 1e-5);
        covered.insert(c.op->name);
    }
    EXPECT_EQ(covered, (std::set<std::string_view>{"silu", "gelu_tanh", "glu"}));
}

/// w [3] and b [] are constants, x has a dynamic extent; y = x * w + b, z = reshape(y, [n, 3, 1]).
Graph small_graph() {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n", 1, 8), 3});
    const auto values = random_floats(3, 1);
    const ValueId w = must(g.builder.constant({DType::f32, {3}}, std::as_bytes(std::span(values)), "w"));
    const ValueId b = g.constant<float>({}, {0.1f});
    const ValueId y = g.op("add", {g.op("mul", {x, w}), b});
    g.output("y", y);
    g.output("z", g.op("reshape", {y}, {{"new_shape", Shape{Dim::symbolic("n", 1, 8), 3, 1}}}));
    return g.finish();
}

TEST_P(RoundTrip, KeepsNamesSymbolsAndOrder) {
    const TemporaryFolder folder;
    save(small_graph(), folder / ("g" + GetParam()));
    const Graph loaded = load(folder / ("g" + GetParam()));
    ASSERT_EQ(loaded.inputs.size(), 1u);
    const Value& x = loaded.value(loaded.inputs[0]);
    EXPECT_EQ(x.name, "x");
    EXPECT_EQ(x.type.shape[0].max_size(), 8);
    ASSERT_EQ(loaded.outputs.size(), 2u);
    EXPECT_EQ(loaded.outputs[1].first, "z");
    EXPECT_EQ(loaded.value(loaded.outputs[1].second).type.str(), "f32[n, 3, 1]");
    Session session(compile(loaded));
    const auto results = testing::run(session, {{2, 3}}, {{1, 1, 1, 2, 2, 2}});
    const auto w = random_floats(3, 1);
    EXPECT_EQ(results[0][4], 2 * w[1] + 0.1f);
}

TEST_P(RoundTrip, MapsWeightsAndCanSaveOverTheFilesTheyAreMappedFrom) {
    const TemporaryFolder folder;
    const std::string path = folder / ("g" + GetParam());
    save(small_graph(), path);
    const Graph loaded = load(path);
    const Value* w = nullptr;
    for (const Value& v : loaded.values)
        if (v.name == "w") w = &v;
    ASSERT_NE(w, nullptr);
    EXPECT_TRUE(w->constant->mapped);
    save(loaded, path);
    const Bytes before(w->constant->bytes.begin(), w->constant->bytes.end());
    for (const Value& v : load(path).values) {
        if (v.name != "w") continue;
        EXPECT_EQ(Bytes(v.constant->bytes.begin(), v.constant->bytes.end()), before);
    }
}

TEST_P(RoundTrip, StoresSharedConstantsOnceAndSharesThemAgain) {
    TestGraph g;
    const auto values = random_floats(1000, 3);
    auto owner = std::make_shared<std::vector<float>>(values);
    const auto shared =
        std::make_shared<Constant>(Constant{.bytes = std::as_bytes(std::span(*owner)), .owner = owner});
    const ValueId a = must(g.builder.constant({DType::f32, {1000}}, shared, "a"));
    const ValueId b = must(g.builder.constant({DType::f32, {10, 100}}, shared, "b"));
    g.output("y", g.op("add", {g.input("x", {1000}), a}));
    g.output("z", g.op("neg", {b}));
    const TemporaryFolder folder;
    save(g.finish(), folder / ("g" + GetParam()));
    EXPECT_LT(folder.read("g.weights").size(), 4100u);
    const Graph loaded = load(folder / ("g" + GetParam()));
    std::set<const Constant*> constants;
    for (const Value& v : loaded.values)
        if (v.constant) constants.insert(v.constant.get());
    EXPECT_EQ(constants.size(), 1u);
}

TEST_P(RoundTrip, TakesSeveralOutputsOfOneValueAndOutputsThatAreInputs) {
    TestGraph g;
    const ValueId x = g.input("x", {2});
    const ValueId y = g.op("neg", {x});
    g.output("y", y);
    g.output("again", y);
    g.output("same", x);
    const TemporaryFolder folder;
    save(g.finish(), folder / ("g" + GetParam()));
    Session session(compile(load(folder / ("g" + GetParam()))));
    const auto results = testing::run(session, {{2}}, {{1, 2}});
    EXPECT_EQ(results, (std::vector<std::vector<float>>{{-1, -2}, {-1, -2}, {1, 2}}));
}

TEST_P(RoundTrip, ReadsAndWritesTwoHundredThousandNodesInLinearTime) {
    TestGraph g;
    ValueId value = g.input("x", {4});
    const ValueId one = g.constant<float>({4}, {1, 1, 1, 1});
    for (int i = 0; i < 200'000; ++i) value = g.op(i % 2 ? "add" : "sub", {value, one});
    g.output("y", value);
    const Graph graph = g.finish();
    const TemporaryFolder folder;
    const auto start = std::chrono::steady_clock::now();
    save(graph, folder / ("g" + GetParam()));
    const auto saved = std::chrono::steady_clock::now();
    EXPECT_EQ(load(folder / ("g" + GetParam())).nodes.size(), graph.nodes.size());
    const auto seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
    RecordProperty("save_seconds", std::to_string(seconds(saved - start)));
    RecordProperty("load_seconds", std::to_string(seconds(std::chrono::steady_clock::now() - saved)));
    EXPECT_LT(seconds(std::chrono::steady_clock::now() - start), 60);  // quadratic time would be minutes
}

INSTANTIATE_TEST_SUITE_P(Format, RoundTrip, ::testing::Values(".webnn", ".json"),
                         [](const auto& info) { return info.param.substr(1); });

TEST(GraphFiles, ScalarsNeedNoWeightsFile) {
    TestGraph g;
    const ValueId x = g.input("x", {2});
    const ValueId scaled = g.op("mul", {x, g.constant<float>({}, {0.1f})});
    g.output("y", g.op("add", {scaled, g.constant<float>({}, {-0.0f})}));
    const TemporaryFolder folder;
    save(g.finish(), folder / "g.webnn");
    EXPECT_THAT(folder.read("g.webnn"), HasSubstr("f32[] @scalar(0.1);"));
    EXPECT_FALSE(std::filesystem::exists(folder / "g.weights"));
    const Graph loaded = load(folder / "g.webnn");
    float zero = 1;
    for (const Value& v : loaded.values)
        if (v.constant) std::memcpy(&zero, v.constant->bytes.data(), 4);
    EXPECT_TRUE(zero == 0 && std::signbit(zero));
}

TEST(GraphFiles, ContentTellsWhatAnUnknownExtensionDoesNot) {
    const TemporaryFolder folder;
    save(small_graph(), folder / "g.webnn");
    save(small_graph(), folder / "g.json");
    save(small_graph(), folder / "own.json.hrg");
    folder.write("text.txt", "# a comment\n" + folder.read("g.webnn"));
    folder.write("json.txt", "\n" + folder.read("g.json"));
    folder.write("own.webnn", folder.read("own.json.hrg"));
    const WeightPaths paths{folder / "g.manifest.json", folder / "g.weights"};
    for (const char* name : {"text.txt", "json.txt", "own.webnn"})
        EXPECT_EQ(load(folder / name, paths).nodes.size(), 3u);
    folder.write("nothing.txt", "hello");
    EXPECT_THAT(read_graph_file(folder / "nothing.txt").error().message, HasSubstr("bytes are too few"));
}

TEST(GraphFiles, OurOwnFormIsReadFromMemoryWhichTheGraphKeeps) {
    const Built built = build(all_cases().front());
    auto bytes = std::make_shared<Bytes>(must(graph_bytes(built.graph)));
    const std::weak_ptr<Bytes> kept = bytes;
    auto graph = load_graph_bytes(*bytes, bytes);
    bytes.reset();
    EXPECT_EQ(print_graph(*graph), print_graph(built.graph));
    EXPECT_EQ(run(*graph, built.inputs), run(built.graph, built.inputs));
    graph.reset();
    EXPECT_TRUE(kept.expired());
}

TEST(GraphFiles, OtherFormsAreNotReadFromMemory) {
    for (const std::string_view text : {"", "webnn_graph \"x\" v1 {}", "{\"inputs\": {}}", "HDRGRAPH"}) {
        const auto bytes = std::as_bytes(std::span(text));
        try {
            load_graph_bytes(bytes, nullptr);
            ADD_FAILURE() << text;
        } catch (const Exception& error) {
            EXPECT_EQ(error.code(), Code::invalid_argument) << text;
        }
    }
}

TEST(GraphFiles, WeightsMayLieElsewhere) {
    const TemporaryFolder folder;
    save(small_graph(), folder / "g.webnn");
    std::filesystem::rename(folder / "g.weights", folder / "w.bin");
    EXPECT_THAT(read_graph_file(folder / "g.webnn").error().message,
                HasSubstr("g.weights': No such file or directory; pass another weights_path"));
    EXPECT_EQ(load(folder / "g.webnn", {.manifest = "", .weights = folder / "w.bin"}).nodes.size(), 3u);
}

TEST(GraphFiles, SavingNamesWhatTheFormatsDoNotHave) {
    const TemporaryFolder folder;
    const auto message = [&](TestGraph& g, const std::string& name) {
        return save_error(g.finish(), folder / name);
    };
    {
        TestGraph g;
        g.output("y", g.op("fused_matmul", {g.input("x", {2, 4}), g.input("w", {4, 3})}));
        EXPECT_THAT(message(g, "g.webnn"),
                    HasSubstr("'fused_matmul' is no WebNN operator; save the graph as .hrg"));
    }
    {
        TestGraph g;
        g.output("y", g.op("neg", {g.input("x", {2}, DType::f64)}));
        EXPECT_THAT(message(g, "g.json"), HasSubstr("input 'x' is f64[2], which WebNN does not have"));
    }
    {
        TestGraph g;
        g.state("cache", {2});
        g.output("y", g.op("neg", {g.input("x", {2})}));
        EXPECT_THAT(message(g, "g.json"), HasSubstr("state 'cache': these formats have no states"));
    }
    {
        TestGraph g;
        g.output("y", g.op("neg", {g.input("x:0", {2})}));
        const Graph graph = g.finish();
        EXPECT_THAT(save_error(graph, folder / "g.webnn"),
                    HasSubstr("input 'x:0': names in .webnn files are"));
        save(graph, folder / "g.json");
        EXPECT_EQ(load(folder / "g.json").value(0).name, "x:0");
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "g.webnn"));
}

TEST(GraphFiles, NamesAndLabelsNeedToBeUtf8) {
    TestGraph g;
    const ValueId x = g.input("x", {2});
    g.output("y", must(g.builder.op(*find_op("neg"), {x}, NamedAttrs{}, "\xFF"))[0]);
    const Graph graph = g.finish();
    const TemporaryFolder folder;
    EXPECT_THAT(save_error(graph, folder / "g.webnn"), HasSubstr("is not UTF-8"));
    EXPECT_THAT(save_error(graph, folder / "g.json"), HasSubstr("is not UTF-8"));
}

}  // namespace
}  // namespace headrace::webnn
