#include "doors/webnn/files/json_reader.h"

#include <gmock/gmock.h>

#include "doors/webnn/files/weights_file.h"
#include "engine/test_graph.h"

namespace headrace::webnn {
namespace {

using ::testing::HasSubstr;
using namespace headrace::testing;

Result<Graph> graph_of_json(std::string_view text) {
    HR_ASSIGN(const GraphSource source, parse_json(text));
    return build_graph(source, []() -> Result<std::unique_ptr<WeightsFile>> {
        return failure(Code::io, "there are no weights");
    });
}
std::string json_error(const std::string& text) {
    const auto graph = graph_of_json(text);
    return graph.ok() ? "" : graph.error().message;
}

constexpr std::string_view kGraph = R"({
  "format": "webnn-graph-json", "version": 2, "name": "g", "quantized": false, "unknown": [1],
  "inputs": {"x": {"dataType": "float32", "shape": [{"name": "n", "maxSize": 4}, 3]}},
  "consts": {"c": {"dataType": "float32", "shape": [3], "init": {"kind": "inlineBytes", "bytes":
                   [0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64]}},
             "s": {"dataType": "float32", "shape": [], "init": {"kind": "scalar", "value": 2}}},
  "nodes": [{"id": "m", "op": "mul", "inputs": ["x", "c"], "options": {"label": "first"}},
            {"id": "n1", "op": "add", "inputs": ["m", "s"]},
            {"id": "n2", "op": "split", "inputs": ["n1"], "outputs": ["a", "b"],
             "options": {"splits": [1, 2], "axis": 1}}],
  "outputs": {"left": "a", "b": "b"}
})";

/// The graph above with one piece replaced.
std::string json_with(std::string_view piece, std::string_view other) {
    std::string text(kGraph);
    text.replace(text.find(piece), piece.size(), other);
    return text;
}

TEST(JsonReader, ReadsEveryPartOfTheFormat) {
    const Graph graph = must(graph_of_json(kGraph));
    EXPECT_EQ(graph.nodes[0].label, "first");
    ASSERT_EQ(graph.outputs.size(), 2u);
    EXPECT_EQ(graph.outputs[0].first, "left");
    Session session(compile(graph));
    const auto results = testing::run(session, {{1, 3}}, {{1, 1, 1}});
    EXPECT_EQ(results, (std::vector<std::vector<float>>{{3}, {4, 5}}));
}

TEST(JsonReader, ErrorsSayWhereAndWhatWouldBeRight) {
    EXPECT_THAT(json_error("{\n  \"format\": }"), HasSubstr("2:13: this is not JSON"));
    EXPECT_EQ(json_error("[]"), "expected an object, found []");
    EXPECT_EQ(json_error("{}"), "the key 'format' is missing");
    EXPECT_EQ(json_error(json_with("webnn-graph-json", "onnx")), "format: 'onnx' is not 'webnn-graph-json'");
    EXPECT_EQ(json_error(json_with("\"version\": 2", "\"version\": 3")),
              "version: version 3; this build reads 1 to 2");
    EXPECT_EQ(json_error(json_with("\"version\": 2", "\"version\": \"2\"")),
              "version: expected an integer from 0, found \"2\"");
    EXPECT_EQ(json_error(json_with("\"dataType\": \"float32\", \"shape\": [{", "\"shape\": [{")),
              "inputs.x: the key 'dataType' is missing");
    EXPECT_THAT(json_error(json_with("\"float32\", \"shape\": [{", "\"float\", \"shape\": [{")),
                HasSubstr("inputs.x.dataType: unknown data type 'float'; known: float32"));
    EXPECT_EQ(json_error(json_with("\"maxSize\": 4", "\"maxSize\": 0")),
              "inputs.x.shape[0]: the largest extent 0 of 'n' is outside 1 to 4294967295");
    EXPECT_EQ(json_error(json_with("[3]", "[3.5]")),
              "consts.c.shape[0]: 3.5 is not an extent: an integer, or an object of name and maxSize");
    EXPECT_EQ(json_error(json_with("[3]", "3")), "consts.c.shape: expected a list, found 3");
    EXPECT_EQ(json_error(json_with("[3]", "[0]")), "consts.c: constant 'c': the extent 0 is not positive");
    EXPECT_EQ(json_error(json_with("[3]", "[2]")), "consts.c: constant 'c': 12 bytes given, f32[2] needs 8");
    EXPECT_EQ(json_error(json_with("[0, 0,", "[0, 256,")),
              "consts.c.init.bytes: element 1 is 256; bytes are 0 to 255");
    EXPECT_EQ(json_error(json_with("[0, 0,", "[0, \"0\",")).substr(0, 43),
              "consts.c.init.bytes: expected a list of byt");
    EXPECT_EQ(json_error(json_with("\"scalar\"", "\"vector\"")),
              "consts.s.init.kind: unknown kind 'vector'; known: weights, scalar, inlineBytes");
    EXPECT_EQ(json_error(json_with("\"value\": 2", "\"value\": \"two\"")),
              "consts.s: constant 's': \"two\" is not a number");
    EXPECT_EQ(json_error(json_with("\"add\"", "\"plus\"")), "nodes[1]: there is no WebNN operator 'plus'");
    EXPECT_EQ(json_error(json_with("[\"m\", \"s\"]", "[\"m\", \"q\"]")),
              "nodes[1].inputs[1]: 'q' is not defined before this use");
    EXPECT_EQ(json_error(json_with("[\"m\", \"s\"]", "[\"m\", 3]")),
              "nodes[1].inputs[1]: expected a string, found 3");
    EXPECT_EQ(json_error(json_with("\"axis\": 1", "\"axes\": 1")),
              "nodes[2].options.axes: split has no option 'axes'; it takes: input, splits, axis");
    EXPECT_EQ(json_error(json_with("\"axis\": 1", "\"axis\": true")),
              "nodes[2]: split: attribute axis: true is not an integer");
    EXPECT_EQ(json_error(json_with("\"id\": \"n1\"", "\"id\": \"m\"")),
              "nodes[1]: 'm' is already defined; every name stands for one value");
    EXPECT_EQ(json_error(json_with("\"left\": \"a\"", "\"left\": \"zz\"")),
              "outputs.left: 'zz' is not defined before this use");
    EXPECT_EQ(json_error(json_with("\"left\"", "\"b\"")), "outputs.b: output: the name 'b' is already taken");
    EXPECT_EQ(json_error(json_with("\"format\":", "\"version\": 2, \"format\":")),
              "the key 'version' is there twice");
}

TEST(JsonReader, RefusesWhatWouldTakeTooMuch) {
    EXPECT_EQ(json_error(std::string(1'000'000, '[')), "values are nested more than 64 deep");
    EXPECT_THAT(json_error(json_with("\"value\": 2", "\"value\": 99999999999999999999")),
                HasSubstr("more than 64 bits"));
    EXPECT_THAT(json_error(json_with("\"value\": 2", "\"value\": 1e999")),
                HasSubstr("6:96: this is not JSON: number overflow parsing '1e999'"));
    EXPECT_THAT(json_error(json_with("\"first\"", "\"\xFF\"")),
                HasSubstr("7:82: this is not JSON: ill-formed UTF-8"));
    EXPECT_THAT(json_error(json_with("[], \"init\"", "[4294967295, 100], \"init\"")),
                HasSubstr("more than 64 MiB together"));
}

}  // namespace
}  // namespace headrace::webnn
