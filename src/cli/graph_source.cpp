#include "cli/graph_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "doors/onnx/reading/importer.h"

namespace headrace::cli {
namespace {

/// "batch=4"
Result<OnnxOptions> onnx_options(const std::vector<std::string>& dimensions) {
    OnnxOptions options;
    for (const std::string& text : dimensions) {
        const std::size_t equals = text.rfind('=');
        const bool has_name = equals != std::string::npos && equals > 0;
        std::int64_t size = -1;
        const char* begin = text.data() + (has_name ? equals + 1 : 0);
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(begin, end, size);
        if (!has_name || begin == end || stop != end || error != std::errc() || size < 0)
            return invalid("--dimension '{}' is not NAME=NUMBER", text);
        options.dimensions[text.substr(0, equals)] = size;
    }
    return options;
}

}  // namespace

bool is_onnx_file(std::string_view path) {
    constexpr std::string_view kExtension = ".onnx";
    if (path.size() < kExtension.size()) return false;
    return std::ranges::equal(path.substr(path.size() - kExtension.size()), kExtension,
                              [](unsigned char a, char b) { return std::tolower(a) == b; });
}

Result<Graph> read_graph_or_model(const GraphOptions& options) {
    if (!is_onnx_file(options.graph)) {
        if (!options.dimensions.empty())
            return invalid("'{}': --dimension is for ONNX models; a graph file keeps those it was saved with",
                           options.graph);
        return webnn::read_graph_file(options.graph, options.weights);
    }
    HR_ASSIGN(const OnnxOptions given, onnx_options(options.dimensions));
    HR_ASSIGN(const auto source, onnx::open_model(options.graph));
    HR_ASSIGN(auto made, onnx::read_model(*source, given));
    return std::move(made.graph);
}

}  // namespace headrace::cli
