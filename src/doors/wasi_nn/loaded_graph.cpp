#include "doors/wasi_nn/loaded_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/aligned_buffer.h"
#include "base/small_letters.h"
#include "doors/wasi_nn/caught.h"
#include "headrace/graph_files.h"
#include "headrace/onnx.h"

namespace headrace::wasi_nn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOnnx = ".onnx";
constexpr std::array kGraphFiles{kOnnx, std::string_view(".hrg"), std::string_view(".webnn"),
                                 std::string_view(".json")};
constexpr std::size_t kIdleBytes = std::size_t{64} << 20;  // kept by a graph for its next run

/// The ending of a path; a file's name that is nothing more, such as ".onnx", counts as one.
std::string ending_of(std::string_view path) {
    const std::string name = fs::path(path).filename().string();
    return in_small_letters(name.substr(std::min(name.rfind('.'), name.size())));
}

/// The parameters of a load, read.
struct GraphChoices {
    OnnxOptions onnx;
    int threads = 0;
};

Result<std::int64_t> positive(std::string_view name, const ParameterValue& value, std::int64_t most) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number || *number < 1 || *number > most)
        return invalid("{} of a graph is an integer from 1 to {}", name, most);
    return *number;
}

Result<GraphChoices> choices_of(const Parameters& parameters, bool is_onnx, const GuestLimits& limits) {
    constexpr int kMostThreads = 512;
    GraphChoices choices{.onnx = {}, .threads = limits.threads};
    for (const auto& [name, value] : parameters.entries()) {
        if (name == "threads" || name == "n_threads") {
            HR_ASSIGN(const std::int64_t threads, positive(name, value, kMostThreads));
            const int most = limits.threads ? limits.threads : num_threads();
            choices.threads = std::min(static_cast<int>(threads), most);
        } else if (name == "dimensions") {
            const auto* given = std::get_if<Parameters>(&value);
            if (!given) return invalid("dimensions is an object of names and numbers");
            if (!is_onnx) return invalid("dimensions are of ONNX models; other graphs have none to choose");
            for (const auto& [symbol, extent] : given->entries()) {
                HR_ASSIGN(choices.onnx.dimensions[symbol],
                          positive("the dimension '" + symbol + "'", extent, INT32_MAX));
            }
        } else {
            return invalid("'{}' is no parameter of a graph; those are 'dimensions' and 'threads'", name);
        }
    }
    return choices;
}

/// A GPU target is the CPU where there is none.
Result<std::string> device_of(std::optional<Target> target) {
    if (!target || *target == Target::cpu) return std::string("cpu");
    if (*target == Target::tpu) return unsupported("there is no TPU; the targets are CPU (0) and GPU (1)");
    return std::string("auto");
}

Result<std::shared_ptr<LoadedGraph>> compiled(const Graph& graph, std::string_view name, int threads,
                                              std::optional<Target> target, const GuestLimits& limits) {
    HR_ASSIGN(const std::string device, device_of(target));
    const std::size_t most = limits.graph_bytes ? static_cast<std::size_t>(limits.graph_bytes) : SIZE_MAX;
    const auto pool = std::make_shared<BufferPool>(16, kIdleBytes, most);
    return caught([&] {
        Executable executable = compile(graph, {.device = device, .threads = threads, .buffers = pool});
        value_or_throw(check_model_bytes(executable.stats().constant_bytes, limits));  // of other files, too
        return std::make_shared<LoadedGraph>(name, std::move(executable));
    });
}

}  // namespace

Status check_model_bytes(std::uint64_t bytes, const GuestLimits& limits) {
    if (!limits.model_bytes || bytes <= static_cast<std::uint64_t>(limits.model_bytes)) return success();
    return failure(Code::out_of_memory, "the model has {} bytes, and the host's max_model_bytes is {}", bytes,
                   limits.model_bytes);
}

bool LoadedGraph::is_file_of_one(std::string_view path) {
    return std::ranges::find(kGraphFiles, ending_of(path)) != kGraphFiles.end();
}

Result<std::shared_ptr<LoadedGraph>> LoadedGraph::of_file(const std::string& path, std::string_view name,
                                                          const GraphLoad& load, const GuestLimits& limits) {
    const bool is_onnx = ending_of(path) == kOnnx;
    HR_ASSIGN(const GraphChoices choices, choices_of(load.parameters, is_onnx, limits));
    std::error_code error;
    const std::uint64_t bytes = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    if (error || !fs::is_regular_file(path, error)) return failure(Code::not_found, "'{}' is no file", name);
    HR_TRY(check_model_bytes(bytes, limits));
    HR_ASSIGN(const auto graph,
              caught([&] { return is_onnx ? load_onnx(path, choices.onnx) : webnn::load_graph_file(path); }));
    return compiled(*graph, name, choices.threads, load.target, limits);
}

Result<std::shared_ptr<LoadedGraph>> LoadedGraph::of_onnx(std::string_view bytes, const GraphLoad& load,
                                                          const GuestLimits& limits) {
    HR_ASSIGN(const GraphChoices choices, choices_of(load.parameters, true, limits));
    HR_TRY(check_model_bytes(bytes.size(), limits));
    HR_ASSIGN(AlignedBuffer copy, AlignedBuffer::allocate(bytes.size(), "a guest's model"));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    const auto owner = std::make_shared<const AlignedBuffer>(std::move(copy));
    HR_ASSIGN(const auto graph, caught([&] {
                  return load_onnx({owner->data(), bytes.size()}, owner, choices.onnx);
              }));
    return compiled(*graph, "(bytes)", choices.threads, load.target, limits);
}

}  // namespace headrace::wasi_nn
