#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "llm/log/log_settings.h"
#include "llm/service/reply.h"
#include "llm/service/service.h"

namespace headrace::llm {

/// What cancel ends: a request that waits for its session, or runs.
struct Service::Request {
    std::shared_ptr<Session> session;
    std::atomic<bool> cancelled = false;
    std::shared_ptr<Generation> generation;  // this and the next are of the context's mutex
    std::shared_ptr<Embedding> embedding;
};

/// A request that runs: the engine is held, so that a load that replaces it does not end it.
struct Service::Running {
    std::shared_ptr<Request> request;
    std::shared_ptr<Session> session;
    std::shared_ptr<Engine> engine;
    std::shared_ptr<Generation> generation;
    Clock::time_point arrival = Clock::now();
    Prompt prompt;
    Settings settings;
    Notes load_notes, notes;
    uint64_t prompt_number = 0;
    std::optional<PieceTime> first_piece;
};

struct Service::Context {
    ContextId id;
    GraphId graph;
    std::shared_ptr<Session> session;
    std::mutex mutex;  // of the rest
    std::string prompt, parameters;
    bool has_prompt = false;
    uint64_t prompt_number = 0;  // that it is, of those that were set
    uint64_t request_id = 0;     // of the engine; 0 since an input
    std::optional<Reply> reply;
    std::string piece, piece_metadata;
    std::vector<std::shared_ptr<Request>> requests;
    std::optional<Error> error;  // of the last call
    std::mutex pieces;           // of by_pieces; taken before mutex
    std::optional<Running> by_pieces;

    /// For outputs 0 and 1, in the place of an earlier call's error.
    void keep(Reply made) {
        const std::lock_guard lock(mutex);
        reply = std::move(made);
        error.reset();
    }
};

/// Keeps an error for output 1.
template <class T>
Result<T> Service::noting_error(Context& context, Result<T> result) {
    if (result.ok()) return result;
    const std::lock_guard lock(context.mutex);
    context.error = result.error();
    return result;
}

}  // namespace headrace::llm
