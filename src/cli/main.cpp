#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <span>

#include "cli/commands.h"
#include "cli/device_option.h"
#include "cli/python.h"
#include "remote/server.h"
#ifdef HEADRACE_LLM
#include "cli/language.h"
#include "doors/serve/program.h"
#include "llm/model/packed_products.h"
#endif

namespace {

using namespace headrace;
using namespace headrace::cli;

void add_graph_options(CLI::App& command, GraphOptions& options) {
    command.add_option("graph", options.graph, "graph file (.hrg, .webnn, .json) or ONNX model")->required();
    command.add_option("--dimension", options.dimensions,
                       "NAME=N fixes a dimension of an ONNX model's inputs that is open otherwise");
    command.add_option("--manifest", options.weights.manifest, "of a .webnn or .json graph's weights");
    command.add_option("--weights", options.weights.weights, "of a .webnn or .json graph");
    add_device_option(
        command,
        "cpu, auto, a name from `headrace devices`, or rpc://host:port; several of those share the graph",
        [&](const auto& names) { options.compile.device = fmt::format("{}", fmt::join(names, ",")); });
    command.add_option("--host-timeout-ms", options.compile.host_timeout_ms,
                       "a remote host that is silent for that long is lost; default: 60000");
    command.add_option("--threads", options.compile.threads, "0: one per CPU");
    command.add_option("--most-iterations", options.most_iterations, "of all loops of a run together");
    command.add_option("--packed-cache", options.compile.packed_cache,
                       "where packed weights are kept for later starts: on, off or a folder");
    command.add_option("--tuning", options.compile.tuning,
                       "where bench --tune keeps its choices: on, off or a folder");
    command.add_option("--without-pass", options.compile.disabled_passes, "turn an optimiser pass off");
    command.add_option("--input", options.inputs.files, "NAME=FILE.npy; inputs without a file are generated");
    command.add_option("--shape", options.inputs.shapes, "NAME=1,16 for an input with unknown extents");
    command.add_option("--seed", options.inputs.seed, "of generated inputs");
}

void add_server_options(CLI::App& command, remote::ServerOptions& options) {
    command.add_option("--host", options.host, "address to listen at; default: 127.0.0.1");
    command.add_option("--port", options.port, "default: 50052; 0 chooses a free one")
        ->check(CLI::Range(0, 65535));
    command.add_flag("--allow-public", options.allow_public,
                     "listen where other machines can connect; RPC knows no passwords");
    add_device_option(command, "a name from `headrace devices`; none: the GPUs, else the CPU",
                      [&](const auto& names) { options.devices = names; });
    command.add_option("--threads", options.threads, "of the CPU; 0: one per core")
        ->check(CLI::Range(0, 4096));
    command.add_option("--cache", options.cache,
                       "folder where large weights are kept, so that they are sent once");
    command.add_option("--max-clients", options.max_clients, "served at once")->check(CLI::Range(1, 1024));
}

int report(const Status& status) {
    if (status.ok()) return 0;
    std::fprintf(stderr, "headrace: %s\n", status.error().message.c_str());
    return 1;
}

#ifdef HEADRACE_LLM
/// Its options are llama-server's, such as -ngl, which CLI11 cannot read.
bool is_for_server(std::span<char* const> arguments) {
    return arguments.size() > 1 && std::string_view(arguments[1]) == "serve";
}
#endif

int dispatch(int argc, char** argv) {
    CLI::App app{"Runs models on ggml."};
    app.require_subcommand(1);
    RunArguments run;
    BenchOptions bench;
    InspectOptions inspect;
    auto* devices = app.add_subcommand("devices", "list what ggml can run on");
    std::vector<std::string> hosts;
    add_device_option(
        *devices, "rpc://host:port of a remote one to ask: memory, round trip, throughput",
        [&](const auto& names) { hosts = names; }, "host,--device");
    remote::ServerOptions server;
    auto* serve_command = app.add_subcommand("serve-rpc", "lend this machine's devices to other hosts");
    add_server_options(*serve_command, server);
    auto* ops = app.add_subcommand("ops", "describe every op, as Markdown");
    bool webnn = false;
    ops->add_flag("--webnn", webnn, "list WebNN's operators by data type and implementation instead");
    auto* run_command = app.add_subcommand("run", "run a graph once");
    add_graph_options(*run_command, run);
    run_command->add_option("--output", run.outputs, "NAME=FILE.npy");
    auto* bench_command = app.add_subcommand("bench", "time a graph");
    add_graph_options(*bench_command, bench);
    bench_command->add_flag("--profile", bench.profile,
                            "time each node, beside the machine's limits of computing and reading");
    bench_command->add_flag("--tune", bench.tune,
                            "time every way to run each node, and keep what is faster here for later starts");
    bench_command->add_option("--runs", bench.runs, "timed runs without a peer");
    bench_command->add_option("--rounds", bench.rounds, "rounds in alternation with the peer");
    bench_command->add_option("--seconds", bench.seconds, "length of a round of each");
    bench_command->add_option("--warmup", bench.warmup, "runs before those");
    bench_command
        ->add_option("--peer", bench.peer,
                     "auto: compare with ONNX Runtime if Python has it; onnxruntime; none")
        ->check(CLI::IsMember({"auto", "onnxruntime", "none"}));
    bench_command->add_option("--json", bench.json, "write the result there, too");
    auto* inspect_command = app.add_subcommand("inspect", "show the optimised graph, its plan and memory");
    add_graph_options(*inspect_command, inspect);
    inspect_command->add_flag("--before", inspect.before, "show the graph before the passes, too");
    inspect_command->add_option("--svg", inspect.svg, "draw the optimised graph into this file");
    ConvertOptions convert;
    auto* convert_command = app.add_subcommand("convert", "write an ONNX model as a graph file");
    convert_command->add_option("model", convert.graph, "the ONNX model")->required();
    convert_command->add_option("graph", convert.output, "graph file to write: .hrg, .webnn or .json")
        ->required();
    convert_command->add_option("--dimension", convert.dimensions,
                                "NAME=N fixes a dimension of the model's inputs that is open otherwise");
    app.add_subcommand("serve",
                       "serve a language model over HTTP by the APIs of OpenAI, Anthropic, Ollama and "
                       "llama-server");
    app.add_subcommand("wasm", "run a WebAssembly guest that uses language models");
#ifdef HEADRACE_LLM
    Status language = success();
    add_language_commands(app, language);
#endif
    CLI11_PARSE(app, argc, argv);

#ifdef HEADRACE_LLM
    if (!language.ok() ||
        !(devices->parsed() || serve_command->parsed() || ops->parsed() || run_command->parsed() ||
          bench_command->parsed() || inspect_command->parsed() || convert_command->parsed()))
        return report(language);
#endif
    if (convert_command->parsed()) return report(convert_model(convert));
    if (devices->parsed()) return report(list_all_devices(hosts));
#ifdef HEADRACE_LLM
    server.prepare = &llm::offer_packed_products;  // for its attention: clients choose where weights lie
#endif
    if (serve_command->parsed()) return report(remote::serve(server));
    if (ops->parsed()) return report(list_ops(webnn));
    if (run_command->parsed()) return report(run_graph(run));
    if (bench_command->parsed()) return report(bench_graph(bench));
    if (inspect_command->parsed()) return report(inspect_graph(inspect));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
        if (is_for_python(arguments)) return report(become_python(arguments));
#ifdef HEADRACE_LLM
        if (is_for_server(arguments))
            return report(serve::run(std::vector<std::string>(arguments.begin() + 2, arguments.end())));
#endif
        return dispatch(argc, argv);
    } catch (const Exception& e) {
        return report(Error{e.code(), e.what()});
    } catch (const std::bad_alloc&) {
        return report(failure(Code::out_of_memory, "out of memory"));
    }
}
