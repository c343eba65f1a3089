#include "fuzz/graph_file_targets.h"

#include <sstream>
#include <stdexcept>

#include "doors/webnn/files/json_reader.h"
#include "doors/webnn/files/json_writer.h"
#include "doors/webnn/files/text_parser.h"
#include "doors/webnn/files/text_writer.h"
#include "doors/webnn/files/weights_file.h"
#include "engine/sample_graph.h"
#include "headrace/headrace.h"
#include "ir/graph_file.h"
#include "ir/verify.h"

namespace headrace::fuzz {
namespace {

using testing::Case;
using webnn::GraphSource;

constexpr std::size_t kMostRunBytes = 1 << 18;

/// Everything that the text form can express.
constexpr std::string_view kText = R"(# every construct
webnn_graph "all \"of\" it" v2 @quantized {
  inputs { x: f32[dyn("n", 8), 4]; y: i32[]; }
  consts {
    w: f32[4, 4] @weights("w"); half: f16[3] @scalar(-0.5); list: u8[4] @bytes([0, 1, 2, 255]);
    four: i4[3] @bytes([1, 15, 7]);
  }
  nodes {
    a = matmul(x, w);
    [b, c] = split(a, splits=[2, 2], axis=1);
    d = concat(b, c, axis=1, label="join");
    e = clamp(d, minValue=-1e3, maxValue="Infinity");
    f = reshape(e, newShape=[{name: "n", maxSize: 8}, 2, 2]);
    g = gemm(a, w, alpha=0.5, bTranspose=true);
    h = cast(g, to="float16");
    i = h;
  }
  outputs { f, i; e }
}
)";

/// Loading promises a graph that verifies, compiles and runs or says why not, and can be written again.
void use(const Graph& graph) {
    if (const auto sound = verify(graph); !sound.ok())
        throw std::logic_error("a loaded graph does not verify: " + sound.error().message);
    std::size_t bytes = 0;
    for (const Value& value : graph.values) {
        if (!value.type.is_concrete()) return;
        bytes += std::min(value.type.bytes(), kMostRunBytes + 1);
    }
    if (bytes > kMostRunBytes) return;
    try {
        Session session(compile(graph, {.threads = 1}));
        std::vector<std::vector<std::byte>> memory;
        std::vector<std::vector<std::int64_t>> shapes;
        for (const ValueId id : graph.inputs) {
            shapes.push_back(graph.value(id).type.sizes());
            memory.emplace_back(graph.value(id).type.bytes());
        }
        std::vector<InputView> in;
        for (std::size_t i = 0; i < shapes.size(); ++i)
            in.push_back({graph.value(graph.inputs[i]).type.dtype, shapes[i], memory[i].data()});
        std::vector<std::vector<std::byte>> results;
        for (const auto& [name, id] : graph.outputs) results.emplace_back(graph.value(id).type.bytes());
        std::vector<OutputView> out;
        for (auto& result : results) out.push_back({result.data(), result.size()});
        session.run(in, out);
    } catch (const Exception&) {
        // A clear refusal is fine.
    }
}

bool load_own(const Parts& parts) {
    auto owner = std::make_shared<std::string>(parts[0]);
    const auto graph = graph_from_bytes(owner, std::as_bytes(std::span(*owner)), find_op);
    if (graph.ok()) use(graph.value());
    return graph.ok();
}

Result<Graph> build(const Result<GraphSource>& source, const Parts& parts) {
    if (!source.ok()) return source.error();
    return webnn::build_graph(source.value(), [&] {
        auto owner = std::make_shared<std::string>(parts[2]);
        return webnn::WeightsFile::parse(parts[1], std::as_bytes(std::span(*owner)), owner, false);
    });
}

Parts parts_of(const Graph& graph, bool as_text);

bool load_source(const Parts& parts, bool as_text) {
    const auto graph = build(as_text ? webnn::parse_text(parts[0]) : webnn::parse_json(parts[0]), parts);
    if (!graph.ok()) {
        if (graph.error().message.empty()) throw std::logic_error("an error without a message");
        return false;
    }
    use(graph.value());
    const Parts again = parts_of(graph.value(), as_text);
    if (again.empty()) return true;  // a name that the text form cannot spell
    const auto second = build(as_text ? webnn::parse_text(again[0]) : webnn::parse_json(again[0]), again);
    if (!second.ok()) throw std::logic_error("what was written cannot be read: " + second.error().message);
    if (second.value().inputs.size() != graph.value().inputs.size() ||
        second.value().outputs.size() != graph.value().outputs.size())
        throw std::logic_error("a round trip changed the graph");
    return true;
}

/// Empty when the format cannot express the graph.
Parts parts_of(const Graph& graph, bool as_text) {
    const auto source = webnn::describe_graph(graph, "sample");
    if (!source.ok()) return {};
    const auto text = as_text ? webnn::write_text(source.value()) : webnn::write_json(source.value());
    if (!text.ok()) return {};
    std::vector<webnn::NamedWeight> weights;
    for (const auto& c : source.value().constants) {
        if (c.kind != webnn::SourceConstant::Kind::weights) continue;
        TensorType type{c.type.dataType, {}};
        for (const auto& d : c.type.shape) type.shape.push_back(d.dim());
        weights.push_back({c.key, type, c.bytes});
    }
    std::ostringstream stream;
    const auto manifest = webnn::write_weights(weights, stream);
    if (!manifest.ok()) return {};
    return {text.value(), manifest.value(), stream.str()};
}

}  // namespace

std::vector<Target> graph_file_targets() {
    Target own{"graph", {}, {"HDRGRAPH"}, load_own};
    Target text{"text",
                {},
                {"inputs {",
                 "consts {",
                 "nodes {",
                 "outputs {",
                 "}",
                 "@weights(\"w\")",
                 "@scalar(1)",
                 "@bytes([1])",
                 "dyn(\"n\", 4)",
                 "null",
                 "true",
                 "[[",
                 "{a: 1}",
                 "\"",
                 "\\",
                 "#",
                 "\xC3",
                 "axis=",
                 "label=",
                 "x"},
                [](const Parts& parts) { return load_source(parts, true); }};
    Target json{"json",
                {},
                {"null", "true", "{}", "[]", "[[[[", "\"name\": \"n\", \"maxSize\": 4", "\"inputs\": {",
                 "\"axis\": 1", "\"kind\": \"inlineBytes\", \"bytes\": [1]",
                 "\"kind\": \"scalar\", \"value\": 1", "\"\\ud800\"", "\xC3", ",", "x0"},
                [](const Parts& parts) { return load_source(parts, false); }};
    for (const Case& c : testing::all_cases()) {
        const Graph graph = testing::build(c).graph;
        const auto bytes = graph_bytes(graph);
        if (!bytes.ok() || bytes.value().size() > 8192) continue;
        own.corpus.push_back(
            {std::string(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size())});
        if (Parts parts = parts_of(graph, true); !parts.empty()) text.corpus.push_back(std::move(parts));
        if (Parts parts = parts_of(graph, false); !parts.empty()) json.corpus.push_back(std::move(parts));
    }
    const std::string manifest =
        R"({"format": "wg-weights-manifest", "version": 1, "endianness": "little", "tensors": {"w":
        {"dataType": "float32", "shape": [4, 4], "byteOffset": 8, "byteLength": 64}}})";
    for (int i = 0; i < 40; ++i)  // often enough among the samples
        text.corpus.push_back(
            {std::string(kText), manifest, std::string("WGWT\1\0\0\0", 8) + std::string(64, '?')});
    return {own, text, json};
}

}  // namespace headrace::fuzz
