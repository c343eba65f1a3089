#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

/// The entry of a model of either lane.
template <class Model>
Json entry(const Model& model, Json aliases, Json tags, Json meta) {
    return {{"id", model.id()},       {"aliases", std::move(aliases)}, {"tags", std::move(tags)},
            {"object", "model"},      {"created", model.loaded_at},    {"owned_by", "headrace"},
            {"meta", std::move(meta)}};
}

/// llama.cpp's number of a kind of tokenizer.
std::size_t vocabulary_number(std::string_view kind) {
    constexpr std::array<std::string_view, 7> kKinds = {"none", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLaMo2"};
    const auto found = std::ranges::find(kKinds, kind);
    return found == kKinds.end() ? 0 : static_cast<std::size_t>(found - kKinds.begin());
}

Json entry_of(const ServedModel& model) {
    const ModelInfo& info = model.info();
    return entry(model, model.names().aliases, model.names().tags,
                 {{"vocab_type", vocabulary_number(info.vocabulary)},
                  {"n_vocab", info.vocabulary_size},
                  {"n_ctx", info.request_tokens},
                  {"n_ctx_train", info.training_context},
                  {"n_embd", info.embedding_size},
                  {"n_params", info.parameters},
                  {"ftype", weights_kind(info)},
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

/// The entry of a model that is not in memory.
Json entry_of(const ModelSpec& spec) {
    return {{"id", spec.id()},
            {"aliases", spec.names()},
            {"tags", spec.tags()},
            {"object", "model"},
            {"created", std::chrono::system_clock::to_time_t(change_of(spec.path()))},
            {"owned_by", "headrace"},
            {"meta", nullptr}};
}

std::string_view name_of(ModelPool::State state) {
    switch (state) {
        case ModelPool::State::loaded: return "loaded";
        case ModelPool::State::waiting:
        case ModelPool::State::loading: return "loading";
        case ModelPool::State::leaving: return "unloading";
        case ModelPool::State::unloaded: break;
    }
    return "unloaded";
}

Json listed_entry(const ListedModel& listed) {
    const bool sees = listed.model.language && listed.model.language->info().reads_images;
    Json entry = listed.model.language ? entry_of(*listed.model.language)
                 : listed.model.graph  ? entry_of(*listed.model.graph)
                                       : entry_of(*listed.spec);
    entry["architecture"] = {{"input_modalities", sees ? Json{"text", "image"} : Json::array({"text"})},
                             {"output_modalities", Json::array({"text"})}};
    entry["status"] = {{"value", name_of(listed.state)}};
    if (listed.failure.empty()) return entry;
    entry["status"]["failed"] = true;
    entry["status"]["message"] = listed.failure;
    return entry;
}

/// The list that llama-server has beside OpenAI's, in the shape of Ollama's. Like there, most of it is empty.
Json named_entry(const ListedModel& listed) {
    const Role role = listed.spec->role();
    Json abilities = Json::array({role == Role::text      ? "completion"
                                  : role == Role::vectors ? "embedding"
                                                          : "rerank"});
    if (listed.model.language && listed.model.language->info().reads_images)
        abilities.push_back("multimodal");
    const std::string& id = listed.spec->id();
    return {{"name", id},
            {"model", id},
            {"modified_at", ""},
            {"size", ""},
            {"digest", ""},
            {"type", "model"},
            {"description", ""},
            {"tags", listed.spec->tags()},
            {"capabilities", std::move(abilities)},
            {"parameters", ""},
            {"details",
             {{"parent_model", ""},
              {"format", listed.spec->is_graph() ? "hrg" : "gguf"},
              {"family", ""},
              {"families", Json::array({""})},
              {"parameter_size", ""},
              {"quantization_level", ""}}}};
}

}  // namespace

HttpResponse openai_models(Service& service, const HttpRequest&) {
    Json all = Json::array(), named = Json::array();
    for (const ListedModel& listed : service.listed()) {
        all.push_back(listed_entry(listed));
        named.push_back(named_entry(listed));
    }
    return {.body = text_of({{"models", std::move(named)}, {"object", "list"}, {"data", std::move(all)}})};
}

HttpResponse openai_model(Service& service, const HttpRequest& http) {
    const std::string name = http.path.substr(http.path.rfind('/', http.path.find("models/") + 6) + 1);
    for (const ListedModel& listed : service.listed())
        if (listed.spec->answers_to(name)) return {.body = text_of(listed_entry(listed))};
    throw not_found(fmt::format("there is no model '{:.100}'", name));
}

namespace {

std::shared_ptr<const ModelSpec> spec_in(const Service& service, const Json& body) {
    const std::string name = Fields(body).required_text("model");
    if (auto spec = service.spec_of(name)) return spec;
    throw not_found(fmt::format("there is no model '{:.100}'", name));
}

}  // namespace

HttpResponse load_model(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    HttpRequest asks = http;
    asks.query["autoload"] = "true";
    static_cast<void>(service.acquire(asks, body, *spec_in(service, body)));
    return {.body = text_of({{"success", true}})};
}

HttpResponse unload_model(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto spec = spec_in(service, body);
    if (!service.unload(*spec))
        throw wrong_field("model", fmt::format("'{:.100}' is not loaded", spec->id()));
    return {.body = text_of({{"success", true}})};
}

}  // namespace headrace::serve
