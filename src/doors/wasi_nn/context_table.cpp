#include "doors/wasi_nn/context_table.h"

#include <nlohmann/json.hpp>

#include "doors/wasi_nn/configuration.h"
#include "doors/wasi_nn/metadata_json.h"
#include "llm/log/log_settings.h"
#include "llm/service/statistics.h"

namespace headrace::wasi_nn {
namespace {

using llm::Level;

/// A level's parameters over those below.
Status add_parameters(llm::RequestInput& input, std::string_view json, Level level) {
    if (json.empty()) return success();
    Result<llm::Settings> changed = with_configuration(input.settings, json, level, input.warnings);
    if (changed.ok()) {
        input.settings = std::move(changed).value();
    } else if (nlohmann::json::accept(json)) {
        return changed.error();
    } else {
        // Embedders of the first backends send options that are no JSON, and expect the defaults.
        input.warnings.push_back(defaults_note(changed.error()));
    }
    return success();
}

}  // namespace

struct ContextTable::Context {
    GraphId graph;
    std::shared_ptr<llm::Session> session;
    std::mutex mutex;  // of what follows, up to error
    std::string prompt, parameters;
    bool has_prompt = false;
    std::uint64_t prompt_number = 0;  // that it is, of those that were set
    std::uint64_t request_id = 0;     // of the engine; 0 since an input
    std::optional<Answer> answer;
    std::string piece, piece_metadata;
    std::optional<Error> error;  // of the last call

    std::mutex pieces;  // of what follows; taken before mutex
    std::unique_ptr<llm::TextRequest> by_pieces;
    std::uint64_t pieces_prompt_number = 0;
    std::optional<PieceTime> first_piece;

    void set_request(std::uint64_t id) {
        const std::lock_guard lock(mutex);
        request_id = id;
    }
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

ContextTable::ContextTable(const llm::Settings& settings, llm::Notes warnings)
    : sessions_(settings.session),
      models_(settings, std::move(warnings), sessions_),
      requests_(models_.slots(), sessions_) {}

ContextTable::~ContextTable() { cancel_all(); }

Result<std::unique_ptr<ContextTable>> ContextTable::create(std::string_view config,
                                                           const llm::Settings& defaults,
                                                           std::string_view above) {
    llm::start_llama();
    llm::Notes warnings;
    llm::Settings settings = defaults;
    settings.lenient = false;
    HR_ASSIGN(settings, with_configuration(settings, config, Level::service, warnings));
    const std::string own_file = settings.log.file;
    settings.lenient = defaults.lenient;
    HR_ASSIGN(settings, with_configuration(settings, above, Level::service, warnings));
    if (!config.empty() || !above.empty()) {
        Status logged = llm::set_log(settings.log);
        if (!logged.ok() && settings.lenient && settings.log.file != own_file) {
            warnings.push_back({"log_file", logged.error().message + "; it is left out"});
            settings.log.file = own_file;
            logged = llm::set_log(settings.log);
        }
        HR_TRY(logged);
    }
    llm::log_notes(warnings);
    return std::unique_ptr<ContextTable>(new ContextTable(settings, std::move(warnings)));
}

// Contexts.

Result<ContextId> ContextTable::open(GraphId graph, std::optional<std::string_view> session) {
    HR_TRY(models_.find(graph));
    auto context = std::make_shared<Context>();
    if (session && !session->empty()) {
        HR_ASSIGN(context->session, sessions_.open(*session));
    } else {
        Result<std::shared_ptr<llm::Session>> anonymous = sessions_.open_anonymous();
        if (!anonymous.ok()) {
            forget_orphans();
            anonymous = sessions_.open_anonymous();
        }
        HR_ASSIGN(context->session, std::move(anonymous));
    }
    context->graph = graph;
    const std::lock_guard lock(mutex_);
    const ContextId id = next_context_++;
    contexts_[id] = std::move(context);
    return id;
}

/// Guests cannot close contexts: those of unloaded graphs, unless a request still runs there, are no use.
void ContextTable::forget_orphans() {
    std::vector<std::shared_ptr<Context>> gone;
    {
        const std::lock_guard lock(mutex_);
        for (auto entry = contexts_.begin(); entry != contexts_.end();) {
            const Context* context = entry->second.get();
            const bool is_orphan = !models_.find(context->graph).ok() && !requests_.has_any(context);
            if (is_orphan) gone.push_back(entry->second);
            entry = is_orphan ? contexts_.erase(entry) : std::next(entry);
        }
    }
    for (const auto& context : gone) sessions_.close(context->session);
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
    sessions_.close(context->session);
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
    context->request_id = 0;
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
    HR_ASSIGN(Answer made,
              context->noting_error(answer(*context, prompt, {.context = own, .request = parameters})));
    std::string text = made.text;
    context->keep(std::move(made));
    return text;
}

Result<Answer> ContextTable::infer(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return answer(*context, prompt, {.context = {}, .request = parameters});
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
    return answer(context, prompt, {.context = parameters, .request = {}});
}

Result<Answer> ContextTable::answer(Context& context, std::string_view prompt, const Texts& texts) {
    sessions_.close_idle();
    HR_ASSIGN(const llm::LoadedModel model, models_.find(context.graph));
    if (model.runner.embedder) return vectors(context, prompt, texts);
    HR_ASSIGN(const std::unique_ptr<llm::TextRequest> request, start(context, prompt, texts, false));
    const Reply reply = request->end();
    HR_TRY(request->status());
    return Answer{reply.text, metadata_json(reply, request->settings().return_tokens)};
}

Result<Answer> ContextTable::vectors(Context& context, std::string_view text, const Texts& texts) {
    HR_ASSIGN(const llm::LoadedModel model, models_.find(context.graph));
    HR_ASSIGN(llm::RequestInput input, input_of(context, model, texts));
    auto started = requests_.start_vectors(std::move(input), {std::string(text)});
    if (!started.ok()) return models_.within(context.graph, started.error());
    llm::VectorRequest& request = *started.value();
    context.set_request(request.id());
    HR_ASSIGN(const std::vector<llm::TextVectors> made, request.wait());
    return Answer{
        vectors_json(made.front(), request.pools()),
        vectors_metadata_json(static_cast<std::int64_t>(request.token_count()), request.warnings())};
}

Result<llm::RequestInput> ContextTable::input_of(Context& context, const llm::LoadedModel& model,
                                                 const Texts& texts) {
    llm::RequestInput input{
        .model = context.graph, .group = &context, .session = context.session, .settings = model.settings};
    HR_TRY(add_parameters(input, texts.context, Level::session));
    HR_TRY(add_parameters(input, texts.request, Level::request));
    context.set_request(0);
    return input;
}

Result<std::unique_ptr<llm::TextRequest>> ContextTable::start(Context& context, std::string_view prompt,
                                                              const Texts& texts, bool is_read_by_pieces) {
    HR_ASSIGN(const llm::LoadedModel model, models_.find(context.graph));
    HR_TRY(model.check_writes_text());
    HR_ASSIGN(llm::RequestInput input, input_of(context, model, texts));
    input.prompt = prompt;
    input.is_read_by_pieces = is_read_by_pieces;
    auto request = requests_.start(std::move(input));
    if (!request.ok()) return models_.within(context.graph, request.error());
    context.set_request(request.value()->id());
    return request;
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
    HR_ASSIGN(context.by_pieces, start(context, prompt, {.context = parameters, .request = {}}, true));
    return success();
}

Result<std::optional<std::string>> ContextTable::compute_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard turn(context->pieces);
    if (!context->by_pieces) HR_TRY(context->noting_error(start_pieces(*context)));
    llm::TextRequest& request = *context->by_pieces;
    HR_ASSIGN(llm::Generation::Piece piece, request.next());
    if (!piece.text.empty()) {
        const PieceTime now{std::chrono::steady_clock::now(), piece.tokens};
        if (!context->first_piece) context->first_piece = now;
        const std::lock_guard lock(context->mutex);
        if (request.settings().timings_per_token)
            context->piece_metadata = piece_metadata_json(*context->first_piece, now);
        context->piece = piece.text;
        context->error.reset();
        return std::optional(std::move(piece.text));
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
    const std::unique_ptr<llm::TextRequest> request = std::move(context.by_pieces);
    request->cancel();
    const Reply reply = request->end();
    const std::lock_guard lock(context.mutex);
    if (context.prompt_number == context.pieces_prompt_number) context.has_prompt = false;
    context.answer = {reply.text, metadata_json(reply, request->settings().return_tokens)};
    context.error.reset();
    context.piece.clear();
    context.piece_metadata.clear();
    return request->status();
}

// The rest.

Status ContextTable::cancel(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    requests_.cancel(context.get());
    return success();
}

void ContextTable::remember_failure(const Error& error) {
    const std::lock_guard lock(mutex_);
    last_failure_ = error;
}

ContextTable::Origin ContextTable::origin_of(ContextId id) {
    const auto context = find(id);
    if (!context.ok()) return {};
    const std::lock_guard lock(context.value()->mutex);
    return {context.value()->session->label(), context.value()->request_id};
}

std::string ContextTable::statistics() {
    sessions_.close_idle();
    std::size_t contexts = 0;
    {
        const std::lock_guard lock(mutex_);
        contexts = contexts_.size();
    }
    std::map<GraphId, GraphStatistics> graphs;
    for (const auto& [id, model] : models_.slots().all())
        graphs[id] = {llm::statistics_of(model), model.runner.embedder != nullptr};
    LanguageModelStatistics process;
    llm::add_process(process, sessions_);
    return statistics_json(graphs, contexts, process);
}

}  // namespace headrace::wasi_nn
