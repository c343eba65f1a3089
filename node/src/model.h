#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/headrace.h"
#include "memory.h"
#include "values.h"

/// What lib/models calls: whole models, run by arrays. Arguments are checked there.
namespace headrace::node {

/// A compiled graph and sessions that wait for runs, one for each that goes on at once.
class Model {
public:
    /// `declared`: types of an ONNX model by the names of inputs and outputs that the graph has in another
    /// one: "bool", which is u8 there, and "u16", which is u32.
    using Declared = std::map<std::string, std::string, std::less<>>;
    Model(std::shared_ptr<const Graph> graph, Executable executable, std::string device, RunOptions options,
          Declared declared);

    const Executable& executable() const { return executable_; }
    /// "cpu", or a name of devices(): what was taken.
    const std::string& device() const { return device_; }
    const std::vector<TensorInfo>& inputs() const { return inputs_; }
    const std::vector<TensorInfo>& outputs() const { return outputs_; }
    /// What callers know an input or output as.
    std::string_view type_of(const TensorInfo& info) const;
    /// What a file of the model holds.
    const Graph& graph() const { return graph_ ? *graph_ : executable_.graph(); }
    /// should_stop: as RunOptions has it.
    void run(std::span<const InputView> inputs, const Session::MakeOutputs& make_outputs,
             std::function<bool()> should_stop);

private:
    std::unique_ptr<Session> take();

    const std::shared_ptr<const Graph> graph_;  ///< null: the optimised one, whose weights are smaller
    const Executable executable_;
    const std::string device_;
    const std::vector<TensorInfo> inputs_ = executable_.inputs(), outputs_ = executable_.outputs();
    const RunOptions options_;
    const Declared declared_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Session>> idle_;
};

struct ModelHandle : Handle {
    static constexpr Kind kKind = Kind::model;
    explicit ModelHandle(std::shared_ptr<Model> of) : Handle(kKind), model(std::move(of)) {}
    std::shared_ptr<Model> model;  ///< null once it is closed
};

/// By which JavaScript ends runs.
struct StopHandle : Handle {
    static constexpr Kind kKind = Kind::stop;
    StopHandle() : Handle(kKind) {}
    const std::shared_ptr<std::atomic<bool>> is_wanted = std::make_shared<std::atomic<bool>>(false);
};

/// A model's content in memory of the addon's, which comes in pieces.
struct BytesHandle : Handle {
    static constexpr Kind kKind = Kind::bytes;
    explicit BytesHandle(std::size_t bytes) : Handle(kKind), size(bytes), memory(memory_of(bytes)) {}
    const std::size_t size;
    std::size_t filled = 0;
    Memory memory;  ///< null once a model has it
};
struct ModelBytes {
    Memory memory;
    std::size_t size = 0;
};
/// What such a handle has, which is empty then, or a copy of a Uint8Array.
ModelBytes to_model_bytes(const Call& call, std::size_t argument);

napi_value new_bytes(const Call& call);  // (size) -> handle
napi_value add_bytes(const Call& call);  // (handle, Uint8Array)
/// (path, handle of bytes or Uint8Array, is it ONNX, options, [name, number, ...] dimensions, [name, shape,
/// ...] of inputs)
/// -> promise of {handle, inputs, outputs: [{name, type, shape}], device, hasStates}
napi_value open_model(const Call& call);
/// (model, [shape, bytes, ...] in the order of its inputs, stop or undefined) -> promise of [{dims,
/// buffer}]
napi_value run_model(const Call& call);
napi_value new_stop(const Call& call);      // () -> stop
napi_value stop_runs(const Call& call);     // (stop)
napi_value save_model(const Call& call);    // (model, path) -> promise
napi_value close_model(const Call& call);   // (model)
napi_value list_devices(const Call& call);  // () -> promise of [{name, description, type, ...}]

/// (path) -> promise of {handle, size, paddingId, mostTokens}
napi_value open_tokenizer(const Call& call);
/// (tokenizer, texts, second texts or [], most tokens, with special tokens) -> promise of [{ids, types}]
napi_value encode_texts(const Call& call);

}  // namespace headrace::node
