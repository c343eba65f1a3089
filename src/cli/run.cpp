#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/prepared.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

struct RunArguments : GraphOptions {
    std::vector<std::string> outputs;  ///< "name=file.npy"
    JsonOption json;
};

Status write_output(const std::string& argument, Prepared& prepared) {
    const auto infos = prepared.executable().outputs();
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto it =
        std::find_if(infos.begin(), infos.end(), [&](const TensorInfo& t) { return t.name == name; });
    if (equals == std::string::npos || it == infos.end())
        return invalid("--output {}: NAME=FILE with the name of an output", argument);
    return write_npy(argument.substr(equals + 1),
                     prepared.outputs()[static_cast<std::size_t>(it - infos.begin())]);
}

nlohmann::json named(const std::vector<TensorInfo>& infos, const std::vector<Array>& arrays) {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; i < infos.size(); ++i) {
        list.push_back({{"name", infos[i].name}});
        list.back().update(described(arrays[i]));
    }
    return list;
}

Status run_graph(const RunArguments& options) {
    HR_ASSIGN(auto prepared, Prepared::make(options));
    prepared->run();
    const auto infos = prepared->executable().outputs();
    std::string text;
    for (std::size_t i = 0; i < infos.size(); ++i)
        text += fmt::format("{}: {}\n", infos[i].name, summarize(prepared->outputs()[i]));
    for (const std::string& argument : options.outputs) HR_TRY(write_output(argument, *prepared));
    return report(text,
                  {{"inputs", named(prepared->executable().inputs(), prepared->inputs())},
                   {"outputs", named(infos, prepared->outputs())}},
                  options.json);
}

}  // namespace

void add_run(CLI::App& app, Status& status) {
    auto* command = app.add_subcommand("run", "run a graph or an ONNX model once")->group(kGraphs);
    auto options = std::make_shared<RunArguments>();
    add_graph_options(*command, *options);
    command->add_option("--output", options->outputs, "write an output's values; may be repeated")
        ->type_name("NAME=FILE.npy")
        ->allow_extra_args(false)
        ->check([](const std::string& text) {
            return text.find('=') == std::string::npos ? "'" + text + "' is not NAME=FILE.npy" : "";
        })
        ->group("Outputs");
    add_json_option(*command, options->json);
    command->get_option("--json")->group("Outputs");
    command->footer(
        "Examples:\n"
        "    headrace run model.onnx                               on random inputs\n"
        "    headrace run model.onnx --input x=x.npy --output y=y.npy\n"
        "    headrace run model.onnx --shape input_ids=1,128 --json -");
    command->final_callback([=, &status] { run_command(status, [&] { return run_graph(*options); }); });
}

}  // namespace headrace::cli
