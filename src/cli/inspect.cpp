#include <fstream>
#include <memory>

#include "cli/commands.h"
#include "cli/prepared.h"
#include "cli/report.h"
#include "cli/svg.h"
#include "cli/table.h"

namespace headrace::cli {
namespace {

struct InspectOptions : GraphOptions {
    bool before = false;
    std::string svg;  ///< file for a drawing of the graph
    JsonOption json;
};

double to_mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string passes_text(const CompileStats& stats) {
    Table table({{"pass"}, {"ms", true}, {"changes"}});
    for (const PassStats& pass : stats.passes) {
        std::string changes;
        for (const auto& [what, count] : pass.counts)
            changes += fmt::format("{}{} {}", changes.empty() ? "" : ", ", what, count);
        table.add({pass.name, pass.ran ? fmt::format("{:.2f}", pass.milliseconds) : "off", changes});
    }
    return fmt::format("passes: {} nodes -> {}\n{}", stats.nodes_before, stats.nodes_after, table.text(2));
}

std::string plan_text(const RunStats& run, const CompileStats& compile) {
    Table table({{"node"}, {"runs as"}, {"device"}, {"MFLOP", true}, {"MB", true}, {""}});
    for (const NodeStats& node : run.nodes)
        table.add({node.title, node.implementation, node.device, fmt::format("{:.3f}", node.flops / 1e6),
                   fmt::format("{:.3f}", node.bytes / 1e6), node.is_tuned ? "tuned" : ""});
    return "nodes:\n" + table.text(2) +
           fmt::format(
               "memory: weights {:.2f} MiB ({:.2f} mapped), packed {:.2f} MiB ({:.2f} mapped, {:.2f} "
               "transformed), activations {:.2f} MiB ({:.2f} without reuse)\nggml nodes {}, splits {}\n",
               to_mib(compile.constant_bytes), to_mib(compile.mapped_bytes), to_mib(compile.packed_bytes),
               to_mib(compile.packed_mapped_bytes), to_mib(compile.transformed_bytes),
               to_mib(run.arena_bytes), to_mib(run.naive_bytes), run.ggml_nodes, run.splits);
}

nlohmann::json json_of(const RunStats& run, const CompileStats& compile) {
    nlohmann::json passes = nlohmann::json::array(), nodes = nlohmann::json::array();
    for (const PassStats& pass : compile.passes)
        passes.push_back({{"name", pass.name},
                          {"ran", pass.ran},
                          {"milliseconds", pass.milliseconds},
                          {"changes", pass.counts}});
    for (const NodeStats& node : run.nodes)
        nodes.push_back({{"title", node.title},
                         {"label", node.label},
                         {"implementation", node.implementation},
                         {"device", node.device},
                         {"flops", node.flops},
                         {"bytes", node.bytes},
                         {"is_tuned", node.is_tuned}});
    return {{"nodes_before", compile.nodes_before},
            {"nodes_after", compile.nodes_after},
            {"passes", std::move(passes)},
            {"nodes", std::move(nodes)},
            {"memory",
             {{"weight_bytes", compile.constant_bytes},
              {"mapped_bytes", compile.mapped_bytes},
              {"packed_bytes", compile.packed_bytes},
              {"packed_mapped_bytes", compile.packed_mapped_bytes},
              {"transformed_bytes", compile.transformed_bytes},
              {"activation_bytes", run.arena_bytes},
              {"activation_bytes_without_reuse", run.naive_bytes}}},
            {"ggml_nodes", run.ggml_nodes},
            {"splits", run.splits}};
}

Status draw(const Prepared& prepared, const std::string& path) {
    std::ofstream file(path);
    file << to_svg(prepared.executable().graph(), prepared.session().stats().nodes);
    if (!file.flush()) return failure(Code::io, "cannot write '{}'", path);
    return success();
}

Status inspect_graph(const InspectOptions& options) {
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    const Executable executable = compile(graph, options.compile);
    HR_ASSIGN(auto prepared, Prepared::make(executable, options));
    prepared->plan();
    const std::string before = options.before ? print_graph(graph) : "",
                      after = print_graph(executable.graph());
    const RunStats run = prepared->session().stats();
    const CompileStats stats = executable.stats();
    nlohmann::json value = json_of(run, stats);
    value["graph"] = after;
    if (options.before) value["graph_before"] = before;
    const std::string graphs = (options.before ? before + "\n" : "") + after + "\n";
    HR_TRY(report(graphs + passes_text(stats) + plan_text(run, stats), value, options.json));
    return options.svg.empty() ? success() : draw(*prepared, options.svg);
}

}  // namespace

void add_inspect(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("inspect", "show the optimised graph, its plan and memory")->group(kGraphs);
    auto options = std::make_shared<InspectOptions>();
    add_graph_options(*command, *options);
    constexpr const char* kShown = "What is shown";
    command->add_flag("--before", options->before, "the graph before the passes, too")->group(kShown);
    command->add_option("--svg", options->svg, "draw the optimised graph into this file")
        ->type_name("FILE")
        ->group(kShown);
    add_json_option(*command, options->json);
    command->get_option("--json")->group(kShown);
    command->footer(
        "Examples:\n"
        "    headrace inspect model.onnx --svg graph.svg\n"
        "    headrace inspect model.onnx --before --without-pass fuse_matmul_epilogue");
    command->final_callback([=, &status] { run_command(status, [&] { return inspect_graph(*options); }); });
}

}  // namespace headrace::cli
