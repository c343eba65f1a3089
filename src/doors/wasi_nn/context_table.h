#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "doors/wasi_nn/context.h"
#include "doors/wasi_nn/loaded_graph.h"
#include "headrace/hosted_models.h"

namespace headrace::wasi_nn {

using ContextId = std::uint32_t;
using GraphId = HostedModels::Id;

/// Bytes of a model's or a session's name: errors repeat names, and sessions keep them.
inline constexpr std::size_t kLongestName = 4096;
inline constexpr std::size_t kLongestConfig = std::size_t{1} << 20;

/// What holds in a backend where its configuration says nothing else.
struct Defaults {
    bool history = true;     ///< contexts remember their conversation
    bool lenient = false;    ///< see HostOptions
    std::string model_root;  ///< empty: none
};

/// What the bytes of a load are.
enum class Encoding : std::uint8_t {
    any,   ///< GGUF when they begin like it, else ONNX
    onnx,  ///< an ONNX model
};
/// For an encoding of the interfaces that no Encoding is; number: as the C interfaces have it.
inline Error unread_encoding(std::int64_t number) {
    return invalid("encoding {} is not read; ONNX (1), GGML and autodetection (5, 6) are", number);
}

/// How something is loaded. config: JSON, of a language model docs/parameters.md, of a graph GraphLoad.
struct LoadOptions {
    std::string_view config = {};
    bool replaces = false;  ///< a language model takes the first one's place
    std::optional<Target> target = std::nullopt;
};

/// What a backend holds: graphs, which are language models or graphs of tensors, and execution contexts,
/// which are numbered inputs and outputs that use them. Everything is thread-safe; all texts may be any
/// bytes.
class ContextTable {
public:
    /// config: JSON, or empty; above: one that goes over it, and is read leniently where the defaults say so,
    /// as are those of loads and requests. What parameters are unlike their text is logged and in the
    /// warnings of answers.
    static Result<std::unique_ptr<ContextTable>> create(std::string_view config,
                                                        const Defaults& defaults = {},
                                                        std::string_view above = {});
    ~ContextTable();

    /// A file's ending tells what it is: a graph of tensors, see LoadedGraph, or else a language model.
    /// Errors: Code::denied for what the host allows no guest; Code::busy where as many are loaded as may be;
    /// Code::out_of_memory beyond its limits.
    Result<GraphId> load(std::string_view name, const LoadOptions& options);
    Result<GraphId> load(std::string_view name, std::string_view config, bool replaces = false) {
        return load(name, {.config = config, .replaces = replaces});
    }
    Result<GraphId> load_bytes(std::string_view bytes, Encoding encoding, const LoadOptions& options);
    /// Contexts of a language model stay, and their requests fail; those of a graph of tensors are closed.
    Status unload(GraphId graph);
    /// The language model that contexts without a graph of their own use.
    Result<GraphId> first_graph();

    /// Without a session's name the context has a conversation of its own. Graphs of tensors have no
    /// sessions.
    Result<ContextId> open(GraphId graph, std::optional<std::string_view> session = std::nullopt);
    Status close(ContextId context);

    /// Sets an input. For a language model index 0 is the prompt, 1 the context's parameters as JSON, until
    /// they are set again; of a graph of tensors its inputs, in its order.
    Status set_input(ContextId context, std::uint32_t index, const GuestTensor& tensor);
    Status set_input(ContextId context, std::uint32_t index, std::string_view text) {
        return set_input(context, index, text_tensor(text));
    }
    /// Runs with the inputs; outputs can be had until the next input.
    Status compute(ContextId context);
    Result<ContextInfo> info(ContextId context);
    /// set_input, compute and output 0 in one, with parameters above those of input 1. Whatever other threads
    /// do in the context meanwhile, the answer is that of this prompt.
    Result<std::string> run(ContextId context, std::string_view prompt, std::string_view parameters = {});
    /// The same with a prompt and parameters in place of the inputs.
    Result<Answer> infer(ContextId context, std::string_view prompt, std::string_view parameters);
    /// Reads an output. For a language model index 0 is the answer, 1 the metadata: {"error": {"code",
    /// "message"}} when the last call failed; of a graph of tensors its outputs. kDescription describes both.
    /// Of context 0, which is none, 1 is the error of the backend's last call that failed.
    Result<int> read_output(ContextId context, std::uint32_t index, const OutputReader& read);
    Result<std::string> output(ContextId context, std::uint32_t index);

    /// A piece of the answer, whole characters; the first call begins the request. Empty at the end.
    Result<std::optional<std::string>> compute_piece(ContextId context);
    Result<std::string> last_piece(ContextId context);
    /// Gives up what is left of the answer.
    Status end_pieces(ContextId context);

    /// From any thread; what runs in the context, requests that wait for their session, too, ends with
    /// Code::cancelled.
    Status cancel(ContextId context);
    /// All that runs, and what begins later: the end of a backend that others still hold.
    void cancel_all();

    void remember_failure(const Error& error);
    Context::Origin origin_of(ContextId context);

    /// JSON: graphs, sessions, queues, caches, memory.
    std::string statistics();

private:
    explicit ContextTable(HostedModels models) : models_(std::move(models)) {}
    Result<GraphId> load_model(std::string_view name, const LoadOptions& options);
    Status check_room(bool replaces);
    Result<GraphId> keep(GraphId id, std::shared_ptr<LoadedGraph> graph);
    Result<std::shared_ptr<Context>> opened(GraphId graph, std::optional<std::string_view> session);
    Result<std::shared_ptr<Context>> find(ContextId context);
    enum class Forgotten { all, of_tensors };
    void forget_orphans(Forgotten which);

    HostedModels models_;
    std::mutex mutex_;
    std::map<GraphId, std::shared_ptr<LoadedGraph>> graphs_;  // null: a language model, which models_ has
    std::map<ContextId, std::shared_ptr<Context>> contexts_;
    std::optional<Error> last_failure_;
    ContextId next_context_ = 1;
};

}  // namespace headrace::wasi_nn
