#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "headrace/headrace.h"
#include "headrace/hosted_models.h"

namespace headrace::wasi_nn {

/// Where a guest wants a graph to run.
enum class Target : std::uint8_t { cpu, gpu, tpu };

/// What a load says of a graph. parameters: "dimensions", an object of numbers for named dimensions of an
/// ONNX model, and "threads", no more than the host's.
struct GraphLoad {
    Parameters parameters;
    std::optional<Target> target;  ///< none: the CPU
};

/// A graph of tensors, compiled for all contexts that are opened on it.
struct LoadedGraph {
    LoadedGraph(std::string_view called, Executable compiled)
        : name(called),
          executable(std::move(compiled)),
          inputs(executable.inputs()),
          outputs(executable.outputs()) {}

    const std::string name;
    const Executable executable;  ///< its buffers hold inputs and outputs, too, and limit all together
    const std::vector<TensorInfo> inputs, outputs;
    std::atomic<bool> is_unloaded = false;
    std::atomic<std::int64_t> runs = 0;

    /// Whether a file's name says that it is one: .onnx, .hrg, .webnn or .json.
    static bool is_file_of_one(std::string_view path);
    /// Errors: Code::not_found where there is no such file; Code::out_of_memory beyond the limits; those of
    /// load_onnx(), load_graph_file() and compile().
    static Result<std::shared_ptr<LoadedGraph>> of_file(const std::string& path, std::string_view name,
                                                        const GraphLoad& load, const GuestLimits& limits);
    /// An ONNX model's bytes, which are copied.
    static Result<std::shared_ptr<LoadedGraph>> of_onnx(std::string_view bytes, const GraphLoad& load,
                                                        const GuestLimits& limits);
};

/// Code::out_of_memory for more bytes than a guest's model may have.
Status check_model_bytes(std::uint64_t bytes, const GuestLimits& limits);

}  // namespace headrace::wasi_nn
