#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/graph_options.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

struct ConvertOptions : GraphOptions {
    std::string output;  ///< graph file to write; the extension chooses the form
    JsonOption json;
};

Status check_names(const ConvertOptions& options) {
    if (!is_onnx_file(options.graph))
        return invalid("'{}': convert reads ONNX models, whose names end in .onnx", options.graph);
    const std::string extension = std::filesystem::path(options.output).extension().string();
    if (extension != ".hrg" && extension != ".webnn" && extension != ".json")
        return invalid("'{}': convert writes .hrg, .webnn and .json files, and a name ends in one of these",
                       options.output);
    return success();
}

Status convert_model(const ConvertOptions& options) {
    check_usage(check_names(options));
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    HR_TRY(webnn::write_graph_file(graph, options.output));
    std::error_code error;
    const auto size = std::filesystem::file_size(options.output, error);
    return report(fmt::format("{}: {}\n", options.output, size_text(size)),
                  {{"graph", options.output}, {"bytes", size}, {"nodes", graph.nodes.size()}}, options.json);
}

}  // namespace

void add_convert(CLI::App& app, Status& status) {
    auto* command = app.add_subcommand("convert", "write an ONNX model as a graph file")->group(kGraphs);
    auto options = std::make_shared<ConvertOptions>();
    command->add_option("model", options->graph, "the ONNX model")->required()->type_name("FILE");
    command->add_option("graph", options->output, "graph file to write: .hrg, .webnn or .json")
        ->required()
        ->type_name("FILE");
    add_dimension_option(*command, options->dimensions);
    add_json_option(*command, options->json);
    command->footer(
        "Examples:\n"
        "    headrace convert model.onnx model.hrg\n"
        "    headrace convert model.onnx model.hrg --dimension batch=1");
    command->final_callback([=, &status] { run_command(status, [&] { return convert_model(*options); }); });
}

}  // namespace headrace::cli
