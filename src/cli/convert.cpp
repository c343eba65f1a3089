#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/graph_options.h"
#include "cli/report.h"
#include "engine/quantize.h"

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
    if (options.compile.weights == WeightFormat::q4_0 && extension != ".hrg")
        return invalid("'{}': only .hrg files hold weights of 4 bits; .webnn and .json files hold q8_0",
                       options.output);
    return success();
}

/// The model with its weights as they are to be stored.
Result<Graph> read_model(const ConvertOptions& options) {
    HR_ASSIGN(Graph graph, read_graph_or_model(options));
    if (options.compile.weights == WeightFormat::as_given) return graph;
    return quantize_graph(std::move(graph), options.compile.weights);
}

Status convert_model(const ConvertOptions& options) {
    check_usage(check_names(options));
    HR_ASSIGN(const Graph graph, read_model(options));
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
    add_weight_format_option(*command, options->compile.weights);
    add_json_option(*command, options->json);
    command->footer(
        "Examples:\n"
        "    headrace convert model.onnx model.hrg\n"
        "    headrace convert model.onnx model.hrg --dimension batch=1\n"
        "    headrace convert model.onnx small.hrg --weight-format q8_0");
    command->final_callback([=, &status] { run_command(status, [&] { return convert_model(*options); }); });
}

}  // namespace headrace::cli
