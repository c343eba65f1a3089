#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/parameter_json.h"
#include "doors/serve/api/llama_server.h"
#include "doors/serve/api/settings_json.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {

namespace {

/// llama-server's names of what makes drafts.
std::string_view drafts_by(const ServedModel& model, const Json& settings) {
    if (settings.value("speculative", false) == false) return "none";
    return model.given().parameters.find("draft_model") ? "draft-simple" : "ngram-simple";
}

}  // namespace

Json settings_json(ServedModel& model, const Parameters& parameters, bool streams) {
    Json all = json_object_of<Json>(model.engine().effective(parameters));
    // By the names that llama-server shows; requests may use either.
    for (const auto& [own, shown] : {std::pair{"temp", "temperature"}, {"penalty_last_n", "repeat_last_n"}})
        if (const auto found = all.find(own); found != all.end()) {
            all[shown] = *found;
            all.erase(own);
        }
    all["max_tokens"] = all["n_predict"];
    all["stream"] = streams;
    // The state of completions, which are no chats.
    all["chat_format"] = "Content-only";
    all["generation_prompt"] = "";
    all["reasoning_in_content"] = false;
    all["backend_sampling"] = false;
    all["speculative.types"] = drafts_by(model, all);
    return all;
}

namespace {

/// The properties of a model that is not in memory.
Json sleeping_props(const ModelSpec& spec) {
    return {{"total_slots", spec.options().parallel},
            {"model_alias", spec.id()},
            {"model_path", std::filesystem::path(spec.path()).filename().string()},
            {"build_info", fingerprint()},
            {"is_sleeping", true}};
}

bool speculates(const ServedModel& model) { return model.given().parameters.find("speculative") != nullptr; }

}  // namespace

HttpResponse props(Service& service, const HttpRequest& http) {
    const auto spec = service.queried_spec(http);
    const auto model = service.loaded_model(*spec, http);
    if (!model) return {.body = text_of(sleeping_props(*spec))};
    const ModelInfo& info = model->info();
    const Json settings = {
        {"id", 0},
        {"id_task", -1},
        {"n_ctx", info.request_tokens},
        {"speculative", speculates(*model)},
        {"is_processing", false},
        {"params", settings_json(*model, {}, true)},
        {"prompt", ""},
        {"next_token",
         {{"has_next_token", true}, {"has_new_line", false}, {"n_remain", -1}, {"n_decoded", 0}}}};
    return {.body =
                text_of({{"default_generation_settings", settings},
                         {"total_slots", model->places().count()},
                         {"model_alias", model->id()},
                         {"model_path", std::filesystem::path(info.path).filename().string()},
                         {"chat_template", info.chat_template},
                         {"chat_template_caps", info.template_abilities},
                         {"modalities", {{"vision", info.reads_images}, {"audio", false}, {"video", false}}},
                         {"bos_token", info.begin_of_text},
                         {"eos_token", info.end_of_text},
                         {"model_ftype", weights_kind(info)},
                         {"cors_proxy_enabled", false},
                         {"ui", service.options().offers_page},
                         {"ui_settings", Json::object()},
                         {"endpoint_slots", service.options().offers_slots},
                         {"endpoint_props", service.options().changes_props},
                         {"endpoint_metrics", service.options().offers_metrics},
                         {"build_info", fingerprint()},
                         {"is_sleeping", false}})};
}

HttpResponse change_props(Service& service, const HttpRequest& http) {
    if (!service.options().changes_props)
        throw not_offered("This server does not support changing global properties. Start it with `--props`");
    parse_body(http.body);
    return {.body = text_of({{"success", true}})};  // as in llama-server, there is none that can be changed
}

namespace {

/// How far a slot's answer is, and how far it may go.
Json next_token_of(const PlaceState& state, const Json& parameters) {
    const std::int64_t most = parameters.value("n_predict", std::int64_t{-1});
    return {{"has_next_token", state.is_processing},
            {"has_new_line", state.has_new_line},
            {"n_remain", most < 0 ? -1 : most - state.generated_tokens},
            {"n_decoded", state.generated_tokens}};
}

/// What a slot shows of its request, or of its last one. Nothing of one that the engine refused.
Json work_of(ServedModel& model, const PlaceState& state) {
    Json shown = Json::object();
    try {
        shown["params"] = settings_json(model, state.parameters, state.streams);
    } catch (const Exception&) {
        return shown;
    }
    shown["next_token"] = Json::array({next_token_of(state, shown["params"])});
    if (!state.is_processing)
        shown.update({{"n_prompt_tokens", state.tokens.size()},
                      {"n_prompt_tokens_processed", state.read_tokens},
                      {"n_prompt_tokens_cache", state.cached_tokens}});
    return shown;
}

}  // namespace

HttpResponse slots(Service& service, const HttpRequest& http) {
    if (!service.options().offers_slots)
        throw not_offered("This server does not support slots endpoint. Start it with `--slots`");
    const auto model = service.queried_model(http, false);
    Json all = Json::array();
    bool has_free = false;
    const std::vector<PlaceState> states = model->places().states();
    for (std::size_t i = 0; i < states.size(); ++i) {
        const PlaceState& state = states[i];
        has_free = has_free || !state.is_processing;
        Json slot = {{"id", i},
                     {"id_task", state.task},
                     {"n_ctx", model->info().request_tokens},
                     {"speculative", speculates(*model)},
                     {"is_processing", state.is_processing}};
        // What another key's request asked for is nobody else's to see.
        if (state.task >= 0 && state.client == http.client) slot.update(work_of(*model, state));
        all.push_back(std::move(slot));
    }
    const auto asked = http.query.find("fail_on_no_slot");
    if (asked != http.query.end() && asked->second != "0" && !has_free) throw overloaded("no slot available");
    return {.body = text_of(all)};
}

namespace {

int slot_of(const HttpRequest& http, std::size_t count) {
    const std::string text = http.path.substr(http.path.rfind('/') + 1);
    int slot = -1;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), slot);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || slot < 0)
        throw wrong_field("id_slot", fmt::format("is '{:.20}'; it must be from 0 to {}", text, count - 1));
    return slot % static_cast<int>(count);  // one beyond the last counts round
}

/// In the folder that the operator named, and nowhere else.
std::string saved_path(const Service& service, const Fields& body, std::string& name) {
    name = body.required_text("filename");
    const bool is_plain = !name.empty() && name.size() < 200 && name.front() != '.' &&
                          std::ranges::all_of(name, [](unsigned char c) {
                              return std::isalnum(c) || c == '.' || c == '_' || c == '-';
                          });
    if (!is_plain)
        throw wrong_field("filename", "must be a name of letters, digits, '.', '-' and '_', and no path");
    return (std::filesystem::path(service.options().slot_save_path) / name).string();
}

}  // namespace

HttpResponse change_slot(Service& service, const HttpRequest& http) {
    if (service.options().slot_save_path.empty())
        throw not_offered("This server does not support slots action. Start it with `--slot-save-path`");
    const auto model = service.queried_model(http, true);
    const int slot = slot_of(http, model->places().count());
    const auto action = http.query.find("action");
    const std::string what = action == http.query.end() ? "" : action->second;
    if (what != "save" && what != "restore" && what != "erase")
        throw wrong_field("action", fmt::format("is '{:.20}'; it must be save, restore or erase", what));
    const Json given = http.body.empty() ? Json::object() : parse_body(http.body);
    const Fields body(given);
    const PlaceState state = model->places().states()[static_cast<std::size_t>(slot)];
    if (!state.tokens.empty() && state.client != http.client)
        throw ApiError(403, "permission_error",
                       fmt::format("slot {} has what another key's request left; save and erase slots that "
                                   "your own requests had",
                                   slot));
    const std::vector<std::int32_t>& tokens = state.tokens;
    Json answer = {{"id_slot", slot}};
    std::string path, name;
    if (what != "erase") {
        path = saved_path(service, body, name);
        answer["filename"] = name;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto ms = [&] {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    try {
        if (what == "save") {
            const SavedPrompt saved = model->engine().save_prompt(tokens, path);
            answer.update(
                {{"n_saved", saved.tokens}, {"n_written", saved.bytes}, {"timings", {{"save_ms", ms()}}}});
        } else if (what == "restore") {
            SavedPrompt saved = model->engine().restore_prompt(path);
            model->places().set_tokens(slot, std::move(saved.text), http.client);
            answer.update(
                {{"n_restored", saved.tokens}, {"n_read", saved.bytes}, {"timings", {{"restore_ms", ms()}}}});
        } else {
            // The engine forgets every prompt that these tokens begin or that begins with them.
            answer["n_erased"] = std::min(model->engine().forget_prompt(tokens), std::int64_t(tokens.size()));
            model->places().set_tokens(slot, {}, http.client);
        }
    } catch (const Exception& error) {
        ApiError shown = api_error(error);
        if (shown.status == 404)
            shown = ApiError(400, "invalid_request_error", "");  // as llama-server has it
        throw ApiError(shown.status, shown.type, without_paths(error.what(), path));
    }
    return {.body = text_of(answer)};
}

HttpResponse adapters(Service& service, const HttpRequest& http) {
    const auto model = service.queried_model(http, false);
    const std::vector<float> scales = model->adapter_scales();
    Json all = Json::array();
    for (std::size_t i = 0; i < scales.size(); ++i)
        all.push_back({{"id", i},
                       {"path", std::filesystem::path(model->info().adapters[i].first).filename().string()},
                       {"scale", scales[i]},
                       {"task_name", ""},
                       {"prompt_prefix", ""}});
    return {.body = text_of(all)};
}

HttpResponse change_adapters(Service& service, const HttpRequest& http) {
    const auto model = service.queried_model(http, true);
    const Json given = parse_any_body(http.body);
    if (!given.is_array()) throw wrong_field("", "the body must be a list of {\"id\", \"scale\"}");
    std::vector<float> scales(model->info().adapters.size(), 0.0f);
    if (scales.empty() && !given.empty())
        throw wrong_field("", "this server has no adapters. Start it with `--lora` and their files");
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Fields entry(given[i], fmt::format("[{}]", i));
        const auto id = entry.integer("id", 0, static_cast<std::int64_t>(scales.size()) - 1);
        const Json* scale = entry.any("scale");  // without one it is 0, as in llama-server
        if (!id) throw wrong_field(entry.name("id"), "is missing");
        if (scale && !scale->is_number()) entry.wrong("scale", "a number");
        scales[static_cast<std::size_t>(*id)] = scale ? scale->get<float>() : 0.0f;
    }
    model->set_adapter_scales(std::move(scales));
    return {.body = text_of({{"success", true}})};
}

HttpResponse metrics(Service& service, const HttpRequest&) {
    if (!service.options().offers_metrics)
        throw not_offered("This server does not support metrics endpoint. Start it with `--metrics`");
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = service.metrics()};
}

}  // namespace headrace::serve
