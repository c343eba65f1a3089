#include "doors/webnn/files/graph_files.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <span>

#include "base/mapped_file.h"
#include "base/new_files.h"
#include "doors/webnn/files/graph_source.h"
#include "doors/webnn/files/json_reader.h"
#include "doors/webnn/files/json_writer.h"
#include "doors/webnn/files/spell_out_activations.h"
#include "doors/webnn/files/spell_out_blocks.h"
#include "doors/webnn/files/text_parser.h"
#include "doors/webnn/files/text_writer.h"
#include "doors/webnn/files/weights_file.h"
#include "engine/executable.h"
#include "engine/quantize.h"
#include "headrace/graph_files.h"
#include "ir/graph_file.h"
#include "ops/catalog.h"

namespace headrace::webnn {
namespace {

enum class Kind { own, text, json };

Kind kind_by_extension(const std::string& path) {
    const std::string extension = std::filesystem::path(path).extension().string();
    return extension == ".webnn" ? Kind::text : extension == ".json" ? Kind::json : Kind::own;
}

/// Our own files say what they are; of others the name tells, or else how they begin.
Kind kind_of(const std::string& path, std::string_view content) {
    if (is_graph_file(std::as_bytes(std::span(content)))) return Kind::own;
    if (const Kind kind = kind_by_extension(path); kind != Kind::own) return kind;
    const std::size_t start = content.find_first_not_of(" \t\r\n");
    content = start == std::string_view::npos ? "" : content.substr(start);
    if (content.starts_with('{')) return Kind::json;
    return content.starts_with("webnn_graph") || content.starts_with('#') ? Kind::text : Kind::own;
}

std::string beside(const std::string& path, std::string_view extension) {
    return std::filesystem::path(path).replace_extension(extension).string();
}

Result<Graph> read_source(const std::string& path, std::string_view content, Kind kind,
                          const WeightPaths& paths) {
    HR_ASSIGN(const GraphSource source, kind == Kind::text ? parse_text(content) : parse_json(content));
    return build_graph(source, [&] {
        return WeightsFile::open(paths.manifest.empty() ? beside(path, ".manifest.json") : paths.manifest,
                                 paths.weights.empty() ? beside(path, ".weights") : paths.weights);
    });
}

Status write_string(const std::string& text, std::ostream& stream) {
    stream << text;
    return success();
}

Status write_source(const Graph& graph, const std::string& path, Kind kind, bool quantized) {
    HR_ASSIGN(const Graph spelled, spell_out_activations(graph));
    HR_ASSIGN(GraphSource source, describe_graph(spelled, std::filesystem::path(path).stem().string()));
    source.quantized = quantized;
    HR_ASSIGN(const std::string text, kind == Kind::text ? write_text(source) : write_json(source));
    std::vector<NamedWeight> weights;
    for (const SourceConstant& c : source.constants) {
        if (c.kind != SourceConstant::Kind::weights) continue;
        TensorType type{c.type.dataType, {}};
        for (const MLDimension& d : c.type.shape) type.shape.push_back(d.dim());
        weights.push_back({c.key, std::move(type), c.bytes});
    }
    NewFiles files;
    if (!weights.empty()) {
        std::string manifest;
        HR_TRY(files.write(beside(path, ".weights"), [&](std::ostream& s) -> Status {
            HR_ASSIGN(manifest, write_weights(weights, s));
            return success();
        }));
        HR_TRY(files.write(beside(path, ".manifest.json"),
                           [&](std::ostream& s) { return write_string(manifest, s); }));
    }
    HR_TRY(files.write(path, [&](std::ostream& s) { return write_string(text, s); }));
    return files.finish();
}

bool has_q8_0(const Graph& graph) {
    return std::ranges::any_of(graph.values,
                               [](const Value& v) { return v.type.format == BlockFormat::q8_0; });
}

}  // namespace

Result<Graph> read_graph_file(const std::string& path, const WeightPaths& paths) {
    HR_ASSIGN(const auto file, MappedFile::open(path));
    const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    const Kind kind = kind_of(path, content);
    if (kind == Kind::own && std::filesystem::path(path).extension() == ".onnx")
        return invalid(
            "'{}': this is an ONNX model, no graph file: read it with headrace.load (Python), load of the "
            "package headrace (Node) or load_onnx (C++), or write a graph file with `headrace convert "
            "model.onnx model.hrg`",
            path);
    if (kind == Kind::own) return read_graph(path, find_op);
    auto graph = read_source(path, content, kind, paths);
    if (!graph.ok()) return graph.error().within(fmt::format("'{}'", path));
    return graph;
}

Status write_graph_file(const Graph& graph, const std::string& path, bool quantized) {
    const Kind kind = kind_by_extension(path);
    if (quantized) {
        HR_ASSIGN(const Graph small, quantize_graph(graph, WeightFormat::q8_0));
        if (kind == Kind::own) return write_graph(small, path);
        HR_ASSIGN(const Graph spelt, spell_out_blocks(small));
        return write_source(spelt, path, kind, has_q8_0(small));
    }
    if (kind == Kind::own) return write_graph(graph, path);
    if (!has_q8_0(graph)) return write_source(graph, path, kind, false);
    HR_ASSIGN(const Graph spelt, spell_out_blocks(graph));
    return write_source(spelt, path, kind, true);
}

std::shared_ptr<const Graph> load_graph_file(const std::string& path, const std::string& manifest_path,
                                             const std::string& weights_path) {
    return std::make_shared<const Graph>(
        value_or_throw(read_graph_file(path, {manifest_path, weights_path})));
}

std::shared_ptr<const Graph> load_graph_bytes(std::span<const std::byte> bytes,
                                              std::shared_ptr<const void> owner) {
    return std::make_shared<const Graph>(value_or_throw(graph_from_bytes(std::move(owner), bytes, find_op)));
}

void save_graph_file(const Graph& graph, const std::string& path) {
    value_or_throw(write_graph_file(graph, path));
}

}  // namespace headrace::webnn
