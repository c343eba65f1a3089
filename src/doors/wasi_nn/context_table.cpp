#include "doors/wasi_nn/context_table.h"

#include <nlohmann/json.hpp>

#include "doors/wasi_nn/metadata_json.h"

namespace headrace::wasi_nn {
namespace {

/// A call of the public API, whose errors are exceptions. What else is thrown is its caller's.
template <class Call>
auto caught(Call call) -> Result<decltype(call())> {
    try {
        return call();
    } catch (const Exception& e) {
        return Error{e.code(), e.what(), e.parameter()};
    }
}

/// Whether a request has a parameter, which is a truth value.
bool is_set(const Generation& generation, std::string_view name) {
    return std::get<bool>(*generation.parameters().find(name));
}

GivenParameters parameters_of(std::string_view json) {
    GivenParameters given = GivenParameters::from_json(json);
    if (!given.mistake || nlohmann::json::accept(json)) return given;
    // Embedders of the first backends send options that are no JSON, and expect the defaults.
    return {.warnings = {{"parameters", std::string(given.mistake->what()) + "; the defaults are used"}}};
}

/// Runs a prompt, or reads a text of a model that gives vectors.
Result<Answer> answer(HostedConversation& conversation, std::string_view prompt,
                      const ContextTable::Texts& texts) {
    return caught([&] {
        const GivenParameters context = parameters_of(texts.context), request = parameters_of(texts.request);
        if (conversation.gives_vectors()) {
            const Embeddings made = conversation.embed(prompt, context, request);
            return Answer{vectors_json(made), vectors_metadata_json(made)};
        }
        Generation generation = conversation.start(prompt, context, request, false);
        const Reply reply = generation.end();
        generation.check();
        return Answer{reply.text, metadata_json(reply, is_set(generation, "return_tokens"))};
    });
}

}  // namespace

struct ContextTable::Context {
    explicit Context(HostedConversation opened) : conversation(std::move(opened)) {}

    HostedConversation conversation;
    std::mutex mutex;  // of what follows, up to error
    std::string prompt, parameters;
    bool has_prompt = false;
    std::uint64_t prompt_number = 0;    // that it is, of those that were set
    std::uint64_t earlier_request = 0;  // the latest one when an input was set
    std::optional<Answer> answer;
    std::string piece, piece_metadata;
    std::optional<Error> error;  // of the last call

    std::mutex pieces;  // of what follows; taken before mutex
    std::optional<Generation> by_pieces;
    std::uint64_t pieces_prompt_number = 0;
    bool tells_speed = false;  // beside every piece
    std::optional<PieceTime> first_piece;

    /// For outputs 0 and 1, in the place of an earlier call's error.
    void keep(Answer made) {
        const std::lock_guard lock(mutex);
        answer = std::move(made);
        error.reset();
    }
    /// Keeps an error for output 1.
    template <class T>
    Result<T> noting_error(Result<T> result) {
        if (result.ok()) return result;
        const std::lock_guard lock(mutex);
        error = result.error();
        return result;
    }
};

ContextTable::~ContextTable() { cancel_all(); }

Result<std::unique_ptr<ContextTable>> ContextTable::create(std::string_view config, const Defaults& defaults,
                                                           std::string_view above) {
    HostOptions options{.defaults = {{"history", defaults.history}}, .lenient = defaults.lenient};
    if (!defaults.model_root.empty()) options.defaults.set("model_root", defaults.model_root);
    if (!config.empty()) options.own = GivenParameters::from_json(config);
    if (!above.empty()) options.above = GivenParameters::from_json(above);
    HR_ASSIGN(HostedModels models, caught([&] { return HostedModels(options); }));
    return std::unique_ptr<ContextTable>(new ContextTable(std::move(models)));
}

// Graphs.

Result<GraphId> ContextTable::load(std::string_view name, std::string_view config, bool replaces) {
    return caught([&] { return models_.load(name, GivenParameters::from_json(config), replaces); });
}

Result<GraphId> ContextTable::load_bytes(std::string_view bytes, std::string_view config, bool replaces) {
    return caught([&] { return models_.load_bytes(bytes, GivenParameters::from_json(config), replaces); });
}

Status ContextTable::unload(GraphId graph) {
    return caught([&] {
        models_.unload(graph);
        return std::monostate();
    });
}

Result<GraphId> ContextTable::first_graph() {
    return caught([&] { return models_.first(); });
}

// Contexts.

Result<ContextId> ContextTable::open(GraphId graph, std::optional<std::string_view> session) {
    const auto open = [&] { return models_.open(graph, session); };
    Result<HostedConversation> opened = caught(open);
    const bool is_anonymous = !session || session->empty();
    if (!opened.ok() && opened.error().code == Code::busy && is_anonymous) {
        forget_orphans();
        opened = caught(open);
    }
    HR_ASSIGN(HostedConversation conversation, std::move(opened));
    const std::lock_guard lock(mutex_);
    const ContextId id = next_context_++;
    contexts_[id] = std::make_shared<Context>(std::move(conversation));
    return id;
}

/// Guests cannot close contexts: those of unloaded graphs, unless a request still runs there, are no use.
void ContextTable::forget_orphans() {
    std::vector<std::shared_ptr<Context>> gone;
    {
        const std::lock_guard lock(mutex_);
        for (auto entry = contexts_.begin(); entry != contexts_.end();) {
            const HostedConversation& conversation = entry->second->conversation;
            const bool is_orphan = !conversation.has_model() && !conversation.has_requests();
            if (is_orphan) gone.push_back(entry->second);
            entry = is_orphan ? contexts_.erase(entry) : std::next(entry);
        }
    }
    for (const auto& context : gone) context->conversation.close();
}

Result<std::shared_ptr<ContextTable::Context>> ContextTable::find(ContextId context) {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(context);
    if (found == contexts_.end())
        return failure(Code::not_found, "there is no execution context {}; it was closed or never opened",
                       context);
    return found->second;
}

Status ContextTable::close(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(cancel(id));
    HR_TRY(end_pieces(id));
    {
        const std::lock_guard lock(mutex_);
        if (contexts_.erase(id) == 0)
            return failure(Code::not_found, "execution context {} is closed already", id);
    }
    context->conversation.close();
    return success();
}

// Inputs and outputs.

Status ContextTable::set_input(ContextId id, std::uint32_t index, std::string_view bytes) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    if (index == 0) {
        context->prompt = bytes;
        context->has_prompt = true;
        ++context->prompt_number;
    } else if (index == 1) {
        context->parameters = bytes;
    } else {
        return invalid("there is no input {}: 0 is the prompt, 1 parameters as JSON", index);
    }
    context->answer.reset();
    context->error.reset();
    context->earlier_request = context->conversation.latest_request();
    return success();
}

Result<std::string> ContextTable::output(ContextId id, std::uint32_t index) {
    if (id == 0 && index == 1) {
        const std::lock_guard lock(mutex_);
        if (last_failure_) return error_json(*last_failure_);
    }
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    if (index == 1 && context->error) return error_json(*context->error);
    if (index == 1 && !context->piece_metadata.empty()) return context->piece_metadata;
    if (!context->answer) return failure(Code::invalid_state, "nothing was computed since the last input");
    if (index > 1) return invalid("there is no output {}: 0 is the answer, 1 its metadata as JSON", index);
    return index == 0 ? context->answer->text : context->answer->metadata;
}

// Whole answers.

Status ContextTable::compute(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_ASSIGN(Answer made, context->noting_error(answer_inputs(*context)));
    context->keep(std::move(made));
    return success();
}

Result<std::string> ContextTable::run(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(set_input(id, 0, prompt));
    std::string own;
    {
        const std::lock_guard lock(context->mutex);
        own = context->parameters;
    }
    HR_ASSIGN(Answer made, context->noting_error(answer(context->conversation, prompt,
                                                        {.context = own, .request = parameters})));
    std::string text = made.text;
    context->keep(std::move(made));
    return text;
}

Result<Answer> ContextTable::infer(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return answer(context->conversation, prompt, {.context = {}, .request = parameters});
}

Result<Answer> ContextTable::answer_inputs(Context& context) {
    std::string prompt, parameters;
    {
        const std::lock_guard lock(context.mutex);
        context.answer.reset();
        if (!context.has_prompt) return failure(Code::invalid_state, "input 0, the prompt, was not set");
        prompt = context.prompt;
        parameters = context.parameters;
    }
    return answer(context.conversation, prompt, {.context = parameters, .request = {}});
}

// Answers piece by piece.

Status ContextTable::start_pieces(Context& context) {
    std::string prompt, parameters;
    {
        const std::lock_guard lock(context.mutex);
        if (!context.has_prompt) return failure(Code::invalid_state, "input 0, the prompt, was not set");
        prompt = context.prompt;
        parameters = context.parameters;
        context.pieces_prompt_number = context.prompt_number;
    }
    context.first_piece.reset();
    return caught([&] {
        context.by_pieces = context.conversation.start(prompt, parameters_of(parameters), {}, true);
        context.tells_speed = is_set(*context.by_pieces, "timings_per_token");
        return std::monostate();
    });
}

Result<std::optional<std::string>> ContextTable::compute_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard turn(context->pieces);
    if (!context->by_pieces) HR_TRY(context->noting_error(start_pieces(*context)));
    Result<std::optional<Piece>> next = std::optional<Piece>();
    do next = caught([&] { return context->by_pieces->next(); });
    while (next.ok() && next.value() && next.value()->progress);
    if (next.ok() && next.value()) {
        const Piece& piece = *next.value();
        const PieceTime now{std::chrono::steady_clock::now(), piece.tokens};
        if (!context->first_piece) context->first_piece = now;
        const std::lock_guard lock(context->mutex);
        if (context->tells_speed) context->piece_metadata = piece_metadata_json(*context->first_piece, now);
        context->piece = piece.text;
        context->error.reset();
        return std::optional(piece.text);
    }
    HR_TRY(context->noting_error(finish_pieces(*context)));
    return std::optional<std::string>();
}

Result<std::string> ContextTable::last_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    return context->piece;
}

Status ContextTable::end_pieces(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(cancel(id));  // whoever waits for a piece gets the end
    const std::lock_guard turn(context->pieces);
    if (context->by_pieces) static_cast<void>(finish_pieces(*context));  // it failed, as it was cancelled
    return success();
}

/// Keeps what there is, and says how the request ended. The prompt is used up then: the next call needs a new
/// one, which may be there already.
Status ContextTable::finish_pieces(Context& context) {
    Generation generation = std::move(*context.by_pieces);
    context.by_pieces.reset();
    generation.cancel();
    const Reply reply = generation.end();
    const std::lock_guard lock(context.mutex);
    if (context.prompt_number == context.pieces_prompt_number) context.has_prompt = false;
    context.answer = {reply.text, metadata_json(reply, is_set(generation, "return_tokens"))};
    context.error.reset();
    context.piece.clear();
    context.piece_metadata.clear();
    return caught([&] {
        generation.check();
        return std::monostate();
    });
}

// The rest.

Status ContextTable::cancel(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    context->conversation.cancel();
    return success();
}

void ContextTable::remember_failure(const Error& error) {
    const std::lock_guard lock(mutex_);
    last_failure_ = error;
}

ContextTable::Origin ContextTable::origin_of(ContextId id) {
    const auto found = find(id);
    if (!found.ok()) return {};
    Context& context = *found.value();
    const std::lock_guard lock(context.mutex);
    const std::uint64_t latest = context.conversation.latest_request();
    return {context.conversation.label(), latest == context.earlier_request ? 0 : latest};
}

std::string ContextTable::statistics() {
    const HostedStatistics statistics = models_.statistics();
    const std::lock_guard lock(mutex_);
    return statistics_json(statistics, contexts_.size());
}

}  // namespace headrace::wasi_nn
