// A service's requests: from a prompt in a context to its reply.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "llm/parameters/parameters.h"
#include "llm/service/load_notes.h"
#include "llm/service/reply.h"
#include "llm/service/service_state.h"

namespace headrace::llm {
namespace {

/// When a request that has not begun by then is given up.
Clock::time_point deadline_of(const RequestSettings& request, Clock::time_point arrival) {
    Clock::time_point until = Clock::time_point::max();
    for (const int64_t limit : {request.timeout_ms, request.queue_timeout_ms})
        if (limit >= 0) until = std::min(until, arrival + std::chrono::milliseconds(limit));
    return until;
}

Status add_parameters(Settings& settings, std::string_view json, Level level, Notes& notes) {
    if (json.empty()) return success();
    Result<Settings> changed = with_parameters(settings, json, level, notes);
    if (changed.ok()) {
        settings = std::move(changed).value();
    } else if (nlohmann::json::accept(json)) {
        return changed.error();
    } else {
        // Embedders of the first backends send options that are no JSON, and expect the defaults.
        notes.push_back(defaults_note(changed.error()));
    }
    return success();
}

/// Puts the parameters of a context and, above them, those of one request over the model's.
Status add_parameters(Settings& settings, const Service::Parameters& parameters, Notes& notes) {
    HR_TRY(add_parameters(settings, parameters.session, Level::session, notes));
    return add_parameters(settings, parameters.request, Level::request, notes);
}

}  // namespace

/// Enters the session and submits the prompt. On an error the session is left.
Result<Service::Running> Service::begin(Context& context, std::string_view prompt,
                                        const Parameters& parameters, bool by_pieces) {
    HR_ASSIGN(const Graph graph, graph_of(context.graph));
    if (!graph.runner.engine) return unsupported("{} gives embeddings, and no text", graph.name);
    Running running{.session = context.session, .engine = graph.runner.engine, .settings = graph.settings};
    running.load_notes = graph.notes;
    HR_TRY(add_parameters(running.settings, parameters, running.notes));
    HR_ASSIGN(const Graph usable,
              usable_graph(context.graph, deadline_of(running.settings.request, running.arrival)));
    running.engine = usable.runner.engine;
    if (const std::string& name = running.settings.request.session_id; !name.empty()) {
        HR_ASSIGN(running.session, sessions_.open(name));
    }
    register_request(context, running);
    const auto forget = [&](Running* failed) { forget_request(context, *failed); };
    std::unique_ptr<Running, decltype(forget)> registered(&running, forget);
    HR_TRY(running.session->enter(
        by_pieces, {&running.request->cancelled, deadline_of(running.settings.request, running.arrival)}));
    // Not only errors come from there: llama.cpp throws on a text that a vocabulary cannot express.
    const auto leave = [](Session* session) { session->leave(); };
    std::unique_ptr<Session, decltype(leave)> entered(running.session.get(), leave);
    HR_TRY(submit(running, prompt));
    const std::lock_guard lock(context.mutex);
    running.request->generation = running.generation;
    context.request_id = running.generation->id();
    if (running.request->cancelled) running.generation->cancel();
    entered.release();
    registered.release();
    return running;
}

void Service::register_request(Context& context, Running& running) {
    running.request = std::make_shared<Request>();
    running.request->session = running.session;
    const std::lock_guard lock(context.mutex);
    context.request_id = 0;
    running.request->cancelled = closing_.load();
    context.requests.push_back(running.request);
}

void Service::forget_request(Context& context, const Running& running) {
    const std::lock_guard lock(context.mutex);
    std::erase(context.requests, running.request);
}

Status Service::submit(Running& running, std::string_view prompt) {
    const Status status = submit_prompt(running, prompt);
    log_notes(running.notes,
              {running.session->label(), running.generation ? running.generation->id() : uint64_t{0}});
    return status;
}

Status Service::submit_prompt(Running& running, std::string_view prompt) {
    Engine& engine = *running.engine;
    HR_TRY(adjust(running.settings, engine.context_size(), engine.model().vocabulary_size(), running.notes));
    note_unused_by_template(engine.model(), running.settings.request, running.notes);
    RequestSettings& request = running.settings.request;
    Messages history = request.previous_messages;
    if (history.empty() && request.history) history = running.session->messages();
    HR_ASSIGN(running.prompt, make_prompt(engine.model(), history, prompt, engine.context_size(), request));
    HR_ASSIGN(running.generation, engine.submit({.prompt = running.prompt.tokens,
                                                 .settings = request,
                                                 .owner = running.session->owner,
                                                 .session = running.session->label(),
                                                 .add_special_pieces = request.echo_special,
                                                 .arrival = running.arrival}));
    return success();
}

/// Waits for the end, remembers the answer, and says how it went.
Reply Service::end(Context& context, Running& running) {
    const Outcome& outcome = running.generation->wait();
    forget_request(context, running);
    const RequestSettings& request = running.settings.request;
    if (running.prompt.chat && request.history && !outcome.failed()) {
        Messages messages = running.prompt.messages;
        messages.push_back({"assistant", outcome.text});
        trim_history(messages, running.settings.session.max_history);
        running.session->remember(std::move(messages));
    }
    running.session->leave();
    Notes notes = notes_;
    notes.insert(notes.end(), running.load_notes.begin(), running.load_notes.end());
    notes.insert(notes.end(), running.notes.begin(), running.notes.end());
    return {outcome.text, metadata_of(outcome, running.prompt, running.engine->model(), request, notes)};
}

Result<Reply> Service::infer(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return infer(*context, prompt, {.session = {}, .request = parameters});
}

Result<Reply> Service::infer(Context& context, std::string_view prompt, const Parameters& parameters) {
    sessions_.close_idle();
    HR_ASSIGN(const Graph graph, graph_of(context.graph));
    if (graph.runner.embedder) return embed(context, graph, prompt, parameters);
    HR_ASSIGN(Running running, begin(context, prompt, parameters, false));
    Reply reply = end(context, running);
    const Outcome& outcome = running.generation->wait();
    if (outcome.failed()) return Error{outcome.code, outcome.detail};
    return reply;
}

Result<Reply> Service::embed(Context& context, const Graph& graph, std::string_view text,
                             const Parameters& parameters) {
    Running running{.session = context.session, .settings = graph.settings};
    HR_TRY(add_parameters(running.settings, parameters, running.notes));
    const RequestSettings& request = running.settings.request;
    HR_ASSIGN(const Graph usable, usable_graph(context.graph, deadline_of(request, running.arrival)));
    Embedder* embedder = usable.runner.embedder.get();
    if (!embedder) return unsupported("{} gives text, and no embeddings", usable.name);
    register_request(context, running);
    const auto forget = [&](Running* ended) { forget_request(context, *ended); };
    const std::unique_ptr<Running, decltype(forget)> registered(&running, forget);
    HR_ASSIGN(const std::shared_ptr<Embedding> embedding, embedder->submit({.texts = {std::string(text)},
                                                                            .settings = request,
                                                                            .owner = running.session->owner,
                                                                            .arrival = running.arrival}));
    {
        const std::lock_guard lock(context.mutex);
        running.request->embedding = embedding;
        context.request_id = embedding->id();
        if (running.request->cancelled) embedding->cancel();
    }
    log_notes(running.notes, {running.session->label(), embedding->id()});
    HR_ASSIGN(const auto vectors, embedding->wait());
    Notes notes = notes_;
    notes.insert(notes.end(), usable.notes.begin(), usable.notes.end());
    notes.insert(notes.end(), running.notes.begin(), running.notes.end());
    return Reply{embedding_json(vectors.front(), embedder->pools()),
                 embedding_metadata(static_cast<int>(embedding->token_count()), notes)};
}

Result<Reply> Service::infer_inputs(Context& context) {
    std::string prompt, session;
    {
        const std::lock_guard lock(context.mutex);
        context.reply.reset();
        if (!context.has_prompt) return failure(Code::invalid_state, "input 0, the prompt, was not set");
        prompt = context.prompt;
        session = context.parameters;
    }
    return infer(context, prompt, {.session = session, .request = {}});
}

Status Service::compute(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_ASSIGN(Reply reply, noting_error(*context, infer_inputs(*context)));
    context->keep(std::move(reply));
    return success();
}

Result<std::string> Service::run(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(set_input(id, 0, prompt));
    std::string session;
    {
        const std::lock_guard lock(context->mutex);
        session = context->parameters;
    }
    HR_ASSIGN(Reply reply,
              noting_error(*context, infer(*context, prompt, {.session = session, .request = parameters})));
    std::string answer = reply.text;
    context->keep(std::move(reply));
    return answer;
}

Status Service::cancel(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    std::vector<std::shared_ptr<Request>> requests;
    std::vector<std::shared_ptr<Generation>> generations;
    std::vector<std::shared_ptr<Embedding>> embeddings;
    {
        const std::lock_guard lock(context->mutex);
        requests = context->requests;
        for (const auto& request : requests) {
            request->cancelled = true;
            if (request->generation) generations.push_back(request->generation);
            if (request->embedding) embeddings.push_back(request->embedding);
        }
    }
    for (const auto& request : requests) request->session->wake();
    for (const auto& generation : generations) generation->cancel();
    for (const auto& embedding : embeddings) embedding->cancel();
    return success();
}

}  // namespace headrace::llm
