#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/service/answer.h"
#include "llm/service/conversation.h"
#include "llm/service/model_slots.h"
#include "llm/service/sessions.h"

namespace headrace::llm {

/// What a request asks for, all its parameters applied.
struct RequestInput {
    ModelSlots::Id model = 0;
    const void* group = nullptr;  ///< whose requests are cancelled together; null: the session's
    std::shared_ptr<Session> session;
    Settings settings;
    Warnings warnings;  ///< of the parameters
    std::string prompt;
    Messages messages;  ///< in place of a prompt: the last is to be answered
    Tokens tokens;      ///< in place of both
    bool is_read_by_pieces = false;
    Clock::time_point arrival = Clock::now();  ///< from which its timeouts count
};

/// What others see of a request that waits or runs: what cancel ends.
class ActiveRequest {
public:
    ActiveRequest(const void* group, std::shared_ptr<Session> session)
        : group_(group ? group : session.get()), session_(std::move(session)) {}

    const void* group() const { return group_; }
    const std::atomic<bool>& is_cancelled() const { return cancelled_; }
    /// From any thread: it ends with Code::cancelled, wherever it is.
    void cancel();

    void runs_as(std::shared_ptr<Generation> generation);
    void runs_as(std::shared_ptr<Embedding> embedding);

private:
    const void* const group_;
    const std::shared_ptr<Session> session_;
    std::atomic<bool> cancelled_ = false;
    std::mutex mutex_;
    std::shared_ptr<Generation> generation_;
    std::shared_ptr<Embedding> embedding_;
};

/// A text that is being written. It holds its session and the engine, so that a load that replaces the model
/// does not end it. One that is given up before `end` is cancelled, and its session forgets it.
class TextRequest {
public:
    ~TextRequest();
    TextRequest(const TextRequest&) = delete;
    TextRequest& operator=(const TextRequest&) = delete;

    /// The engine's number of it.
    std::uint64_t id() const { return generation_->id(); }
    const RequestSettings& settings() const { return input_.settings.request; }
    Parameters parameters() const;
    /// Waits for more text; `done` and none at the end.
    Result<Generation::Piece> next();
    /// What the prompt's template makes of the answer.
    AnswerReader answer_reader() const { return AnswerReader(prompt_, settings()); }
    bool wait_for(std::chrono::milliseconds patience) { return generation_->wait_for(patience); }
    /// From any thread, also after the end.
    void cancel() { generation_->cancel(); }
    /// Waits for the end, lets the session remember the answer and leaves it; once. The reply of
    /// a request that failed has what was generated before.
    headrace::Reply end();
    /// Whether it failed, was cancelled, or had no time left; after `end`.
    Status status() const;

private:
    friend class Requests;
    TextRequest(RequestInput input, LoadedModel model, std::shared_ptr<ActiveRequest> active)
        : input_(std::move(input)), model_(std::move(model)), active_(std::move(active)) {}
    Status submit();

    RequestInput input_;
    LoadedModel model_;
    std::shared_ptr<ActiveRequest> active_;  // none after the end
    Prompt prompt_;
    std::shared_ptr<Generation> generation_;
};

/// Vectors of texts that are being computed.
class VectorRequest {
public:
    std::uint64_t id() const { return embedding_->id(); }
    /// Waits for all of them; once.
    Result<std::vector<TextVectors>> wait() { return embedding_->wait(); }
    std::size_t token_count() const { return embedding_->token_count(); }
    /// Whether a text has one vector, and not one for each token.
    bool pools() const { return model_.runner.embedder->pools(); }
    /// Those of the load and of the request.
    Warnings warnings() const;

private:
    friend class Requests;
    VectorRequest(RequestInput input, LoadedModel model, std::shared_ptr<ActiveRequest> active)
        : input_(std::move(input)), model_(std::move(model)), active_(std::move(active)) {}

    RequestInput input_;
    LoadedModel model_;
    std::shared_ptr<ActiveRequest> active_;
    std::shared_ptr<Embedding> embedding_;
};

/// Requests to models in slots, from their input to their reply. Thread-safe.
class Requests {
public:
    Requests(ModelSlots& models, Sessions& sessions) : models_(models), sessions_(sessions) {}

    /// Waits for the model and the session, and hands the prompt to the engine.
    Result<std::unique_ptr<TextRequest>> start(RequestInput input);
    /// Hands texts to the embedder, or, with a query, documents to rank; input.prompt and messages are not
    /// looked at.
    Result<std::unique_ptr<VectorRequest>> start_vectors(RequestInput input, std::vector<std::string> texts,
                                                         std::optional<std::string_view> query = {});
    /// The same of texts that are tokens already.
    Result<std::unique_ptr<VectorRequest>> start_vectors(RequestInput input, std::vector<Tokens> sequences);

    /// The prompt that such a request would have, with no regard to the context's size.
    Result<Prompt> render(RequestInput input) const;

    void cancel(const void* group);
    void cancel_all();
    /// Those that begin later, too.
    void close();
    bool has_any(const void* group) const;

private:
    Result<std::unique_ptr<VectorRequest>> submit_vectors(RequestInput input, LoadedModel model,
                                                          std::vector<std::string> texts,
                                                          std::vector<Tokens> tokens);
    std::shared_ptr<ActiveRequest> enlist(const RequestInput& input);
    std::vector<std::shared_ptr<ActiveRequest>> active(std::optional<const void*> group) const;

    ModelSlots& models_;
    Sessions& sessions_;
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<ActiveRequest>> active_;
    bool closed_ = false;
};

}  // namespace headrace::llm
