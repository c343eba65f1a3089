#include "doors/serve/models/service.h"

#include <algorithm>
#include <filesystem>

#include "doors/serve/request/fields.h"

namespace headrace::serve {

namespace {

ServedModel::Names name_of(const std::string& path) {
    return {{std::filesystem::path(path).filename().string()}, {}};
}

std::int64_t threads_in(const Parameters& parameters) {
    const ParameterValue* value = parameters.find("n_threads");
    const auto* threads = value ? std::get_if<std::int64_t>(value) : nullptr;
    return threads ? std::max<std::int64_t>(*threads, 0) : 0;
}

}  // namespace

Status Service::load() {
    for (const std::string& note : options_.notes) log_.say(ServerLog::Level::warn, note);
    try {
        if (!options_.model.empty())
            add(options_.model, options_.parameters, {options_.aliases, options_.tags});
        Parameters parameters = {{"embeddings", true}, {"log_level", "warn"}};
        for (const char* shared : {"n_threads", "devices", "log_file", "log_format"})
            if (const ParameterValue* value = options_.parameters.find(shared))
                parameters.set(shared, *value);
        if (const std::string& path = options_.embedding_model; !path.empty())
            add_beside(path, parameters, false);
        parameters.set("pooling", "rank");
        if (const std::string& path = options_.ranking_model; !path.empty())
            add_beside(path, parameters, true);
        return success();
    } catch (const Exception& error) {
        return Error{error.code(), error.what()};
    }
}

void Service::add_beside(const std::string& path, const Parameters& parameters, bool ranks) {
    if (!is_graph_file(path)) return add(path, parameters, name_of(path));
    TextEncoderOptions encoder = options_.encoder;
    encoder.ranks = ranks;
    if (ranks && is_graph_file(options_.embedding_model)) encoder.tokenizer.clear();  // that one's
    encoder.compile.threads = static_cast<int>(threads_in(parameters));
    if (const ParameterValue* most = options_.parameters.find("max_waiting"))
        if (const auto* calls = std::get_if<std::int64_t>(most); calls && *calls > 0)
            encoder.most_waiting = static_cast<std::size_t>(*calls);
    // --alias is of the program's first model.
    const bool is_first = models_.empty() && encoders_.empty() && !options_.aliases.empty();
    encoders_.push_back(std::make_shared<EncoderModel>(TextEncoder::load(path, encoder),
                                                       is_first ? options_.aliases : name_of(path).aliases,
                                                       options_.parallel, options_.most_per_key));
}

void Service::add(const std::string& path, const Parameters& parameters, ServedModel::Names names) {
    LanguageModel model = LanguageModel::load(path, {.parameters = parameters});
    for (const Warning& warning : model.warnings())
        log_.say(ServerLog::Level::warn, names.aliases.front() + ": " + warning.message,
                 {{"parameter", warning.parameter}});
    const ServedModel::Limits limits{options_.parallel, options_.most_per_key, options_.ping_interval};
    models_.push_back(std::make_shared<ServedModel>(std::move(model), std::move(names), limits));
}

std::shared_ptr<ServedModel> Service::first_model() const {
    if (models_.empty())
        throw not_offered("This server has no language model. Start it with `--model` and a GGUF file");
    return models_.front();
}

std::shared_ptr<EncoderModel> Service::encoder_for(const Json& body, bool ranks) const {
    const std::string name = Fields(body).text("model").value_or("");
    std::shared_ptr<EncoderModel> first;
    for (const auto& encoder : encoders_) {
        if (encoder->info().ranks != ranks) continue;
        if (encoder->answers_to(name)) return encoder;
        if (!first) first = encoder;
    }
    for (const auto& model : models_) {
        const bool is_scoring = model->kind() == ModelKind::scores;
        if (ranks ? is_scoring : !is_scoring && model->kind() != ModelKind::text) return nullptr;
    }
    return first;
}

void Service::check_ranks(const Json& body) const {
    if (!encoder_for(body, true)) static_cast<void>(model_for(body, ModelKind::scores));
}

std::shared_ptr<ServedModel> Service::model_for(const Json& body, ModelKind kind) const {
    const Json* name = Fields(body).any("model");
    if (name && !name->is_string()) Fields(body).wrong("model", "a text");
    std::shared_ptr<ServedModel> first;
    for (const auto& model : models_) {
        if (model->kind() != kind) continue;
        if (name && model->answers_to(name->get_ref<const std::string&>())) return model;
        if (!first) first = model;
    }
    if (first) return first;
    if (kind == ModelKind::text) static_cast<void>(first_model());
    throw not_offered(kind == ModelKind::text ? "this server's model turns texts into vectors and writes none"
                      : kind == ModelKind::scores
                          ? "This server does not rank. Start it with `--rank MODEL`, beside others, or with "
                            "`--reranking` and one model that does"
                          : "This server does not support embeddings. Start it with `--embed MODEL`, beside "
                            "others, or with `--embeddings` and one model");
}

std::shared_ptr<ServedModel> Service::embedding_model(const Json& body) const {
    for (const auto& model : models_)
        if (model->kind() == ModelKind::token_vectors) return model_for(body, ModelKind::token_vectors);
    return model_for(body, ModelKind::vectors);
}

void Service::check_request(const Json& body) const {
    if (!options_.allows_templates && body.contains("chat_template"))
        throw wrong_field(
            "chat_template",
            "is not taken from requests; the server's operator may allow it by --allow-templates");
}

ChatBody Service::read_chat(const Json& body, const ServedModel& model) const {
    check_request(body);
    Json whole = body;
    if (!options_.prefills_assistant && !body.contains("continue_final_message"))
        whole["continue_final_message"] = false;
    ChatBody chat = chat_body(whole, model.info());
    add_api_defaults(chat.request.parameters);
    return chat;
}

void Service::add_api_defaults(Parameters& parameters) const {
    // Last: of a parameter's names the first that a request has counts.
    for (const char* name : {"temperature", "top_p"})
        if (!options_.parameters.find(name) && !parameters.find(name)) parameters.set(name, 1.0);
}

std::string Service::metrics() const {
    std::string out;
    counts_.write(out);
    write_model_metrics(out, models_);
    write_encoder_metrics(out, encoders_);
    return out;
}

}  // namespace headrace::serve
