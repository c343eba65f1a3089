#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "headrace/hosted_models.h"

namespace headrace::wasi_nn {

using ContextId = std::uint32_t;
using GraphId = HostedModels::Id;

/// What a context's outputs are. metadata: JSON with token counts, the reason of the end, times and warnings.
struct Answer {
    std::string text;
    std::string metadata;
};

/// What holds in a backend where its configuration says nothing else.
struct Defaults {
    bool history = true;     ///< contexts remember their conversation
    bool lenient = false;    ///< see HostOptions
    std::string model_root;  ///< empty: none
};

/// What a backend holds: graphs, which are loaded models, and execution contexts, which are numbered inputs
/// and outputs of sessions that use them. Everything is thread-safe; all texts may be any bytes.
class ContextTable {
public:
    /// JSON texts: input 1 of a context, and what one request puts over it.
    struct Texts {
        std::string_view context, request;
    };

    /// config: JSON, or empty; above: one that goes over it, and is read leniently where the defaults say so,
    /// as are those of loads and requests. What parameters are unlike their text is logged and in the
    /// warnings of answers.
    static Result<std::unique_ptr<ContextTable>> create(std::string_view config,
                                                        const Defaults& defaults = {},
                                                        std::string_view above = {});
    ~ContextTable();

    Result<GraphId> load(std::string_view name, std::string_view config, bool replaces = false);
    Result<GraphId> load_bytes(std::string_view bytes, std::string_view config, bool replaces = false);
    Status unload(GraphId graph);
    /// The graph that contexts without one of their own use.
    Result<GraphId> first_graph();

    /// Without a session's name the context has a conversation of its own.
    Result<ContextId> open(GraphId graph, std::optional<std::string_view> session = std::nullopt);
    Status close(ContextId context);

    /// Index 0 is the prompt, 1 the context's parameters as JSON, until they are set again.
    Status set_input(ContextId context, std::uint32_t index, std::string_view bytes);
    /// Runs the prompt with input 1's parameters; the answer can be had from output until the next input.
    Status compute(ContextId context);
    /// set_input, compute and output 0 in one, with parameters above those of input 1. Whatever other threads
    /// do in the context meanwhile, the answer is that of this prompt.
    Result<std::string> run(ContextId context, std::string_view prompt, std::string_view parameters = {});
    /// The same with a prompt and parameters in place of the inputs.
    Result<Answer> infer(ContextId context, std::string_view prompt, std::string_view parameters);
    /// Index 0 is the answer, 1 the metadata: {"error": {"code", "message"}} when the last call failed.
    /// Of context 0, which is none, 1 is the error of the backend's last call that failed.
    Result<std::string> output(ContextId context, std::uint32_t index);

    /// A piece of the answer, whole characters; the first call begins the request. Empty at the end.
    Result<std::optional<std::string>> compute_piece(ContextId context);
    Result<std::string> last_piece(ContextId context);
    /// Gives up what is left of the answer.
    Status end_pieces(ContextId context);

    /// From any thread; the context's requests, those that wait for their session, too, end with
    /// Code::cancelled.
    Status cancel(ContextId context);
    /// All requests that run, and those that begin later: the end of a backend that others still hold.
    void cancel_all() { models_.close(); }

    void remember_failure(const Error& error);
    /// The session of a context and its request that ran last since an input, for the log; empty and 0 for
    /// none.
    struct Origin {
        std::string session;
        std::uint64_t request = 0;
    };
    Origin origin_of(ContextId context);

    /// JSON: graphs, sessions, queues, caches, memory.
    std::string statistics();

private:
    struct Context;

    explicit ContextTable(HostedModels models) : models_(std::move(models)) {}
    Result<std::shared_ptr<Context>> find(ContextId context);
    void forget_orphans();
    Status start_pieces(Context& context);
    Status finish_pieces(Context& context);
    Result<Answer> answer_inputs(Context& context);

    HostedModels models_;
    std::mutex mutex_;
    std::map<ContextId, std::shared_ptr<Context>> contexts_;
    std::optional<Error> last_failure_;
    ContextId next_context_ = 1;
};

}  // namespace headrace::wasi_nn
