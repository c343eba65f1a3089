#include "llm/service/language_model.h"

#include <algorithm>
#include <array>

#include "llm/checks/model_file.h"
#include "llm/log/log_settings.h"
#include "llm/parameters/parameters.h"
#include "llm/service/model_info.h"
#include "llm/service/model_memory.h"
#include "llm/service/model_names.h"
#include "llm/service/statistics.h"
#include "llm/service/vectors.h"

namespace headrace {

using llm::Level;
using llm::LoadedModel;
using llm::Session;

namespace {

/// What a load asks for.
struct Load {
    llm::Settings settings;
    llm::Warnings warnings;

    static Result<Load> of(const ModelOptions& options) {
        llm::start_llama();
        Load load;
        load.settings.log = llm::environment_log();
        const llm::LogSettings usual = load.settings.log;
        HR_ASSIGN(load.settings,
                  with_parameters(load.settings, options.parameters, Level::service, load.warnings));
        if (load.settings.log != usual) HR_TRY(llm::set_log(load.settings.log));
        llm::log_warnings(load.warnings);
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
        return invalid("'messages' has {} messages; at most {} are allowed", messages.size(), kMost)
            .of_parameter("messages");
    for (std::size_t i = 0; i < messages.size(); ++i)
        if (std::find(kRoles.begin(), kRoles.end(), messages[i].role) == kRoles.end())
            return invalid(
                "message {} has the role '{:.60}'; it must be one of system, user, assistant, tool", i,
                messages[i].role);
    return success();
}

Result<std::shared_ptr<llm::Engine>> writing_engine(const LoadedModel& model) {
    HR_TRY(model.check_writes_text());
    return model.runner.engine;
}

}  // namespace

std::shared_ptr<Session> LanguageModel::Impl::own_session(const std::string& owner) {
    return std::make_shared<Session>("", owner.empty() ? fmt::format("request:{}", next_request++) : owner);
}

Result<llm::RequestInput> LanguageModel::Impl::input(std::shared_ptr<Session> session,
                                                     const Parameters* conversation,
                                                     const Parameters& parameters) const {
    llm::RequestInput input{.model = kSlot, .session = std::move(session)};
    input.settings = model().settings;
    if (conversation) {
        HR_ASSIGN(input.settings,
                  with_parameters(input.settings, *conversation, Level::session, input.warnings));
    }
    HR_ASSIGN(input.settings, with_parameters(input.settings, parameters, Level::request, input.warnings));
    return input;
}

Result<llm::RequestInput> LanguageModel::Impl::input(const Request& request) {
    HR_TRY(check_messages(request.messages));
    if (!request.prompt.empty() + !request.messages.empty() + !request.tokens.empty() > 1)
        return invalid("a request has several of a prompt, messages and tokens; it must have one of them");
    HR_ASSIGN(llm::RequestInput made, input(own_session(request.owner), nullptr, request.parameters));
    made.prompt = request.prompt;
    made.messages = request.messages;
    made.tokens = request.tokens;
    made.settings.request.own_template = request.chat_template;
    return made;
}

Result<llm::RequestInput> LanguageModel::Impl::vector_input(const Parameters& parameters) {
    return input(own_session(), nullptr, parameters);
}

Result<std::unique_ptr<llm::TextRequest>> LanguageModel::Impl::start(const Request& request,
                                                                     bool is_read_by_pieces) {
    HR_TRY(model().check_writes_text());
    HR_ASSIGN(llm::RequestInput made, input(request));
    sessions.close_idle();
    made.is_read_by_pieces = is_read_by_pieces;
    return requests.start(std::move(made));
}

void check_model_file(const std::string& path) {
    throwing([&] {
        llm::start_llama();
        return llm::inspect_model_file(path);
    });
}

namespace {

ModelKind kind_of(const llm::ModelFile& file, const llm::ContextMemory& context) {
    if (!context.embeddings && !file.embeddings) return ModelKind::text;
    const auto is = [&](const char* name, std::int64_t number) {
        return pools_by(file, context.pooling, name, number);
    };
    if (is("rank", LLAMA_POOLING_TYPE_RANK)) return ModelKind::scores;
    return is("none", LLAMA_POOLING_TYPE_NONE) ? ModelKind::token_vectors : ModelKind::vectors;
}

Result<ModelOutline> outline(const std::string& name, const ModelOptions& options, bool measures_context) {
    HR_ASSIGN(const Load load, Load::of(options));
    HR_ASSIGN(const std::string path, llm::model_path(name, load.settings));
    HR_ASSIGN(const llm::ModelFile file, llm::inspect_model_file(path, load.settings.model.kv_overrides));
    const llm::ContextSettings& context = load.settings.context;
    ModelOutline made{.kind = kind_of(file, context), .architecture = file.architecture};
    HR_ASSIGN(const llm::ModelMemory memory,
              llm::memory_of_model(path, file, load.settings, measures_context));
    made.weight_bytes = static_cast<std::int64_t>(memory.weights);
    made.context_bytes = static_cast<std::int64_t>(memory.context);
    return made;
}

}  // namespace

ModelOutline outline_model(const std::string& path, const ModelOptions& options, bool measures_context) {
    return throwing([&] { return outline(path, options, measures_context); });
}

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
        HR_ASSIGN(const llm::MemoryFile file, llm::MemoryFile::of(bytes));
        HR_ASSIGN(LoadedModel model,
                  llm::open_model(file, std::move(load.settings), std::move(load.warnings)));
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
    return throwing([&] { return whole_reply(impl_->start(request, false)); });
}

Generation LanguageModel::stream(std::string_view prompt, const Parameters& parameters) {
    return stream(Request{.prompt = std::string(prompt), .parameters = parameters});
}

Generation LanguageModel::stream(const Request& request) {
    return Generation(throwing([&] { return Generation::Impl::of(impl_, impl_->start(request, true)); }));
}

Conversation LanguageModel::conversation(std::string_view name, const Parameters& parameters) {
    return throwing([&]() -> Result<Conversation> {
        llm::Warnings shown_with_replies;
        HR_TRY(with_parameters(impl_->model().settings, parameters, Level::session, shown_with_replies));
        HR_ASSIGN(std::shared_ptr<Session> session,
                  name.empty() ? impl_->sessions.open_anonymous() : impl_->sessions.open(name));
        return Conversation(std::make_shared<Conversation::Impl>(impl_, std::move(session), parameters));
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

bool LanguageModel::is_lost() const { return impl_->model().runner.model().is_lost(); }

std::vector<Warning> LanguageModel::warnings() const { return impl_->model().warnings; }

void LanguageModel::cancel_all() { impl_->requests.cancel_all(); }

Embeddings LanguageModel::embed(const std::vector<std::string>& texts, const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(llm::check_pools(impl_->model()));
        if (texts.empty()) return Embeddings{};
        HR_ASSIGN(llm::RequestInput input, impl_->vector_input(parameters));
        return llm::vectors_of_texts(impl_->requests.start_vectors(std::move(input), texts));
    });
}

Embeddings LanguageModel::embed_sequences(const std::vector<std::vector<std::int32_t>>& sequences,
                                          const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(llm::check_pools(impl_->model()));
        if (sequences.empty()) return Embeddings{};
        HR_ASSIGN(llm::RequestInput input, impl_->vector_input(parameters));
        return llm::vectors_of_texts(impl_->requests.start_vectors(std::move(input), sequences));
    });
}

Embeddings LanguageModel::embed_tokens(std::string_view text, const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(llm::check_gives_token_vectors(kind()));
        HR_ASSIGN(llm::RequestInput input, impl_->vector_input(parameters));
        return llm::vectors_of_tokens(
            impl_->requests.start_vectors(std::move(input), std::vector{std::string(text)}));
    });
}

Embeddings LanguageModel::embed_tokens(const std::vector<std::int32_t>& sequence,
                                       const Parameters& parameters) {
    return throwing([&]() -> Result<Embeddings> {
        HR_TRY(llm::check_gives_token_vectors(kind()));
        HR_ASSIGN(llm::RequestInput input, impl_->vector_input(parameters));
        return llm::vectors_of_tokens(
            impl_->requests.start_vectors(std::move(input), std::vector<llm::Tokens>{sequence}));
    });
}

RankScores LanguageModel::rerank(std::string_view query, const std::vector<std::string>& documents,
                                 const Parameters& parameters) {
    return throwing([&]() -> Result<RankScores> {
        if (kind() != ModelKind::scores)
            return unsupported(
                "the model does not rank; load one that does with the parameters {{\"embeddings\": true, "
                "\"pooling\": \"rank\"}}");
        if (documents.empty()) return RankScores{};
        HR_ASSIGN(llm::RequestInput input, impl_->vector_input(parameters));
        return llm::scores_of_documents(impl_->requests.start_vectors(std::move(input), documents, query));
    });
}

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
        llm::Warnings shown_with_replies;
        HR_ASSIGN(llm::Settings settings,
                  with_parameters(impl_->model().settings, parameters, Level::request, shown_with_replies));
        return llm::request_parameters(settings);
    });
}

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

LanguageModelStatistics LanguageModel::statistics() const {
    return throwing([&]() -> Result<LanguageModelStatistics> {
        impl_->sessions.close_idle();
        LanguageModelStatistics statistics = llm::statistics_of(impl_->model());
        llm::add_process(statistics, impl_->sessions);
        return statistics;
    });
}

}  // namespace headrace
