#include "cli/graph_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "cli/commands.h"
#include "cli/device_option.h"
#include "doors/onnx/reading/importer.h"
#include "headrace/option_names.h"

namespace headrace::cli {
namespace {

/// "batch=4"
Result<std::pair<std::string, std::int64_t>> named_number(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    const bool has_name = equals != std::string::npos && equals > 0;
    std::int64_t size = -1;
    const char* begin = text.data() + (has_name ? equals + 1 : 0);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, size);
    if (!has_name || begin == end || stop != end || error != std::errc() || size < 0)
        return invalid("'{}' is not NAME=NUMBER", text);
    return std::pair{text.substr(0, equals), size};
}

Result<OnnxOptions> onnx_options(const std::vector<std::string>& dimensions) {
    OnnxOptions options;
    for (const std::string& text : dimensions) {
        HR_ASSIGN(auto dimension, named_number(text));
        options.dimensions.insert_or_assign(std::move(dimension.first), dimension.second);
    }
    return options;
}

/// As open as the inputs are; where that cannot be read, with the shapes that inputs are given.
Result<Graph> read_model(const GraphOptions& options) {
    HR_ASSIGN(OnnxOptions given, onnx_options(options.dimensions));
    HR_ASSIGN(const auto source, onnx::open_model(options.graph));
    auto made = onnx::read_model(*source, given);
    if (made.ok()) return std::move(std::move(made).value().graph);
    HR_ASSIGN(const auto shapes, shapes_by_input(options.inputs));
    if (shapes.empty()) return made.error();
    for (const auto& [name, shape] : shapes) given.forms[name] = OnnxShape(shape.begin(), shape.end());
    auto closed = onnx::read_model(*source, given);
    if (!closed.ok()) return made.error();
    return std::move(std::move(closed).value().graph);
}

/// CLI11's message where the text is no value of this type; empty where it is one.
template <class T>
std::string complaint(const Result<T>& read) {
    return read.ok() ? "" : read.error().message;
}

Status check_files(const GraphOptions& options) {
    const bool has_files = options.graph.ends_with(".webnn") || options.graph.ends_with(".json");
    if (!has_files && !(options.weights.manifest.empty() && options.weights.weights.empty()))
        return invalid(
            "'{}': --manifest and --weights name the files beside a .webnn or .json graph; how weights are "
            "stored is --weight-format",
            options.graph);
    if (!is_onnx_file(options.graph) && !options.dimensions.empty())
        return invalid("'{}': --dimension is for ONNX models; a graph file keeps those it was saved with",
                       options.graph);
    return success();
}

}  // namespace

void add_dimension_option(CLI::App& command, std::vector<std::string>& dimensions) {
    command
        .add_option("--dimension", dimensions,
                    "fixes a dynamic dimension of an ONNX model's inputs; may be repeated")
        ->type_name("NAME=N")
        ->allow_extra_args(false)
        ->check([](const std::string& text) { return complaint(named_number(text)); });
}

void add_weight_format_option(CLI::App& command, WeightFormat& format) {
    command
        .add_option_function<std::string>(
            "--weight-format", [&](const std::string& name) { format = *find_weight_format(name); },
            "how constant matrices of products are stored: as-given (default), q8_0 (8 bits) or q4_0 (4 "
            "bits)")
        ->check(CLI::IsMember({"as-given", "q8_0", "q4_0"}))
        ->type_name("");
}

void add_graph_options(CLI::App& command, GraphOptions& options) {
    command.add_option("graph", options.graph, "graph file (.hrg, .webnn, .json) or ONNX model")
        ->required()
        ->type_name("FILE");
    const auto add = [&](const std::string& name, auto& value, const char* type, const char* group,
                         const std::string& help) {
        return command.add_option(name, value, help)->type_name(type)->group(group);
    };
    constexpr const char *kInputs = "Inputs", *kRunning = "How it runs", *kFiles = "Files";
    add("--input", options.inputs.files, "NAME=FILE.npy", kInputs,
        "an input's values; those of others are random; may be repeated")
        ->allow_extra_args(false)
        ->check([](const std::string& text) { return complaint(named_text(text)); });
    add("--shape", options.inputs.shapes, "NAME=1,16", kInputs,
        "an input's sizes where they are dynamic; otherwise they are made up; may be repeated")
        ->allow_extra_args(false)
        ->check([](const std::string& text) { return complaint(named_shape(text)); });
    add_dimension_option(command, options.dimensions);
    command.get_option("--dimension")->group(kInputs);
    add("--seed", options.inputs.seed, "N", kInputs, "of random inputs; default: 0");
    add_device_option(
        command,
        "cpu, auto, a name from `headrace devices`, or rpc://host:port; several of those share "
        "the graph",
        [&](const auto& names) { options.compile.device = fmt::format("{}", fmt::join(names, ",")); });
    command.get_option("--device")->group(kRunning);
    add("--threads", options.compile.threads, "N", kRunning, "default: 0, one per CPU")->check(at_least(0));
    add("--host-timeout-ms", options.compile.host_timeout_ms, "N", kRunning,
        "a remote host that is silent for that long is lost; default: 60000");
    add("--most-iterations", options.most_iterations, "N", kRunning,
        "of all loops of a run together; default: 10000000")
        ->check(at_least(1));
    add_weight_format_option(command, options.compile.weights);
    command.get_option("--weight-format")->group(kRunning);
    command
        .add_option_function<std::string>(
            "--memory", [&](const std::string& name) { options.compile.memory = *find_memory_use(name); },
            "normal (default), or low: without transformed filters, which take more than the plain ones")
        ->check(CLI::IsMember({"normal", "low"}))
        ->type_name("")
        ->group(kRunning);
    command
        .add_option_function<std::string>(
            "--precision",
            [&](const std::string& name) { options.compile.precision = *find_precision(name); },
            "exact (default), or fast: products of f32 are rounded where that is faster, on CPUs to bf16")
        ->check(CLI::IsMember({"exact", "fast"}))
        ->type_name("")
        ->group(kRunning);
    add("--without-pass", options.compile.disabled_passes, "PASS", kRunning,
        "turn a pass of the optimiser off; may be repeated")
        ->allow_extra_args(false);
    add("--packed-cache", options.compile.packed_cache, "on|off|FOLDER", kFiles,
        "where packed weights are kept for later starts; default: $HEADRACE_PACKED_CACHE, else off");
    add("--tuning", options.compile.tuning, "on|off|FOLDER", kFiles,
        "where bench --tune keeps its choices; default: $HEADRACE_TUNING, else on");
    add("--manifest", options.weights.manifest, "FILE", kFiles, "of a .webnn or .json graph's weights");
    add("--weights", options.weights.weights, "FILE", kFiles, "of a .webnn or .json graph");
    command.parse_complete_callback([&options] { check_usage(check_files(options)); });
}

Result<Graph> read_graph_or_model(const GraphOptions& options) {
    return is_onnx_file(options.graph) ? read_model(options)
                                       : webnn::read_graph_file(options.graph, options.weights);
}

CLI::Validator at_least(int least) {
    return CLI::Validator(
        [least](std::string& text) {
            int number = 0;
            const bool is_number = CLI::detail::lexical_cast(text, number);
            return is_number && number < least ? fmt::format("{} is less than {}", number, least)
                                               : std::string();
        },
        "");
}

}  // namespace headrace::cli
