#include "cli/peer.h"

#include "base/cpu_count.h"
#include "base/log.h"
#include "cli/python.h"

#if defined(__unix__) || defined(__APPLE__)

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <cstdio>
#include <cstring>

extern char** environ;

namespace headrace::cli {
namespace {

constexpr int kNoPeer = 3, kDisagreement = 4;  // as compare_onnxruntime.py has them

/// The shapes of all inputs without a file, so that both sides make up the same extents.
Result<std::vector<std::string>> given_shapes(const BenchOptions& options) {
    HR_ASSIGN(const Graph graph, read_graph_or_model(options));
    HR_ASSIGN(const InputShapes inputs, input_shapes(graph, options.inputs));
    const std::string made_up = made_up_text(graph, inputs, is_onnx_file(options.graph));
    if (!made_up.empty()) tell_user(made_up);
    std::vector<std::string> shapes;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
        if (!inputs.arrays.contains(i))
            shapes.push_back(
                fmt::format("{}={}", graph.value(graph.inputs[i]).name, fmt::join(inputs.shapes[i], ",")));
    return shapes;
}

/// What an interpreter without the package runs: it exits as compare_onnxruntime.py without ONNX Runtime.
constexpr std::string_view kNoComparison = R"(
    print(
        f"no comparison with ONNX Runtime: {sys.executable} does not have the Python package headrace; "
        "HEADRACE_PYTHON names another interpreter, --peer none leaves this out",
        file=sys.stderr,
    )
    sys.exit(3))";

std::vector<std::string> command_line(const BenchOptions& options, const std::vector<std::string>& shapes) {
    std::vector<std::string> words{find_python(), "-c",
                                   python_program("headrace._cli.compare_onnxruntime", kNoComparison),
                                   options.graph};
    const auto add = [&](const std::string& name, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {name, value});
    };
    add("--device", options.compile.device);
    add("--host-timeout-ms", std::to_string(options.compile.host_timeout_ms));
    add("--threads", std::to_string(options.compile.threads > 0 ? options.compile.threads : usable_cpus()));
    if (options.compile.weights != WeightFormat::as_given)
        add("--weight-format", options.compile.weights == WeightFormat::q8_0 ? "q8_0" : "q4_0");
    add("--manifest", options.weights.manifest);
    add("--weights", options.weights.weights);
    for (const std::string& dimension : options.dimensions) add("--dimension", dimension);
    for (const std::string& file : options.inputs.files) add("--input", file);
    for (const std::string& shape : shapes) add("--shape", shape);
    add("--seed", std::to_string(options.inputs.seed));
    add("--rounds", std::to_string(options.rounds));
    add("--seconds", std::to_string(options.seconds));
    add("--json", options.json.path);
    return words;
}

}  // namespace

Result<bool> compare_with_peer(const BenchOptions& options) {
    HR_ASSIGN(const auto shapes, given_shapes(options));
    std::vector<std::string> words = command_line(options, shapes);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = 0;
    std::fflush(stdout);
    if (const int error = posix_spawnp(&process, arguments[0], nullptr, nullptr, arguments.data(), environ)) {
        tell_user(fmt::format("no comparison: {}: {}", arguments[0], std::strerror(error)));
        return false;
    }
    int status = 0;
    if (waitpid(process, &status, 0) < 0) return failure(Code::io, "lost the comparison's process");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoPeer) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kDisagreement)
        return failure(Code::backend_failure,
                       "the peer computes something else; --peer none times the graph alone");
    // Python ends with 1 after a message of its own.
    if (options.peer == "auto") return false;
    return failure(Code::backend_failure, "the comparison failed");
}

}  // namespace headrace::cli

#else

namespace headrace::cli {
Result<bool> compare_with_peer(const BenchOptions&) { return false; }
}  // namespace headrace::cli

#endif
