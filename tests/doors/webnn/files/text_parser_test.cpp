#include "doors/webnn/files/text_parser.h"

#include <gmock/gmock.h>

#include "doors/webnn/files/graph_files.h"
#include "doors/webnn/files/weights_file.h"
#include "engine/test_graph.h"
#include "temporary_folder.h"

namespace headrace::webnn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace headrace::testing;

Result<Graph> build(std::string_view text) {
    HR_ASSIGN(const GraphSource source, parse_text(text));
    return build_graph(source, []() -> Result<std::unique_ptr<WeightsFile>> {
        return failure(Code::io, "there are no weights");
    });
}

/// A graph whose nodes block is `nodes`; x is f32[2, 3], output y.
std::string with_nodes(const std::string& nodes) {
    return "webnn_graph \"t\" v1 {\ninputs { x: f32[2, 3]; }\nnodes {\n" + nodes + "\n}\noutputs { y; }\n}";
}
std::string error_of(const std::string& text) {
    const auto graph = build(text);
    return graph.ok() ? "" : graph.error().message;
}
std::string node_error(const std::string& nodes) { return error_of(with_nodes(nodes)); }

std::vector<float> result_of(const std::string& text, const std::vector<float>& x = {1, 2, 3, 4, 5, 6}) {
    Session session(compile(must(build(text))));
    return testing::run(session, {{2, 3}}, {x})[0];
}

TEST(TextParser, ReadsEveryBlockOfTheFormat) {
    const auto source = must(parse_text(R"(
# Comments stand anywhere.
webnn_graph "a \"name\"" v 2 @quantized {
  inputs { x: f32[dyn("batch", 8), 4]; y/0.a: u8[]; $z: i4[3]; }
  consts {
    w: f32[4, 2] @weights("encoder.w");
    own_key: f16[1];
    half: f32[] @scalar(-0.5e0);
    mask: u8[4] @bytes([0, 1, 2, 255]);
  }
  nodes {
    a = matmul(x, w, metadata={kind: "note", "deep": [1, [2.5, null]], flag: true});
    [b, c] = split(a, splits=[1, 1], axis=-1);
    d = b;
  }
  inputs { late: i64[1]; }
  outputs { a, b c; d }
}
)"));
    EXPECT_EQ(source.name, "a \"name\"");
    ASSERT_EQ(source.inputs.size(), 4u);
    EXPECT_EQ(source.inputs[0].type.shape[0].str(), "batch");
    EXPECT_EQ(source.inputs[0].type.shape[0].most(), 8);
    EXPECT_EQ(source.inputs[1].name, "y/0.a");
    EXPECT_TRUE(source.inputs[1].type.shape.empty());
    EXPECT_EQ(source.inputs[3].name, "late");
    ASSERT_EQ(source.constants.size(), 4u);
    EXPECT_EQ(source.constants[0].key, "encoder.w");
    EXPECT_EQ(source.constants[1].key, "own_key");
    EXPECT_EQ(*source.constants[2].value.get<double>(), -0.5);
    EXPECT_EQ(source.constants[3].bytes->bytes[3], std::byte{255});
    ASSERT_EQ(source.nodes.size(), 3u);
    EXPECT_EQ(source.nodes[1].results, (std::vector<std::string>{"b", "c"}));
    EXPECT_EQ(*source.nodes[1].options[1].value.get<std::int64_t>(), -1);
    EXPECT_EQ(source.nodes[2].op, "");
    EXPECT_EQ(source.outputs.size(), 4u);
}

TEST(TextParser, TakesOperatorsAndOptionsInBothSpellings) {
    const std::vector<float> sums{6, 15};
    EXPECT_EQ(result_of(with_nodes("y = reduceSum(x, axes=[1], keepDimensions=true);")), sums);
    EXPECT_EQ(result_of(with_nodes("y = reduce_sum(x, axes=[1], keep_dimensions=true);")), sums);
    EXPECT_EQ(result_of(with_nodes("a = isNaN(x); y = cast(a, to=\"Float32\");")), std::vector<float>(6, 0));
    EXPECT_EQ(result_of(with_nodes("a = is_nan(x); y = cast(a, type=f32);")), std::vector<float>(6, 0));
}

TEST(TextParser, PositionalLiteralsAreTheParametersThatAreNoOperands) {
    EXPECT_EQ(result_of(with_nodes("y = reshape(x, [3, 2]);")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(result_of(with_nodes("y = clamp(x, 2, 4.5);")), (std::vector<float>{2, 2, 3, 4, 4.5, 4.5}));
    EXPECT_EQ(result_of(with_nodes("a = cast(x, int32); y = cast(a, float32);")),
              (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(result_of(with_nodes("y = concat([x, x], 1);")).size(), 12u);
    EXPECT_THAT(node_error("y = neg(x, 3);"), StartsWith("4:1: neg: 3 is one argument too many"));
}

TEST(TextParser, OptionalOperandsComeByPositionByNameOrAsNull) {
    for (const char* call : {"gemm(x, t, x2)", "gemm(x, t, c=x2)", "gemm(a=x, b=t, c=x2)"})
        EXPECT_EQ(
            result_of(with_nodes(std::string("t = transpose(x); x2 = matmul(x, t); y = ") + call + ";"))[0],
            28)
            << call;
    EXPECT_EQ(result_of(with_nodes("t = transpose(x); y = gemm(x, t, null, alpha=2.0);"))[0], 28);
    EXPECT_THAT(node_error("y = gemm(x, x, x, c=x);"), StartsWith("4:19: the operand c is given twice"));
    EXPECT_THAT(node_error("y = gemm(x, x, c=1);"), StartsWith("4:16: c takes the name of a value, not 1"));
}

TEST(TextParser, ScalarsFillTheirTensorInItsType) {
    const auto filled = [](const std::string& constant) {
        return error_of("webnn_graph \"t\" v1 { inputs { x: f32[2]; } consts { c: " + constant +
                        "; } nodes { y = neg(x); } outputs { y; } }");
    };
    EXPECT_EQ(filled("f16[2, 3] @scalar(0.1)"), "");
    EXPECT_EQ(filled("i64[] @scalar(-9223372036854775808)"), "");
    EXPECT_EQ(filled("u64[] @scalar(18446744073709551615)"), "");
    EXPECT_EQ(filled("i4[3] @scalar(-8)"), "");
    EXPECT_EQ(filled("i32[1] @scalar(2.0)"), "");
    EXPECT_THAT(filled("i32[1] @scalar(2.5)"), HasSubstr("constant 'c': 2.5 is no int32"));
    EXPECT_THAT(filled("u8[1] @scalar(-1)"), HasSubstr("-1 is no uint8"));
    EXPECT_THAT(filled("i4[3] @scalar(8)"), HasSubstr("8 is no int4"));
    EXPECT_THAT(filled("u64[] @scalar(18446744073709551616)"), HasSubstr("needs more than 64 bits"));
    EXPECT_THAT(filled("i32[] @scalar(1e19)"), HasSubstr("1e+19 is no int32"));
    EXPECT_THAT(filled("f32[100000, 1000] @scalar(1)"), HasSubstr("more than 64 MiB together"));
    EXPECT_THAT(filled("u8[2] @bytes([1, 2, 3])"), HasSubstr("3 bytes given, u8[2] needs 2"));
    EXPECT_THAT(filled("u8[2] @bytes([1, 256])"), HasSubstr("element 1 is 256; bytes are 0 to 255"));
    EXPECT_THAT(filled("i4[3] @bytes([1, 2])"), "");
    EXPECT_THAT(filled("i4[3] @bytes([1, 2, 15])"), "");
    EXPECT_THAT(filled("f32[dyn(\"n\", 3)] @scalar(1)"), HasSubstr("the shape [n] must be fixed"));
}

TEST(TextParser, ErrorsSayWhereAndWhatWouldBeRight) {
    const auto header = [](const std::string& text) { return error_of(text); };
    EXPECT_EQ(header(""),
              "1:1: expected 'webnn_graph', with which a .webnn file starts, found the end of the file");
    EXPECT_EQ(header("webnn_graph x"), "1:13: expected the graph's name in quotes, found 'x'");
    EXPECT_EQ(header("webnn_graph \"x"), "1:13: the string has no closing quote");
    EXPECT_EQ(header("webnn_graph \"x\" v3 {"), "1:17: version 3 of the format; this build reads v1 and v2");
    EXPECT_EQ(header("webnn_graph \"x\" v1 @fast {"), "1:21: expected 'quantized', found 'fast'");
    EXPECT_EQ(header("webnn_graph \"x\" v1 {\n  input { }"),
              "2:3: expected inputs, consts, nodes, outputs or '}', found 'input'");
    EXPECT_EQ(header("webnn_graph \"\xC3\xA4\" v1 { % }"),
              "1:22: the character '%' has no meaning here; only strings and comments may have it");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { inputs { x: float[2]; } }"),
              "1:34: unknown data type 'float'; known: float32, float16, int32, uint32, int64, uint64, int8, "
              "uint8, "
              "int4, uint4");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { inputs { x: f32[-1]; } }"),
              "1:38: the extent -1 is outside 0 to 4294967295");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { inputs { x: f32[dyn(\"n\", 0)]; } }"),
              "1:38: the largest extent 0 of 'n' is outside 1 to 4294967295");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { inputs { x: f32[1 2]; } }"),
              "1:40: expected ',' or ']', found '2'");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { inputs { x: f32[12a]; } }"),
              "1:38: '12a' is not a number; numbers look like -1, 2.5 or 1e-5");
    EXPECT_EQ(header("webnn_graph \"a\" v1 { } x"),
              "1:24: expected nothing after the graph's closing '}', found 'x'");
    EXPECT_THAT(header("webnn_graph \"a\" v1 { }"), HasSubstr("the graph has no output"));
    EXPECT_EQ(header("webnn_graph \"\xFF\" v1 { }"), "1:14: the byte 0xff is not UTF-8");
    EXPECT_THAT(header("webnn_graph \"a\" v1 { inputs { x: f32[4294967295, 4294967295, 4294967295]; } }"),
                HasSubstr("larger than the address space"));
    EXPECT_THAT(header("webnn_graph \"a\" v1 { inputs { x: f32[1,1,1,1,1,1,1,1,1]; } }"),
                HasSubstr("rank 9"));
}

TEST(TextParser, ErrorsOfNodesSayWhereAndWhatWouldBeRight) {
    EXPECT_EQ(node_error("y = frobnicate(x);"), "4:1: there is no WebNN operator 'frobnicate'");
    EXPECT_EQ(node_error("y = neg(z);"), "4:1: 'z' is not defined before this use");
    EXPECT_EQ(node_error("x = neg(x);"), "4:1: 'x' is already defined; every name stands for one value");
    EXPECT_EQ(node_error("z = neg(x);"), "6:11: 'y' is not defined before this use");
    EXPECT_EQ(node_error("y = softmax(x, axes=1);"),
              "4:16: softmax has no option 'axes'; it takes: input, axis");
    EXPECT_EQ(node_error("y = softmax(x, axis=\"one\");"),
              "4:1: softmax: attribute axis: \"one\" is not an integer");
    EXPECT_EQ(node_error("y = softmax(x, axis=1, axis=1);"), "4:1: softmax: an attribute is given twice");
    EXPECT_EQ(node_error("y = softmax(axis=1, x);"),
              "4:21: 'x' comes after the option 'axis'; options come last");
    EXPECT_EQ(node_error("y = softmax(x, 1=2);"), "4:16: '1' is not the name of an option");
    EXPECT_EQ(node_error("[y] = split(x, splits=[1, 1]);"),
              "4:1: split has 2 results; 1 names are given for them");
    EXPECT_EQ(node_error("[] = neg(x);"), "4:1: name at least one result between '[' and ']'");
    EXPECT_EQ(node_error("y = 3;"),
              "4:5: expected an operator and its arguments, or the name of a value, found '3'");
    EXPECT_EQ(node_error("y = cast(x, to=\"complex\");").substr(0, 40),
              "4:13: to: unknown data type 'complex'; k");
    EXPECT_EQ(node_error("y = elu(x, alpha=1e999);"), "4:18: 1e999 is out of range");
    EXPECT_THAT(node_error("y = matmul(x, x);"), StartsWith("4:1: matmul:"));
    EXPECT_THAT(node_error("y = neg(x, a=" + std::string(100'000, '[')),
                HasSubstr("nested more than 64 deep"));
    EXPECT_THAT(node_error("y = neg(x, label=2);"), HasSubstr("a label is a string, not 2"));
}

TEST(TextParser, UnboundedExtentsAreTheFormatsLargest) {
    const auto graph =
        must(build("webnn_graph \"t\" v2 { inputs { x: f32[dyn(\"n\", 4294967295)]; } nodes "
                   "{ y = neg(x); } outputs { y; } }"));
    EXPECT_EQ(graph.value(0).type.shape[0].max_size(), INT64_MAX);
}

TEST(TextParser, MissingWeightsAreNamed) {
    const TemporaryFolder folder;
    const std::string text =
        "webnn_graph \"t\" v1 {\n  consts { w: f32[2]; }\n  nodes { y = neg(w); }\n  outputs { y; }\n}";
    const auto graph = read_graph_file(folder.write("t.webnn", text));
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.error().code, Code::io);
    EXPECT_THAT(graph.error().message,
                HasSubstr("t.webnn': 2:12: constant 'w': the weights' manifest: cannot read"));
    EXPECT_THAT(graph.error().message, HasSubstr("pass another manifest_path"));
}

}  // namespace
}  // namespace headrace::webnn
