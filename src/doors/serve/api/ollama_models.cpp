#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "doors/serve/api/ollama.h"
#include "doors/serve/api/ollama_names.h"
#include "doors/serve/api/vectors.h"

namespace headrace::serve {

std::string timestamp() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    const std::time_t seconds = us / 1'000'000;
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, us % 1'000'000);
}

namespace {

ApiError of_another_kind(std::string_view name, ModelKind kind) {
    return wrong_field("model", fmt::format("'{:.100}' is not of that kind: it {}", name,
                                            kind == ModelKind::text     ? "answers texts"
                                            : kind == ModelKind::scores ? "ranks documents"
                                                                        : "turns texts into vectors"));
}

}  // namespace

std::shared_ptr<ServedModel> named(Service& service, const Fields& body, ModelKind kind) {
    const std::string name = body.text("model").value_or("");
    if (name.empty()) throw wrong_field("model", "is missing");
    for (const auto& model : service.models())
        if (is_named(*model, name)) {
            if (model->kind() != kind) throw of_another_kind(name, model->kind());
            return model;
        }
    throw not_found(fmt::format("model '{:.100}' not found", name));
}

namespace {

/// The same of one that gives vectors.
VectorModel named_vectors(Service& service, const HttpRequest& http, const Json& given) {
    const std::string name = Fields(given).text("model").value_or("");
    for (const auto& encoder : service.encoders()) {
        if (!is_named(*encoder, name)) continue;
        if (encoder->info().ranks) throw of_another_kind(name, ModelKind::scores);
        return vector_model(encoder, http, given);
    }
    return vector_model(named(service, Fields(given), ModelKind::vectors), http, given);
}

Json model_entry(const ServedModel& model) {
    const ModelInfo& info = model.info();
    return {{"name", model.id()},
            {"model", model.id()},
            {"modified_at", timestamp()},
            {"size", info.bytes},
            {"digest", ""},
            {"details",
             {{"parent_model", ""},
              {"format", "gguf"},
              {"family", info.description},
              {"families", Json::array({info.description})},
              {"parameter_size", fmt::format("{:.1f}M", static_cast<double>(info.parameters) / 1e6)},
              {"quantization_level", ""}}}};
}

Json model_entry(const EncoderModel& model) {
    return {{"name", model.id()},
            {"model", model.id()},
            {"modified_at", timestamp()},
            {"size", model.info().bytes},
            {"digest", ""},
            {"details",
             {{"parent_model", ""},
              {"format", "hrg"},
              {"family", ""},
              {"families", Json::array()},
              {"parameter_size", ""},
              {"quantization_level", ""}}}};
}

/// Of /api/show.
Json shown(const EncoderModel& model) {
    Json abilities = Json::array();
    if (!model.info().ranks) abilities.push_back("embedding");
    return {{"modelfile", ""},
            {"parameters", ""},
            {"template", ""},
            {"details", model_entry(model)["details"]},
            {"model_info",
             {{"general.context_length", model.info().most_tokens},
              {"general.embedding_length", model.info().width}}},
            {"capabilities", std::move(abilities)},
            {"modified_at", timestamp()}};
}

}  // namespace

HttpResponse ollama_embed(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const std::vector<TextEmbedding> all = named_vectors(service, http, given).embed("input");
    std::string text =
        fmt::format("{{\"model\":{},\"embeddings\":[", text_of(Json(body.required_text("model"))));
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        text.append(i ? "," : "").append(number_list(all[i].vectors.front()));
        tokens += all[i].tokens;
    }
    return {.body = fmt::format("{}],\"total_duration\":0,\"load_duration\":0,\"prompt_eval_count\":{}}}",
                                text, tokens)};
}

HttpResponse ollama_old_embeddings(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const std::vector<TextEmbedding> all = named_vectors(service, http, given).embed("prompt");
    return {.body = "{\"embedding\":" + number_list(all.front().vectors.front()) + "}"};
}

HttpResponse ollama_tags(Service& service, const HttpRequest&) {
    Json all = Json::array();
    for (const auto& model : service.models()) all.push_back(model_entry(*model));
    for (const auto& model : service.encoders()) all.push_back(model_entry(*model));
    return {.body = text_of({{"models", std::move(all)}})};
}

HttpResponse ollama_show(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const std::string name = body.text("model").value_or(body.text("name").value_or(""));
    if (name.empty()) throw wrong_field("model", "is missing");
    for (const auto& model : service.models()) {
        if (!is_named(*model, name)) continue;
        const ModelInfo& info = model->info();
        Json abilities = Json::array();
        if (model->kind() == ModelKind::text) abilities.push_back("completion");
        if (model->kind() == ModelKind::vectors) abilities.push_back("embedding");
        const auto tools = info.template_abilities.find("supports_tools");
        if (tools != info.template_abilities.end() && tools->second) abilities.push_back("tools");
        if (info.fill_middle >= 0) abilities.push_back("insert");
        return {.body = text_of({{"modelfile", ""},
                                 {"parameters", ""},
                                 {"template", info.chat_template},
                                 {"details", model_entry(*model)["details"]},
                                 {"model_info",
                                  {{"general.parameter_count", info.parameters},
                                   {"general.context_length", info.training_context},
                                   {"general.embedding_length", info.embedding_size},
                                   {"tokenizer.ggml.model", info.vocabulary}}},
                                 {"capabilities", std::move(abilities)},
                                 {"modified_at", timestamp()}})};
    }
    for (const auto& encoder : service.encoders())
        if (is_named(*encoder, name)) return {.body = text_of(shown(*encoder))};
    throw not_found(fmt::format("model '{:.100}' not found", name));
}

HttpResponse ollama_running(Service& service, const HttpRequest&) {
    Json all = Json::array();
    for (const auto& model : service.encoders()) {
        Json entry = model_entry(*model);
        entry["expires_at"] = "9999-12-31T23:59:59Z";
        entry["size_vram"] = 0;
        entry["context_length"] = model->info().most_tokens;
        all.push_back(std::move(entry));
    }
    for (const auto& model : service.models()) {
        Json entry = model_entry(*model);
        entry["expires_at"] = "9999-12-31T23:59:59Z";
        entry["size_vram"] = 0;
        entry["context_length"] = model->info().request_tokens;
        all.push_back(std::move(entry));
    }
    return {.body = text_of({{"models", std::move(all)}})};
}

HttpResponse ollama_version(Service&, const HttpRequest&) {
    return {.body = text_of({{"version", HEADRACE_VERSION}})};
}

}  // namespace headrace::serve
