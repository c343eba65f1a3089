#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "doors/serve/api/anthropic.h"

namespace headrace::serve {
namespace {

Json anthropic_entry(const ListedModel& listed) {
    const auto& [language, graph] = listed.model;
    const std::time_t created = language ? language->loaded_at
                                : graph
                                    ? graph->loaded_at
                                    : std::chrono::system_clock::to_time_t(change_of(listed.spec->path()));
    // It is not known of a model that is not in memory.
    const Json context = language ? Json(language->info().request_tokens)
                         : graph  ? Json(graph->info().most_tokens)
                                  : Json();
    const std::string& id = listed.spec->id();
    return {
        {"type", "model"},       {"id", id},
        {"display_name", id},    {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(created))},
        {"lifecycle", "active"}, {"deprecated_at", nullptr},
        {"retires_at", nullptr}, {"max_input_tokens", context},
        {"max_tokens", context}};
}

Json all_entries(const Service& service) {
    Json all = Json::array();
    for (const ListedModel& listed : service.listed()) all.push_back(anthropic_entry(listed));
    return all;
}

std::string_view page_query(const HttpRequest& http, const char* name) {
    const auto found = http.query.find(name);
    return found == http.query.end() ? std::string_view() : std::string_view(found->second);
}

std::size_t page_limit_of(const HttpRequest& http) {
    constexpr std::size_t kUsual = 20, kMost = 1000;
    const std::string_view text = page_query(http, "limit");
    if (text.empty()) return kUsual;
    std::size_t limit = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || limit < 1 || limit > kMost)
        throw wrong_field("limit", fmt::format("is '{:.40}'; it must be from 1 to {}", text, kMost));
    return limit;
}

/// The place of the model that a page ends or begins at.
std::size_t page_place_of(const Json& all, std::string_view id, const char* name) {
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i]["id"] == id) return i;
    throw wrong_field(name, fmt::format("is '{:.100}', which is no model", id));
}

}  // namespace

HttpResponse anthropic_models(Service& service, const HttpRequest& http) {
    const Json all = all_entries(service);
    const std::string_view after = page_query(http, "after_id"), before = page_query(http, "before_id");
    const std::size_t limit = page_limit_of(http);
    std::size_t first = 0, end = all.size();
    if (!after.empty()) first = page_place_of(all, after, "after_id") + 1;
    if (!before.empty()) end = page_place_of(all, before, "before_id");
    const std::size_t count = end > first ? end - first : 0;
    const bool has_more = count > limit;
    if (has_more && !before.empty())
        first = end - limit;
    else
        end = first + std::min(count, limit);
    Json page = Json::array();
    for (std::size_t i = first; i < end; ++i) page.push_back(all[i]);
    const auto id_of = [&](std::size_t place) { return page.empty() ? Json() : page[place]["id"]; };
    Json body = {{"data", page}, {"has_more", has_more}};
    body["first_id"] = id_of(0);
    body["last_id"] = id_of(page.empty() ? 0 : page.size() - 1);
    return {.body = text_of(body)};
}

HttpResponse anthropic_model(Service& service, const HttpRequest& http) {
    const std::string name = http.path.substr(std::string_view("/v1/models/").size());
    for (const ListedModel& listed : service.listed())
        if (listed.spec->answers_to(name)) return {.body = text_of(anthropic_entry(listed))};
    throw not_found(fmt::format("there is no model '{:.100}'", name));
}

}  // namespace headrace::serve
