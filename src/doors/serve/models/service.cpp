#include "doors/serve/models/service.h"

#include <cstdio>
#include <filesystem>

#include "doors/serve/request/fields.h"

namespace headrace::serve {

Status Service::load() {
    const auto name_of = [](const std::string& path) {
        return ServedModel::Names{{std::filesystem::path(path).filename().string()}, {}};
    };
    try {
        add(options_.model, options_.parameters, {options_.aliases, options_.tags});
        Parameters parameters = {{"embeddings", true}, {"log_level", "warn"}};
        for (const char* shared : {"n_threads", "devices"})
            if (const ParameterValue* value = options_.parameters.find(shared))
                parameters.set(shared, *value);
        if (const std::string& path = options_.embedding_model; !path.empty())
            add(path, parameters, name_of(path));
        parameters.set("pooling", "rank");
        if (const std::string& path = options_.ranking_model; !path.empty())
            add(path, parameters, name_of(path));
        return success();
    } catch (const Exception& error) {
        return Error{error.code(), error.what()};
    }
}

void Service::add(const std::string& path, const Parameters& parameters, ServedModel::Names names) {
    LanguageModel model = LanguageModel::load(path, {.parameters = parameters});
    for (const Warning& warning : model.warnings())
        std::fprintf(stderr, "headrace: %s: %s: %s\n", names.aliases.front().c_str(),
                     warning.parameter.c_str(), warning.message.c_str());
    models_.push_back(std::make_shared<ServedModel>(std::move(model), std::move(names), options_.parallel,
                                                    options_.most_per_key));
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
    throw not_offered(kind == ModelKind::text ? "this server's model turns texts into vectors and writes none"
                      : kind == ModelKind::scores
                          ? "This server does not rank. Start it with `--reranking` and a model that does"
                          : "This server does not support embeddings. Start it with `--embeddings`");
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
    return chat_body(body, model.info());
}

std::string Service::metrics() const {
    std::string out;
    counts_.write(out);
    write_model_metrics(out, models_);
    return out;
}

}  // namespace headrace::serve
