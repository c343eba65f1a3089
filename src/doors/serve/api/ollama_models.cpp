#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "base/content_hash.h"
#include "base/parameter_json.h"
#include "doors/serve/api/fill_middle.h"
#include "doors/serve/api/ollama.h"
#include "doors/serve/api/ollama_names.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/api/vectors.h"

namespace headrace::serve {

std::string timestamp(std::chrono::system_clock::time_point time) {
    const auto since = time.time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    const std::time_t seconds = us / 1'000'000;
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, us % 1'000'000);
}

std::shared_ptr<const ModelSpec> named_spec(const Service& service, std::string_view name,
                                            bool graphs_first) {
    if (name.empty()) throw wrong_field("model", "is missing");
    std::shared_ptr<const ModelSpec> other;
    for (const ListedModel& listed : service.listed()) {
        if (!is_named(*listed.spec, name)) continue;
        if (listed.spec->is_graph() == graphs_first) return listed.spec;
        if (!other) other = listed.spec;
    }
    if (!other) throw not_found(fmt::format("model '{:.100}' not found", name));
    return other;
}

namespace {

ApiError of_another_kind(std::string_view name, Role role) {
    return wrong_field("model", fmt::format("'{:.100}' is not of that kind: it {}", name, work_of(role)));
}

std::string name_in(const Json& body) { return Fields(body).text("model").value_or(""); }

}  // namespace

std::shared_ptr<const ModelSpec> language_spec(const Service& service, const Json& body) {
    auto spec = named_spec(service, name_in(body));
    if (spec->role() != Role::text) throw of_another_kind(name_in(body), spec->role());
    return spec;
}

std::shared_ptr<ServedModel> named_language(Service& service, const HttpRequest& http, const Json& body) {
    return service.acquire(http, body, *language_spec(service, body)).language;
}

namespace {

/// The same of one that gives vectors.
VectorModel named_vectors(Service& service, const HttpRequest& http, const Json& body) {
    const auto spec = named_spec(service, name_in(body), true);
    if (spec->role() != Role::vectors) throw of_another_kind(name_in(body), spec->role());
    VectorModel model = vector_model(service.acquire(http, body, *spec), http, body);
    if (model.is_by_token) throw of_another_kind(name_in(body), Role::vectors);
    return model;
}

/// As Ollama writes it: 8B, 1.5B, 494.03M.
std::string number_of(std::int64_t count) {
    const auto number = static_cast<double>(count);
    if (count >= 1'000'000'000) {
        const double billions = number / 1e9;
        return billions == std::floor(billions) ? fmt::format("{:.0f}B", billions)
                                                : fmt::format("{:.1f}B", billions);
    }
    if (count >= 1'000'000) return fmt::format("{:.2f}M", number / 1e6);
    return count >= 1000 ? fmt::format("{:.0f}K", number / 1e3) : fmt::format("{}", count);
}

/// Ollama's name of what llama.cpp calls "Q4_K - Medium".
std::string quantization_of(const ModelInfo& info) {
    const std::string kind = weights_kind(info);
    std::string_view text = kind;
    if (text.starts_with("all ")) text.remove_prefix(4);
    const auto dash = text.find(" - ");
    std::string name(text.substr(0, std::min(dash, text.find(' '))));
    if (dash == std::string_view::npos) return name;
    const char size = text[dash + 3];
    return size == 'S' || size == 'M' || size == 'L' ? name + "_" + size : name;
}

/// A name of the weights, as Ollama's is of a model's files; of a sample of them, as files may be large.
std::string digest_of(const std::string& what) {
    std::string digest;
    for (const std::string& text : {what, what + " again"}) {
        const ContentHash hash = content_hash(text.data(), text.size());
        digest += fmt::format("{:016x}{:016x}", hash.low, hash.high);
    }
    return digest;
}

Json model_entry(const ServedModel& model) {
    const ModelInfo& info = model.info();
    const std::string family = model.text_of_metadata("general.architecture");
    return {{"name", model.id()},
            {"model", model.id()},
            {"modified_at", timestamp(model.modified_at)},
            {"size", info.bytes},
            {"digest", digest_of(fmt::format("{} {} {}", info.weights_sample, info.bytes, info.parameters))},
            {"details",
             {{"parent_model", ""},
              {"format", "gguf"},
              {"family", family},
              {"families", Json::array({family})},
              {"parameter_size", number_of(info.parameters)},
              {"quantization_level", quantization_of(info)}}}};
}

Json model_entry(const EncoderModel& model) {
    const TextEncoderInfo& info = model.info();
    return {{"name", model.id()},
            {"model", model.id()},
            {"modified_at", timestamp(model.modified_at)},
            {"size", info.bytes},
            {"digest",
             digest_of(fmt::format("{} {} {} {}", model.id(), info.bytes, info.width, info.most_tokens))},
            {"details",
             {{"parent_model", ""},
              {"format", "hrg"},
              {"family", "encoder"},
              {"families", Json::array({"encoder"})},
              {"parameter_size", ""},
              {"quantization_level", ""}}}};
}

/// What a model of that kind can do, in Ollama's words.
Json abilities_of(const ServedModel& model) {
    const ModelInfo& info = model.info();
    Json all = Json::array();
    if (model.kind() == ModelKind::text) all.push_back("completion");
    if (model.kind() == ModelKind::vectors) all.push_back("embedding");
    if (model.kind() != ModelKind::text) return all;
    for (const auto& [ability, name] :
         {std::pair("supports_tools", "tools"), std::pair("supports_thinking", "thinking")}) {
        const auto able = info.template_abilities.find(ability);
        if (able != info.template_abilities.end() && able->second) all.push_back(name);
    }
    if (info.reads_images) all.push_back("vision");
    if (can_fill_middle(info)) all.push_back("insert");
    return all;
}

/// The file's metadata; what is long is null, as in Ollama's answer, and the template stands beside it.
Json metadata_of(const ModelInfo& info) {
    Parameters shown = info.metadata;
    for (const char* name : {"tokenizer.chat_template", "general.name"}) shown.erase(name);
    shown.set("general.parameter_count", info.parameters);
    return json_object_of<Json>(shown);
}

/// The answer of /api/show.
Json shown(const ServedModel& model) {
    return {{"modelfile", "FROM " + model.id()},          {"parameters", ""},
            {"template", model.info().chat_template},     {"details", model_entry(model)["details"]},
            {"model_info", metadata_of(model.info())},    {"capabilities", abilities_of(model)},
            {"modified_at", timestamp(model.modified_at)}};
}

Json shown(const EncoderModel& model) {
    Json abilities = Json::array();
    if (!model.info().ranks) abilities.push_back("embedding");
    return {{"modelfile", "FROM " + model.id()},
            {"parameters", ""},
            {"template", ""},
            {"details", model_entry(model)["details"]},
            {"model_info",
             {{"general.architecture", "encoder"},
              {"encoder.context_length", model.info().most_tokens},
              {"encoder.embedding_length", model.info().width}}},
            {"capabilities", std::move(abilities)},
            {"modified_at", timestamp(model.modified_at)}};
}

/// The entry of a model that is not in memory, as its file's header says.
Json model_entry(const ModelSpec& spec) {
    Json entry = {{"name", spec.id()},
                  {"model", spec.id()},
                  {"modified_at", timestamp(change_of(spec.path()))},
                  {"size", 0},
                  {"digest", digest_of(spec.id() + spec.file_version())},
                  {"details",
                   {{"parent_model", ""},
                    {"format", spec.is_graph() ? "hrg" : "gguf"},
                    {"family", ""},
                    {"families", Json::array()},
                    {"parameter_size", ""},
                    {"quantization_level", ""}}}};
    if (spec.is_graph()) return entry;
    try {
        const ModelOutline outline = outline_model(spec.path(), {.parameters = spec.parameters()}, false);
        entry["size"] = outline.weight_bytes;
        entry["details"]["family"] = outline.architecture;
        entry["details"]["families"] = Json::array({outline.architecture});
    } catch (const Exception&) {
        return entry;  // its load will say what is wrong with the file
    }
    return entry;
}

Json tag_of(const ListedModel& listed) {
    if (listed.model.language) return model_entry(*listed.model.language);
    return listed.model.graph ? model_entry(*listed.model.graph) : model_entry(*listed.spec);
}

/// The entry of /api/ps. Models that are not given back have no end.
Json running(Json entry, const ModelSpec& spec, std::int64_t device_bytes, std::int64_t context) {
    const std::chrono::seconds limit = spec.options().idle_limit;
    entry["expires_at"] =
        limit.count() == 0 ? "9999-12-31T23:59:59Z" : timestamp(std::chrono::system_clock::now() + limit);
    entry["size_vram"] = device_bytes;
    entry["context_length"] = context;
    return entry;
}

/// Its first numbers, with length 1 again.
void shorten(std::vector<float>& vector, std::size_t size) {
    if (size >= vector.size()) return;
    vector.resize(size);
    double sum = 0;
    for (const float value : vector) sum += static_cast<double>(value) * value;
    const auto length = static_cast<float>(std::sqrt(sum));
    for (float& value : vector) value = length > 0 ? value / length : 0;
}

bool is_nothing(const Json* input) { return !input || *input == "" || (input->is_array() && input->empty()); }

}  // namespace

HttpResponse ollama_embed(Service& service, const HttpRequest& http) {
    const auto begin = std::chrono::steady_clock::now();
    Json given = parse_body(http.body);
    if (!given.contains("truncate")) given["truncate"] = true;  // Ollama's default
    const Fields body(given);
    const VectorModel model = named_vectors(service, http, given);
    const auto size = body.integer("dimensions", 0, INT32_MAX).value_or(0);
    static_cast<void>(body.object("options"));
    std::vector<TextEmbedding> all;
    if (const Json* input = body.any("input"); !is_nothing(input)) {
        const auto is_text = [](const Json& text) { return text.is_string(); };
        if (!is_text(*input) && !(input->is_array() && std::ranges::all_of(*input, is_text)))
            body.wrong("input", "a text or a list of texts");
        all = model.embed("input");
    }
    std::string text =
        fmt::format("{{\"model\":{},\"embeddings\":[", text_of(Json(body.required_text("model"))));
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (size > 0) shorten(all[i].vectors.front(), static_cast<std::size_t>(size));
        text.append(i ? "," : "").append(number_list(all[i].vectors.front()));
        tokens += all[i].tokens;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    return {.body = fmt::format("{}],\"total_duration\":{},\"load_duration\":0,\"prompt_eval_count\":{}}}",
                                text, took.count(), tokens)};
}

HttpResponse ollama_old_embeddings(Service& service, const HttpRequest& http) {
    Json given = parse_body(http.body);
    given["truncate"] = true;
    const VectorModel model = named_vectors(service, http, given);
    if (is_nothing(Fields(given).any("prompt"))) return {.body = R"({"embedding":[]})"};
    const std::vector<TextEmbedding> all = model.embed("prompt");
    return {.body = "{\"embedding\":" + number_list(all.front().vectors.front()) + "}"};
}

HttpResponse ollama_tags(Service& service, const HttpRequest&) {
    Json all = Json::array();
    for (const ListedModel& listed : service.listed()) all.push_back(tag_of(listed));
    return {.body = text_of({{"models", std::move(all)}})};
}

HttpResponse ollama_show(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const auto spec = named_spec(service, body.text("model").value_or(body.text("name").value_or("")));
    const AnyModel model = service.acquire(http, given, *spec);
    return {.body = text_of(model.language ? shown(*model.language) : shown(*model.graph))};
}

HttpResponse ollama_running(Service& service, const HttpRequest&) {
    Json all = Json::array();
    for (const auto& [spec, state, failure, model] : service.listed())
        if (model.graph)
            all.push_back(running(model_entry(*model.graph), *spec, 0, model.graph->info().most_tokens));
    for (const auto& [spec, state, failure, model] : service.listed())
        if (model.language)
            all.push_back(running(model_entry(*model.language), *spec, model.language->info().device_bytes,
                                  model.language->info().request_tokens));
    return {.body = text_of({{"models", std::move(all)}})};
}

HttpResponse ollama_version(Service&, const HttpRequest&) {
    return {.body = text_of({{"version", HEADRACE_VERSION}})};
}

}  // namespace headrace::serve
