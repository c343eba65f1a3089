#include <fmt/format.h>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/shapes.h"

namespace headrace::serve {
namespace {

/// Of either lane.
template <class Model>
Json entry(const Model& model, Json aliases, Json tags, Json meta) {
    return {{"id", model.id()},       {"aliases", std::move(aliases)}, {"tags", std::move(tags)},
            {"object", "model"},      {"created", model.loaded_at},    {"owned_by", "headrace"},
            {"meta", std::move(meta)}};
}

Json entry_of(const ServedModel& model) {
    const ModelInfo& info = model.info();
    return entry(model, model.names().aliases, model.names().tags,
                 {{"vocab_type", info.vocabulary},
                  {"n_vocab", info.vocabulary_size},
                  {"n_ctx", info.request_tokens},
                  {"n_ctx_train", info.training_context},
                  {"n_embd", info.embedding_size},
                  {"n_params", info.parameters},
                  {"size", info.bytes}});
}

Json entry_of(const EncoderModel& model) {
    const TextEncoderInfo& info = model.info();
    return entry(model, model.aliases(), Json::array(),
                 {{"n_vocab", info.vocabulary_size},
                  {"n_ctx", info.most_tokens},
                  {"n_ctx_train", info.most_tokens},
                  {"n_embd", info.width},
                  {"size", info.bytes}});
}

}  // namespace

HttpResponse openai_models(Service& service, const HttpRequest&) {
    Json all = Json::array();
    for (const auto& model : service.models()) all.push_back(entry_of(*model));
    for (const auto& model : service.encoders()) all.push_back(entry_of(*model));
    return {.body = text_of({{"object", "list"}, {"data", std::move(all)}})};
}

HttpResponse openai_model(Service& service, const HttpRequest& http) {
    const std::string name = http.path.substr(http.path.rfind('/', http.path.find("models/") + 6) + 1);
    for (const auto& model : service.models())
        if (model->answers_to(name)) return {.body = text_of(entry_of(*model))};
    for (const auto& model : service.encoders())
        if (model->answers_to(name)) return {.body = text_of(entry_of(*model))};
    throw not_found(fmt::format("there is no model '{:.100}'", name));
}

}  // namespace headrace::serve
