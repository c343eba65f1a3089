#include "headrace/language_model.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>

#include "base/result.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/parameters.h"
#include "llm/service/model_info.h"
#include "llm/service/model_names.h"
#include "llm/service/requests.h"
#include "llm/service/statistics.h"

namespace headrace {

using llm::Level;
using llm::LoadedModel;
using llm::Session;

namespace {

constexpr llm::ModelSlots::Id kSlot = 0;  // the only one

/// What fails inside is an exception outside, and never another one than headrace::Exception.
template <class Call>
auto throwing(Call call) {
    try {
        return value_or_throw(call());
    } catch (const Exception&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw Exception(Code::out_of_memory, "no memory is left");
    } catch (const std::exception& e) {
        throw Exception(Code::backend_failure, e.what());
    }
}

/// What a load asks for.
struct Load {
    llm::Settings settings;
    llm::Notes warnings;

    static Result<Load> of(const ModelOptions& options) {
        llm::start_llama();
        Load load;
        load.settings.log = llm::environment_log();
        const llm::LogSettings usual = load.settings.log;
        HR_ASSIGN(load.settings,
                  with_parameters(load.settings, options.parameters, Level::service, load.warnings));
        if (load.settings.log != usual) HR_TRY(llm::set_log(load.settings.log));
        llm::log_notes(load.warnings);
        return load;
    }
    Result<LoadedModel> open(const std::string& name) {
        HR_ASSIGN(std::string path, llm::model_path(name, settings));
        return llm::open_model(name, std::move(path), std::move(settings), std::move(warnings));
    }
};

Status check_messages(const std::vector<Message>& messages) {
    constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
    constexpr std::size_t kMost = 10'000;  // seconds in the template of a model
    if (messages.size() > kMost)
        return invalid("a request has {} messages; at most {} are allowed", messages.size(), kMost);
    for (std::size_t i = 0; i < messages.size(); ++i)
        if (std::find(kRoles.begin(), kRoles.end(), messages[i].role) == kRoles.end())
            return invalid(
                "message {} has the role '{:.60}'; it must be one of system, user, assistant, tool", i,
                messages[i].role);
    return success();
}

}  // namespace

struct LanguageModel::Impl {
    explicit Impl(LoadedModel model) : sessions(model.settings.session) {
        models.put(std::move(model), false);
    }

    LoadedModel model() const { return models.find(kSlot).value(); }
    /// A session of a request that belongs to no conversation.
    std::shared_ptr<Session> own_session(const std::string& owner = {}) {
        return std::make_shared<Session>("",
                                         owner.empty() ? fmt::format("request:{}", next_request++) : owner);
    }
    /// conversation: the parameters that are its defaults, or null.
    Result<llm::RequestInput> input(std::shared_ptr<Session> session, const Parameters* conversation,
                                    const Parameters& parameters) const {
        llm::RequestInput input{.model = kSlot, .session = std::move(session)};
        input.settings = model().settings;
        if (conversation) {
            HR_ASSIGN(input.settings,
                      with_parameters(input.settings, *conversation, Level::session, input.warnings));
        }
        HR_ASSIGN(input.settings,
                  with_parameters(input.settings, parameters, Level::request, input.warnings));
        return input;
    }
    Result<std::unique_ptr<llm::TextRequest>> start(const Request& request, bool is_read_by_pieces) {
        HR_TRY(model().check_writes_text());
        HR_ASSIGN(llm::RequestInput made, input(request));
        sessions.close_idle();
        made.is_read_by_pieces = is_read_by_pieces;
        return requests.start(std::move(made));
    }
    Result<llm::RequestInput> input(const Request& request) {
        HR_TRY(check_messages(request.messages));
        if (!request.prompt.empty() + !request.messages.empty() + !request.tokens.empty() > 1)
            return invalid(
                "a request has several of a prompt, messages and tokens; it must have one of them");
        HR_ASSIGN(llm::RequestInput made, input(own_session(request.owner), nullptr, request.parameters));
        made.prompt = request.prompt;
        made.messages = request.messages;
        made.tokens = request.tokens;
        made.settings.request.own_template = request.chat_template;
        return made;
    }
    Result<std::unique_ptr<llm::VectorRequest>> start_vectors(std::vector<std::string> texts,
                                                              const Parameters& parameters,
                                                              std::optional<std::string_view> query = {}) {
        HR_ASSIGN(llm::RequestInput made, input(own_session(), nullptr, parameters));
        return requests.start_vectors(std::move(made), std::move(texts), query);
    }
    Result<std::unique_ptr<llm::VectorRequest>> start_vectors(std::vector<llm::Tokens> sequences,
                                                              const Parameters& parameters) {
        HR_ASSIGN(llm::RequestInput made, input(own_session(), nullptr, parameters));
        return requests.start_vectors(std::move(made), std::move(sequences));
    }
    Status check_pools() const {
        const LoadedModel loaded = model();
        if (loaded.runner.engine)
            return unsupported("the model writes texts; load it with {{'embeddings': true}} for vectors");
        if (loaded.runner.embedder->ranks())
            return unsupported("the model gives scores of documents, and no vectors; see rerank");
        if (!loaded.runner.embedder->pools())
            return unsupported(
                "with pooling none a text has a vector for each token: see embed_tokens, or load the "
                "model with another pooling");
        return success();
    }

    llm::Sessions sessions;
    llm::ModelSlots models;
    llm::Requests requests{models, sessions};
    std::atomic<std::uint64_t> next_request = 1;
};

// A conversation.

struct Conversation::Impl {
    Impl(std::shared_ptr<LanguageModel::Impl> of, std::shared_ptr<Session> opened, Parameters defaults)
        : model(std::move(of)), session(std::move(opened)), parameters(std::move(defaults)) {
        session->keep();
    }
    ~Impl() {
        session->release();
        model->sessions.close(session);
    }
    Result<std::unique_ptr<llm::TextRequest>> start(std::string_view message, const Parameters& given,
                                                    bool is_read_by_pieces) {
        HR_TRY(model->model().check_writes_text());
        model->sessions.close_idle();
        HR_ASSIGN(llm::RequestInput made, model->input(session, &parameters, given));
        made.prompt = message;
        made.is_read_by_pieces = is_read_by_pieces;
        return model->requests.start(std::move(made));
    }

    const std::shared_ptr<LanguageModel::Impl> model;
    const std::shared_ptr<Session> session;
    const Parameters parameters;
};

namespace {

Result<Reply> whole(Result<std::unique_ptr<llm::TextRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<llm::TextRequest> request, std::move(started));
    Reply reply = request->end();
    HR_TRY(request->status());
    return reply;
}

}  // namespace

Conversation::Conversation(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Reply Conversation::say(std::string_view message, const Parameters& parameters) {
    return throwing([&] { return whole(impl_->start(message, parameters, false)); });
}

std::vector<Message> Conversation::messages() const { return impl_->session->messages(); }

void Conversation::cancel() { impl_->model->requests.cancel(impl_->session.get()); }

// An answer piece by piece.

struct Generation::Impl {
    std::shared_ptr<LanguageModel::Impl> model;
    std::unique_ptr<llm::TextRequest> request;
    std::mutex mutex;
    std::optional<Reply> reply;
    std::optional<llm::AnswerReader> reader;  // of next_part

    /// More than one that is done and empty, or nothing.
    Result<std::optional<Piece>> next() {
        HR_ASSIGN(llm::Generation::Piece piece, request->next());
        if (!piece.text.empty() || piece.progress) return std::optional<Piece>(std::move(piece));
        end();
        HR_TRY(request->status());
        return std::optional<Piece>();
    }

    const Reply& end() {
        const std::lock_guard lock(mutex);
        if (!reply) reply = request->end();
        return *reply;
    }
};

namespace {

Result<std::unique_ptr<Generation::Impl>> streamed(std::shared_ptr<LanguageModel::Impl> model,
                                                   Result<std::unique_ptr<llm::TextRequest>> started) {
    auto impl = std::make_unique<Generation::Impl>();
    impl->model = std::move(model);
    HR_ASSIGN(impl->request, std::move(started));
    return impl;
}

}  // namespace

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

Generation Conversation::stream(std::string_view message, const Parameters& parameters) {
    return Generation(
        throwing([&] { return streamed(impl_->model, impl_->start(message, parameters, true)); }));
}

std::optional<Generation::Piece> Generation::next() {
    return throwing([&] { return impl_->next(); });
}

std::optional<MessagePart> Generation::next_part() {
    return throwing([&]() -> Result<std::optional<MessagePart>> {
        if (!impl_->reader) impl_->reader.emplace(impl_->request->answer_reader());
        HR_ASSIGN(std::optional<Piece> piece, impl_->next());
        if (piece) {
            MessagePart part = impl_->reader->read(piece->text);
            part.piece = std::move(*piece);
            return std::optional(std::move(part));
        }
        MessagePart rest = impl_->reader->finish();
        if (rest.content.empty() && rest.reasoning.empty() && rest.calls.empty())
            return std::optional<MessagePart>();
        return std::optional(std::move(rest));
    });
}

bool Generation::wait_for(std::chrono::milliseconds patience) { return impl_->request->wait_for(patience); }

Reply Generation::reply() {
    return throwing([&]() -> Result<Reply> {
        const Reply& reply = impl_->end();
        if (reply.stop_reason != StopReason::cancelled) HR_TRY(impl_->request->status());
        return reply;
    });
}

void Generation::cancel() { impl_->request->cancel(); }

// The model.

LanguageModel::LanguageModel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

LanguageModel LanguageModel::load(const std::string& path, const ModelOptions& options) {
    return throwing([&]() -> Result<LanguageModel> {
        HR_ASSIGN(Load load, Load::of(options));
        HR_ASSIGN(LoadedModel model, load.open(path));
        return LanguageModel(std::make_shared<Impl>(std::move(model)));
    });
}

LanguageModel LanguageModel::load_bytes(std::string_view bytes, const ModelOptions& options) {
    return throwing([&]() -> Result<LanguageModel> {
        HR_ASSIGN(Load load, Load::of(options));
        HR_ASSIGN(LoadedModel model,
                  llm::open_model_bytes(bytes, std::move(load.settings), std::move(load.warnings)));
        return LanguageModel(std::make_shared<Impl>(std::move(model)));
    });
}

ModelKind LanguageModel::kind() const {
    const LoadedModel model = impl_->model();
    if (model.runner.engine) return ModelKind::text;
    if (model.runner.embedder->ranks()) return ModelKind::scores;
    return model.runner.embedder->pools() ? ModelKind::vectors : ModelKind::token_vectors;
}

Reply LanguageModel::generate(std::string_view prompt, const Parameters& parameters) {
    return generate(Request{.prompt = std::string(prompt), .parameters = parameters});
}

Reply LanguageModel::generate(const Request& request) {
    return throwing([&] { return whole(impl_->start(request, false)); });
}

Generation LanguageModel::stream(std::string_view prompt, const Parameters& parameters) {
    return stream(Request{.prompt = std::string(prompt), .parameters = parameters});
}

Generation LanguageModel::stream(const Request& request) {
    return Generation(throwing([&] { return streamed(impl_, impl_->start(request, true)); }));
}

Conversation LanguageModel::conversation(std::string_view name, const Parameters& parameters) {
    return throwing([&]() -> Result<Conversation> {
        llm::Notes shown_with_replies;
        HR_TRY(with_parameters(impl_->model().settings, parameters, Level::session, shown_with_replies));
        HR_ASSIGN(std::shared_ptr<Session> session,
                  name.empty() ? impl_->sessions.open_anonymous() : impl_->sessions.open(name));
        return Conversation(std::make_shared<Conversation::Impl>(impl_, std::move(session), parameters));
    });
}

namespace {

Result<Embeddings> pooled(Result<std::unique_ptr<llm::VectorRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<llm::VectorRequest> request, std::move(started));
    HR_ASSIGN(std::vector<llm::TextVectors> vectors, request->wait());
    Embeddings made{.tokens = static_cast<std::int64_t>(request->token_count()),
                    .warnings = request->warnings()};
    for (llm::TextVectors& text : vectors) made.vectors.push_back(std::move(text.front()));
    return made;
}

Status check_gives_tokens(ModelKind kind) {
    if (kind == ModelKind::token_vectors) return success();
    return unsupported("the tokens' vectors are pooled; load the model with pooling none");
}

Result<Embeddings> of_tokens(Result<std::unique_ptr<llm::VectorRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<llm::VectorRequest> request, std::move(started));
    HR_ASSIGN(std::vector<llm::TextVectors> vectors, request->wait());
    return Embeddings{.vectors = std::move(vectors.front()),
                      .tokens = static_cast<std::int64_t>(request->token_count()),
                      .warnings = request->warnings()};
}

}  // namespace

Embeddings LanguageModel::embed(const std::vector<std::string>& texts, const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(impl_->check_pools());
        if (texts.empty()) return Embeddings{};
        return pooled(impl_->start_vectors(texts, parameters));
    });
}

Embeddings LanguageModel::embed_sequences(const std::vector<std::vector<std::int32_t>>& sequences,
                                          const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(impl_->check_pools());
        if (sequences.empty()) return Embeddings{};
        return pooled(impl_->start_vectors(sequences, parameters));
    });
}

Embeddings LanguageModel::embed_tokens(std::string_view text, const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(check_gives_tokens(kind()));
        return of_tokens(impl_->start_vectors(std::vector<std::string>{std::string(text)}, parameters));
    });
}

Embeddings LanguageModel::embed_tokens(const std::vector<std::int32_t>& sequence,
                                       const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(check_gives_tokens(kind()));
        return of_tokens(impl_->start_vectors(std::vector<llm::Tokens>{sequence}, parameters));
    });
}

RankScores LanguageModel::rerank(std::string_view query, const std::vector<std::string>& documents,
                                 const Parameters& parameters) {
    return throwing([&]() -> Result<RankScores> {
        if (kind() != ModelKind::scores)
            return unsupported("the model does not rank; load one that does with {{'pooling': 'rank'}}");
        if (documents.empty()) return RankScores{};
        HR_ASSIGN(const auto request, impl_->start_vectors(documents, parameters, query));
        HR_ASSIGN(const std::vector<llm::TextVectors> vectors, request->wait());
        RankScores made{.tokens = static_cast<std::int64_t>(request->token_count()),
                        .warnings = request->warnings()};
        for (const llm::TextVectors& document : vectors) made.scores.push_back(document.front().front());
        return made;
    });
}

bool LanguageModel::is_lost() const { return impl_->model().runner.model().is_lost(); }

ModelInfo LanguageModel::info() const {
    return throwing([&]() -> Result<ModelInfo> { return llm::info_of(impl_->model()); });
}

std::vector<std::int32_t> LanguageModel::tokenize(std::string_view text, bool special, bool control) const {
    return throwing([&]() -> Result<std::vector<std::int32_t>> {
        return impl_->model().runner.model().tokenize(text, special, control);
    });
}

std::string LanguageModel::detokenize(const std::vector<std::int32_t>& tokens) const {
    return throwing([&]() -> Result<std::string> {
        const LoadedModel loaded = impl_->model();
        const llm::Model& model = loaded.runner.model();
        std::string text;
        for (const std::int32_t token : tokens) {
            if (token < 0 || token >= model.vocabulary_size())
                return invalid("token {} is not in the vocabulary, which ends at {}", token,
                               model.vocabulary_size() - 1);
            text += model.piece(token, true);
        }
        return text;
    });
}

RenderedPrompt LanguageModel::render(const Request& request) const {
    return throwing([&]() -> Result<RenderedPrompt> {
        HR_ASSIGN(llm::RequestInput input, impl_->input(request));
        HR_ASSIGN(llm::Prompt prompt, impl_->requests.render(std::move(input)));
        return RenderedPrompt{std::move(prompt.text), std::move(prompt.tokens)};
    });
}

Parameters LanguageModel::effective(const Parameters& parameters) const {
    return throwing([&]() -> Result<Parameters> {
        llm::Notes shown_with_replies;
        HR_ASSIGN(llm::Settings settings,
                  with_parameters(impl_->model().settings, parameters, Level::request, shown_with_replies));
        return llm::request_parameters(settings);
    });
}

namespace {

Result<std::shared_ptr<llm::Engine>> writing_engine(const LoadedModel& model) {
    HR_TRY(model.check_writes_text());
    return model.runner.engine;
}

}  // namespace

SavedPrompt LanguageModel::save_prompt(const std::vector<std::int32_t>& tokens, const std::string& path) {
    return throwing([&]() -> Result<SavedPrompt> {
        HR_ASSIGN(const auto engine, writing_engine(impl_->model()));
        return engine->save_prompt(tokens, path);
    });
}

SavedPrompt LanguageModel::restore_prompt(const std::string& path) {
    return throwing([&]() -> Result<SavedPrompt> {
        HR_ASSIGN(const auto engine, writing_engine(impl_->model()));
        return engine->restore_prompt(path);
    });
}

std::int64_t LanguageModel::forget_prompt(const std::vector<std::int32_t>& tokens) {
    return throwing([&]() -> Result<std::int64_t> {
        HR_ASSIGN(const auto engine, writing_engine(impl_->model()));
        return engine->forget_prompt(tokens);
    });
}

void LanguageModel::replace(const std::string& path, const ModelOptions& options) {
    throwing([&]() -> Status {
        HR_ASSIGN(Load load, Load::of(options));
        HR_ASSIGN(LoadedModel model, load.open(path));
        impl_->sessions.limit(model.settings.session);
        impl_->models.put(std::move(model), true);
        return success();
    });
}

LanguageModelStatistics LanguageModel::statistics() const {
    return throwing([&]() -> Result<LanguageModelStatistics> {
        impl_->sessions.close_idle();
        LanguageModelStatistics statistics = llm::statistics_of(impl_->model());
        llm::add_process(statistics, impl_->sessions);
        return statistics;
    });
}

std::vector<Warning> LanguageModel::warnings() const { return impl_->model().warnings; }

void LanguageModel::cancel_all() { impl_->requests.cancel_all(); }

}  // namespace headrace
