#include "llm/service/requests.h"

#include <algorithm>

#include "base/log.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/parameters.h"
#include "llm/service/ranking.h"

namespace headrace::llm {
namespace {

/// When a request that has not begun by then is given up.
Clock::time_point deadline_of(const RequestInput& input) {
    const RequestSettings& request = input.settings.request;
    Clock::time_point until = Clock::time_point::max();
    for (const std::int64_t limit : {request.timeout_ms, request.queue_timeout_ms})
        if (limit >= 0) until = std::min(until, input.arrival + std::chrono::milliseconds(limit));
    return until;
}

Warnings joined(const Warnings& first, const Warnings& second) {
    Warnings all = first;
    all.insert(all.end(), second.begin(), second.end());
    return all;
}

double per_second(std::int64_t count, double ms) {
    return ms > 0 ? static_cast<double>(count) * 1000.0 / ms : 0.0;
}

Timings timings_of(const Outcome& outcome) {
    const auto generated = static_cast<std::int64_t>(outcome.tokens.size());
    return {
        .queued_ms = outcome.queued_ms,
        .prompt_ms = outcome.prompt_ms,
        .generate_ms = outcome.generate_ms,
        .prompt_per_second = per_second(outcome.prompt_tokens - outcome.cached_tokens, outcome.prompt_ms),
        .generated_per_second = per_second(std::max<std::int64_t>(generated - 1, 0), outcome.generate_ms)};
}

constexpr int kAnySize = 1 << 24;  // tokens of a prompt that is only looked at

void write_texts(std::vector<std::vector<TokenProbability>>& rows, const Model& model) {
    for (auto& row : rows)
        for (TokenProbability& entry : row) entry.text = model.piece(entry.token, true);
}

Result<Prompt> prompt_after(Messages history, const RequestInput& input, const Model& model, int context_size,
                            RequestSettings& request) {
    if (input.messages.empty()) return make_prompt(model, history, input.prompt, context_size, request);
    history.insert(history.end(), input.messages.begin(), input.messages.end());
    return make_prompt(model, std::move(history), context_size, request);
}

bool is_too_long(const Result<Prompt>& prompt, int context_size) {
    if (!prompt.ok()) return prompt.error().code == Code::prompt_too_long;
    return std::cmp_greater_equal(prompt.value().tokens.size(), context_size);
}

/// The settings may be extended by what the chat template wants.
Result<Prompt> prompt_of(RequestInput& input, const Engine& engine, int context_size) {
    if (!input.tokens.empty()) return Prompt{.tokens = input.tokens};
    RequestSettings& request = input.settings.request;
    Messages history = request.previous_messages;
    const bool remembers = history.empty() && request.history;
    if (remembers) history = input.session->messages();
    const Model& model = engine.model();
    if (!remembers || request.drops_oldest || history.empty())
        return prompt_after(std::move(history), input, model, context_size, request);
    RequestSettings alone = request;
    Result<Prompt> prompt = prompt_after(std::move(history), input, model, context_size, request);
    if (!is_too_long(prompt, context_size)) return prompt;
    const Result<Prompt> first = prompt_after({}, input, model, context_size, alone);
    if (!first.ok() || is_too_long(first, context_size)) return prompt;  // it would never fit
    return failure(Code::context_full,
                   "the conversation leaves no room for another message in the context of {} tokens. Begin a "
                   "new one, set drop_oldest to true, or load the model with a larger n_ctx",
                   context_size);
}

/// A request that asks for less of the context than it may have.
Status keep_within(const Prompt& prompt, int room, RequestSettings& request) {
    const int left = room - static_cast<int>(std::min<std::size_t>(prompt.tokens.size(), kAnySize));
    if (left <= 0)
        return failure(Code::prompt_too_long,
                       "the prompt has {} tokens, and the request allows {} of prompt and answer together",
                       prompt.tokens.size(), room);
    request.n_predict = request.n_predict < 0 ? left : std::min(request.n_predict, left);
    return success();
}

headrace::Reply reply_of(const Outcome& outcome, const Prompt& prompt, const Model& model,
                         const RequestSettings& settings) {
    headrace::Reply reply;
    reply.text = outcome.text;
    reply.stop_reason = outcome.reason;
    reply.stop_detail = outcome.detail;
    reply.prompt_tokens = outcome.prompt_tokens;
    reply.cached_tokens = outcome.cached_tokens;
    reply.generated_tokens = static_cast<std::int64_t>(outcome.tokens.size());
    reply.text_tokens = static_cast<std::int64_t>(outcome.text_tokens);
    reply.tokens = outcome.tokens;
    reply.prompt = prompt.tokens;
    reply.probabilities = outcome.probabilities;
    reply.token_probabilities = outcome.token_probabilities;
    write_texts(reply.probabilities, model);
    reply.prompt_probabilities = outcome.prompt_probabilities;
    reply.prompt_token_probabilities = outcome.prompt_token_probabilities;
    write_texts(reply.prompt_probabilities, model);
    reply.drafted_tokens = outcome.drafted;
    reply.accepted_tokens = outcome.accepted;
    reply.pauses = outcome.pauses;
    reply.context_shifts = outcome.shifts;
    reply.dropped_messages = static_cast<std::int64_t>(prompt.dropped);
    reply.timings = timings_of(outcome);
    reply.model = model.description();
    Answer answer = parse_answer(prompt, outcome.text, settings);
    reply.content = std::move(answer.content);
    reply.reasoning = std::move(answer.reasoning);
    if (!reply.reasoning.empty())
        reply.reasoning_tokens =
            std::min(static_cast<std::int64_t>(model.tokenize(reply.reasoning, false, false).size()),
                     reply.generated_tokens);
    reply.tool_calls = std::move(answer.calls);
    return reply;
}

}  // namespace

void ActiveRequest::cancel() {
    cancelled_ = true;
    session_->wake();
    std::shared_ptr<Generation> generation;
    std::shared_ptr<Embedding> embedding;
    {
        const std::lock_guard lock(mutex_);
        generation = generation_;
        embedding = embedding_;
    }
    if (generation) generation->cancel();
    if (embedding) embedding->cancel();
}

void ActiveRequest::runs_as(std::shared_ptr<Generation> generation) {
    const std::lock_guard lock(mutex_);
    generation_ = std::move(generation);
    if (cancelled_) generation_->cancel();
}

void ActiveRequest::runs_as(std::shared_ptr<Embedding> embedding) {
    const std::lock_guard lock(mutex_);
    embedding_ = std::move(embedding);
    if (cancelled_) embedding_->cancel();
}

Result<std::unique_ptr<TextRequest>> Requests::start(RequestInput input) {
    const Clock::time_point until = deadline_of(input);
    HR_ASSIGN(LoadedModel model, models_.usable(input.model, until));
    HR_TRY(model.check_writes_text());
    if (const std::string& name = input.settings.request.session_id; !name.empty()) {
        HR_ASSIGN(input.session, sessions_.open(name));
    }
    const std::shared_ptr<ActiveRequest> active = enlist(input);
    HR_TRY(input.session->enter(input.is_read_by_pieces, {&active->is_cancelled(), until}));
    // From here on its end leaves the session. Not only errors come from below: llama.cpp throws on a text
    // that a vocabulary cannot express.
    std::unique_ptr<TextRequest> request(new TextRequest(std::move(input), std::move(model), active));
    const Status submitted = request->submit();
    log_warnings(request->input_.warnings,
                 {request->input_.session->label(), request->generation_ ? request->id() : std::uint64_t{0}});
    HR_TRY(submitted);
    active->runs_as(request->generation_);
    return request;
}

Status TextRequest::submit() {
    Engine& engine = *model_.runner.engine;
    HR_TRY(adjust(input_.settings, engine.context_size(), engine.model().vocabulary_size(), input_.warnings));
    RequestSettings& request = input_.settings.request;
    warn_of_unused_by_template(engine.model(), request, input_.warnings);
    const int limit = request.most_context,
              room = limit > 0 ? std::min(limit, engine.context_size()) : engine.context_size();
    HR_ASSIGN(prompt_, prompt_of(input_, engine, room));
    if (limit > 0) HR_TRY(keep_within(prompt_, room, request));
    HR_ASSIGN(generation_, engine.submit({.prompt = prompt_.tokens,
                                          .images = prompt_.images,
                                          .settings = request,
                                          .owner = input_.session->owner,
                                          .session = input_.session->label(),
                                          .add_special_pieces = request.echo_special,
                                          .arrival = input_.arrival}));
    return success();
}

Result<Prompt> Requests::render(RequestInput input) const {
    HR_ASSIGN(const LoadedModel model, models_.usable(input.model, deadline_of(input)));
    HR_TRY(model.check_writes_text());
    return prompt_of(input, *model.runner.engine, kAnySize);
}

Result<Generation::Piece> TextRequest::next() {
    HR_ASSIGN(Generation::Piece piece, generation_->next());
    write_texts(piece.probabilities, model_.runner.model());
    return piece;
}

Parameters TextRequest::parameters() const { return request_parameters(input_.settings); }

TextRequest::~TextRequest() {
    if (!active_) return;
    if (generation_) generation_->cancel();
    input_.session->leave();
}

headrace::Reply TextRequest::end() {
    const Outcome& outcome = generation_->wait();
    headrace::Reply reply = reply_of(outcome, prompt_, model_.runner.model(), settings());
    reply.warnings = joined(model_.warnings, input_.warnings);
    if (prompt_.chat && settings().history && !outcome.failed()) {
        Messages messages = std::move(prompt_.messages);
        messages.push_back({"assistant", outcome.text});
        trim_history(messages, input_.settings.session.max_history);
        input_.session->remember(std::move(messages));
    }
    active_.reset();
    input_.session->leave();
    return reply;
}

Status TextRequest::status() const {
    const Outcome& outcome = generation_->wait();
    if (outcome.failed()) return outcome.error();
    return success();
}

Result<std::unique_ptr<VectorRequest>> Requests::start_vectors(RequestInput input,
                                                               std::vector<std::string> texts,
                                                               std::optional<std::string_view> query) {
    HR_ASSIGN(LoadedModel model, models_.usable(input.model, deadline_of(input)));
    std::vector<Tokens> tokens;
    if (const Embedder* embedder = model.runner.embedder.get(); embedder && query) {
        HR_ASSIGN(tokens, ranking_inputs(embedder->model(), *query, texts, embedder->longest()));
        texts.clear();
    }
    return submit_vectors(std::move(input), std::move(model), std::move(texts), std::move(tokens));
}

Result<std::unique_ptr<VectorRequest>> Requests::start_vectors(RequestInput input,
                                                               std::vector<Tokens> sequences) {
    HR_ASSIGN(LoadedModel model, models_.usable(input.model, deadline_of(input)));
    return submit_vectors(std::move(input), std::move(model), {}, std::move(sequences));
}

Result<std::unique_ptr<VectorRequest>> Requests::submit_vectors(RequestInput input, LoadedModel model,
                                                                std::vector<std::string> texts,
                                                                std::vector<Tokens> tokens) {
    Embedder* embedder = model.runner.embedder.get();
    if (!embedder) return unsupported("{} gives text, and no embeddings", model.name);
    const std::shared_ptr<ActiveRequest> active = enlist(input);
    std::unique_ptr<VectorRequest> request(new VectorRequest(std::move(input), std::move(model), active));
    const RequestInput& own = request->input_;
    HR_ASSIGN(request->embedding_, embedder->submit({.texts = std::move(texts),
                                                     .tokens = std::move(tokens),
                                                     .settings = own.settings.request,
                                                     .owner = own.session->owner,
                                                     .arrival = own.arrival}));
    active->runs_as(request->embedding_);
    log_warnings(own.warnings, {own.session->label(), request->id()});
    return request;
}

Warnings VectorRequest::warnings() const { return joined(model_.warnings, input_.warnings); }

std::shared_ptr<ActiveRequest> Requests::enlist(const RequestInput& input) {
    auto request = std::make_shared<ActiveRequest>(input.group, input.session);
    const std::lock_guard lock(mutex_);
    std::erase_if(active_, [](const auto& other) { return other.expired(); });
    active_.push_back(request);
    if (closed_) request->cancel();
    return request;
}

std::vector<std::shared_ptr<ActiveRequest>> Requests::active(std::optional<const void*> group) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<ActiveRequest>> found;
    for (const auto& weak : active_)
        if (auto request = weak.lock(); request && (!group || request->group() == *group))
            found.push_back(std::move(request));
    return found;
}

void Requests::cancel(const void* group) {
    for (const auto& request : active(group)) request->cancel();
}

void Requests::cancel_all() {
    for (const auto& request : active(std::nullopt)) request->cancel();
}

void Requests::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    cancel_all();
}

bool Requests::has_any(const void* group) const { return !active(group).empty(); }

}  // namespace headrace::llm
