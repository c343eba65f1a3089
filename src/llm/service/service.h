#pragma once
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/engine/registry.h"
#include "llm/notes.h"
#include "llm/service/conversation.h"
#include "llm/service/guest_names.h"
#include "llm/service/sessions.h"
#include "llm/settings.h"

namespace headrace::llm {

/// A request's answer. metadata: JSON with token counts, the reason of the end, times and notes on
/// parameters.
struct Reply {
    std::string text;
    std::string metadata;
};

/// What a door's instance holds: graphs (loaded models) and execution contexts (sessions that use them).
/// Everything is thread-safe; all texts may be any bytes. This is the lane's whole surface towards doors and
/// the command line.
class Service {
public:
    using GraphId = uint32_t;
    using ContextId = uint32_t;
    /// JSON texts: input 1 of a context, and what one request puts over it.
    struct Parameters {
        std::string_view session, request;
    };

    /// config: JSON, or empty; above: one that goes over it, and is read leniently where the defaults say so,
    /// as are those of loads and requests: see with_parameters. What parameters are unlike their text is
    /// logged and in the notes of replies.
    static Result<std::unique_ptr<Service>> create(std::string_view config, const Settings& defaults = {},
                                                   std::string_view above = {});
    ~Service();

    /// replace: whether a load takes the place of the service's first graph when nothing else is said:
    /// running requests finish on the old model, later ones use the new one; a failed load changes nothing.
    Result<GraphId> load(std::string_view name, std::string_view config, bool replace = false);
    Result<GraphId> load_bytes(std::string_view bytes, std::string_view config, bool replace = false);
    Status unload(GraphId graph);

    /// Without a session's name the context has a conversation of its own.
    Result<ContextId> open(GraphId graph, std::optional<std::string_view> session = std::nullopt);
    Status close(ContextId context);

    /// Index 0 is the prompt, 1 the context's parameters as JSON, until they are set again.
    Status set_input(ContextId context, uint32_t index, std::string_view bytes);
    /// Runs the prompt with input 1's parameters; the reply can be had from output until the next input.
    Status compute(ContextId context);
    /// set_input, compute and output 0 in one, with parameters above those of input 1. Whatever other threads
    /// do in the context meanwhile, the answer is that of this prompt.
    Result<std::string> run(ContextId context, std::string_view prompt, std::string_view parameters = {});
    /// Index 0 is the answer, 1 the metadata: {"error": {"code", "message"}} when the last call failed.
    /// Of context 0, which is none, 1 is the error of the service's last call that failed.
    Result<std::string> output(ContextId context, uint32_t index);
    void remember_failure(const Error& error);
    /// The session of a context and its request that ran last since an input, for the log; empty and 0 for
    /// none.
    struct Origin {
        std::string session;
        uint64_t request = 0;
    };
    Origin origin_of(ContextId context);

    /// The same with a prompt and parameters in place of the inputs.
    Result<Reply> infer(ContextId context, std::string_view prompt, std::string_view parameters);

    /// A piece of the answer, whole characters; the first call begins the request. Empty at the end.
    Result<std::optional<std::string>> compute_piece(ContextId context);
    Result<std::string> last_piece(ContextId context);
    /// Gives up what is left of the answer.
    Status end_pieces(ContextId context);

    /// From any thread; the context's requests, those that wait for their session, too, end with
    /// Code::cancelled.
    Status cancel(ContextId context);
    /// All requests that run, and those that begin later: the end of a service that others still hold.
    void cancel_all();

    /// JSON: graphs, sessions, queues, caches, memory.
    std::string statistics();
    /// The graph that sessions without one of their own use.
    Result<GraphId> first_graph();
    const Settings& settings() const { return settings_; }

private:
    struct Graph {
        Runner runner;
        Settings settings;
        std::string name;
        std::string path;  ///< empty: the weights were given as bytes
        Notes notes;       ///< of the load, for every reply
        GuestNames names;
    };
    struct Context;
    struct Request;
    struct Running;

    Service(Settings settings, Notes notes);
    Result<GraphId> add_graph(Graph graph, bool replace);
    Result<Settings> load_settings(std::string_view config, Notes& notes, GuestNames& names) const;
    Result<std::string> confined_path(std::string_view name) const;
    Result<std::shared_ptr<Context>> find(ContextId context);
    Result<Graph> graph_of(GraphId graph);
    void forget_orphans();
    Result<Graph> usable_graph(GraphId graph, Clock::time_point until);
    Status load_again(GraphId id, const Graph& lost);
    Result<Reply> infer_inputs(Context& context);
    Result<Reply> infer(Context& context, std::string_view prompt, const Parameters& parameters);
    Result<Running> begin(Context& context, std::string_view prompt, const Parameters& parameters,
                          bool by_pieces);
    void register_request(Context& context, Running& running);
    static void forget_request(Context& context, const Running& running);
    Status submit(Running& running, std::string_view prompt);
    Status submit_prompt(Running& running, std::string_view prompt);
    Result<Running> begin_with_inputs(Context& context);
    void finish_pieces(Context& context);
    Reply end(Context& context, Running& running);
    template <class T>
    Result<T> noting_error(Context& context, Result<T> result);
    Result<Reply> embed(Context& context, const Graph& graph, std::string_view text,
                        const Parameters& parameters);

    Settings settings_;
    Notes notes_;
    std::mutex mutex_;
    std::map<GraphId, Graph> graphs_;
    std::map<ContextId, std::shared_ptr<Context>> contexts_;
    Sessions sessions_;
    std::optional<Error> last_failure_;
    uint32_t next_graph_ = 0, next_context_ = 1;
    std::atomic<bool> closing_{false};
    std::map<GraphId, std::shared_future<Status>> reloads_;  // ended before the rest goes
};

}  // namespace headrace::llm
