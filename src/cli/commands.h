#pragma once
#include <CLI/CLI.hpp>

#include "base/result.h"

/// The commands of the program but those of language models. Each adds one, which stores its status where it
/// has run.
namespace headrace::cli {

/// Headings of `headrace --help`.
inline constexpr const char *kGraphs = "Graphs and ONNX models", *kLanguage = "Language models (GGUF)",
                            *kMachines = "Machines", *kReference = "Reference";

/// A graph once.
void add_run(CLI::App& app, Status& status);
/// Beside ONNX Runtime, in alternation, where Python has it and the graph can be exported; else alone. With
/// --profile each node's time, and how much of the machine's limits it reaches; with --tune what other ways
/// to run nodes gain.
void add_bench(CLI::App& app, Status& status);
/// The optimised graph, its plan and memory.
void add_inspect(CLI::App& app, Status& status);
/// Writes an ONNX model as a graph file.
void add_convert(CLI::App& app, Status& status);
/// What ggml can run on, here and on other machines.
void add_devices(CLI::App& app, Status& status);
/// Lends this machine's devices to other hosts.
void add_serve_rpc(CLI::App& app, Status& status);
/// The op catalog, and which of WebNN's operators have which implementation.
void add_ops(CLI::App& app, Status& status);
/// What shells complete.
void add_completion(CLI::App& app, Status& status);

/// Exits with the status of a wrong command line where a status is an error.
inline void check_usage(const Status& status) {
    if (!status.ok()) throw CLI::ParseError(status.error().message, CLI::ExitCodes::ValidationError);
}

/// Runs a command, whose errors of the public API become its status.
template <class Command>
void run_command(Status& status, Command command) {
    try {
        status = command();
    } catch (const Exception& error) {
        status = Error{error.code(), error.what()};
    }
}

}  // namespace headrace::cli
