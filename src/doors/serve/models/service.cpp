#include "doors/serve/models/service.h"

#include <cstdio>

#include "doors/serve/request/fields.h"

namespace headrace::serve {

Status Service::load() {
    try {
        LanguageModel model = LanguageModel::load(options_.model, {.parameters = options_.parameters});
        for (const Warning& warning : model.warnings())
            std::fprintf(stderr, "headrace: %s: %s\n", warning.parameter.c_str(), warning.message.c_str());
        models_.push_back(std::make_shared<ServedModel>(std::move(model),
                                                        ServedModel::Names{options_.aliases, options_.tags},
                                                        options_.parallel, options_.most_per_key));
        return success();
    } catch (const Exception& error) {
        return Error{error.code(), error.what()};
    }
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

std::string Service::rendered(ServedModel& model, const Request& request) const {
    try {
        return model.engine().detokenize(model.engine().render(request).tokens);
    } catch (const Exception& error) {
        throw model.error_of(error, &request);
    }
}

std::int64_t Service::count_tokens(ServedModel& model, const Request& request) const {
    try {
        return static_cast<std::int64_t>(model.engine().render(request).tokens.size());
    } catch (const Exception& error) {
        throw model.error_of(error, &request);
    }
}

std::string Service::metrics() const {
    std::string out;
    counts_.write(out);
    write_model_metrics(out, models_);
    return out;
}

}  // namespace headrace::serve
