#include "doors/webnn/graph_files.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <random>

#include "base/mapped_file.h"
#include "doors/webnn/graph_source.h"
#include "doors/webnn/json_reader.h"
#include "doors/webnn/json_writer.h"
#include "doors/webnn/text_parser.h"
#include "doors/webnn/text_writer.h"
#include "doors/webnn/weights_file.h"
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
    if (content.starts_with("HDRGRAPH")) return Kind::own;
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

/// Files that appear together once all of them are written.
class NewFiles {
public:
    ~NewFiles() {
        std::error_code ignored;
        for (const auto& [unfinished, path] : files_) std::filesystem::remove(unfinished, ignored);
    }

    Status write(const std::string& path, const std::function<Status(std::ostream&)>& content) {
        const std::string unfinished = fmt::format("{}.{:08x}.tmp", path, std::random_device()());
        std::ofstream stream(unfinished, std::ios::binary | std::ios::trunc);
        if (!stream) return failure(Code::io, "cannot create '{}'", path);
        files_.emplace_back(unfinished, path);
        HR_TRY(content(stream));
        stream.close();
        if (!stream) return failure(Code::io, "cannot write '{}'; is the disk full?", path);
        return success();
    }
    Status finish() {
        for (const auto& [unfinished, path] : files_) {
            std::error_code error;
            std::filesystem::rename(unfinished, path, error);
            if (error) return failure(Code::io, "cannot write '{}': {}", path, error.message());
        }
        files_.clear();
        return success();
    }

private:
    std::vector<std::pair<std::string, std::string>> files_;  ///< unfinished, final
};

Status write_string(const std::string& text, std::ostream& stream) {
    stream << text;
    return success();
}

Status write_source(const Graph& graph, const std::string& path, Kind kind) {
    HR_ASSIGN(const GraphSource source, describe_graph(graph, std::filesystem::path(path).stem().string()));
    HR_ASSIGN(const std::string text, kind == Kind::text ? write_text(source) : write_json(source));
    std::vector<NamedWeight> weights;
    for (const SourceConstant& c : source.constants) {
        if (c.kind != SourceConstant::Kind::weights) continue;
        TensorType type{c.type.dataType, {}};
        for (const MLDimension& d : c.type.shape) type.shape.emplace_back(d.size);
        weights.push_back({c.key, std::move(type), c.bytes});
    }
    NewFiles files;
    if (!weights.empty()) {
        HR_TRY(files.write(beside(path, ".weights"),
                           [&](std::ostream& s) { return write_weights(weights, s); }));
        HR_TRY(files.write(beside(path, ".manifest.json"),
                           [&](std::ostream& s) { return write_string(manifest_text(weights), s); }));
    }
    HR_TRY(files.write(path, [&](std::ostream& s) { return write_string(text, s); }));
    return files.finish();
}

}  // namespace

Result<Graph> read_graph_file(const std::string& path, const WeightPaths& paths) {
    HR_ASSIGN(const auto file, MappedFile::open(path));
    const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    const Kind kind = kind_of(path, content);
    if (kind == Kind::own) return read_graph(path, find_op);
    auto graph = read_source(path, content, kind, paths);
    if (!graph.ok()) return graph.error().within(fmt::format("'{}'", path));
    return graph;
}

Status write_graph_file(const Graph& graph, const std::string& path) {
    const Kind kind = kind_by_extension(path);
    return kind == Kind::own ? write_graph(graph, path) : write_source(graph, path, kind);
}

}  // namespace headrace::webnn
