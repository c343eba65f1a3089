#include "base/utf8.h"
#include "doors/serve/api/llama_server.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/api/vectors.h"
#include "doors/serve/request/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace headrace::serve {
HttpResponse tokenize(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const Fields fields(body);
    const auto model = service.language_model(http, body);
    std::vector<std::int32_t> tokens;
    if (const Json* content = fields.any("content")) {
        const bool special = fields.flag("add_special").value_or(false);
        if (content->is_string())
            tokens = model->engine().tokenize(content->get<std::string>(), special,
                                              fields.flag("parse_special").value_or(true));
        else
            tokens = prompts_of(*model, *content, "content", special).front();
    }
    if (!fields.flag("with_pieces").value_or(false)) return {.body = text_of({{"tokens", tokens}})};
    Json all = Json::array();
    for (const std::int32_t token : tokens) {
        const std::string piece = model->engine().detokenize({token});
        Json shown = piece;
        if (find_invalid_utf8(piece)) {  // a part of a character
            shown = Json::array();
            for (const char byte : piece) shown.push_back(static_cast<unsigned char>(byte));
        }
        all.push_back({{"id", token}, {"piece", std::move(shown)}});
    }
    return {.body = text_of({{"tokens", std::move(all)}})};
}

HttpResponse detokenize(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.language_model(http, body);
    std::string text;
    if (const Json* tokens = Fields(body).list("tokens"); tokens && !tokens->empty())
        text = model->engine().detokenize(prompts_of(*model, *tokens, "tokens", false).front());
    return {.body = text_of({{"content", text}})};
}

HttpResponse apply_template(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    const ChatBody chat = service.read_chat(body, *model, ChatRules::llama_server);
    return {.body = text_of({{"prompt", model->render(chat.request, chat.options.names).text}})};
}

HttpResponse embeddings(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const bool is_old = !Fields(body).any("input");
    static_cast<void>(is_base64(Fields(body)));  // vectors of tokens are numbers whatever is asked for
    const std::vector<TextEmbedding> all =
        vector_model(service, http, body).embed(is_old ? "content" : "input");
    std::string text = "[";
    for (std::size_t i = 0; i < all.size(); ++i) {
        fmt::format_to(std::back_inserter(text), "{}{{\"index\":{},\"embedding\":[", i ? "," : "", i);
        for (std::size_t j = 0; j < all[i].vectors.size(); ++j)
            text.append(j ? "," : "").append(number_list(all[i].vectors[j]));
        text += "]}";
    }
    return {.body = text + "]"};
}

HttpResponse rerank(Service& service, const HttpRequest& http) {
    constexpr std::size_t kMost = 4096;
    const Json body = parse_body(http.body);
    const Fields fields(body);
    static_cast<void>(service.spec_for(body, Role::scores));
    const std::string query = fields.required_text("query");
    const Json* given = fields.list("documents");
    const std::string_view key = given ? "documents" : "texts";
    if (!given) given = fields.list("texts");
    if (!given || given->empty()) throw wrong_field("documents", "must be a list of at least one text");
    if (given->size() > kMost)
        throw wrong_field(fields.name(key),
                          fmt::format("has {} texts; at most {} are taken", given->size(), kMost));
    std::vector<std::string> documents;
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Json& entry = (*given)[i];
        documents.push_back(
            entry.is_object()   ? Fields(entry, fmt::format("{}[{}]", key, i)).required_text("text")
            : entry.is_string() ? entry.get<std::string>()
                                : throw wrong_field(fmt::format("{}[{}]", key, i), "must be a text"));
    }
    const auto top = static_cast<std::size_t>(
        fields.integer("top_n", 1, INT32_MAX).value_or(static_cast<std::int64_t>(documents.size())));
    const bool shows = fields.flag("return_documents").value_or(fields.flag("return_text").value_or(false));
    const Ranking made = rank(service, http, body, query, documents);
    std::vector<std::size_t> order(documents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return made.scores[a] > made.scores[b]; });
    order.resize(std::min(order.size(), top));
    const bool is_tei = key == "texts";  // Hugging Face's shape
    Json results = Json::array();
    for (const std::size_t i : order) {
        Json entry = {{"index", i}, {is_tei ? "score" : "relevance_score", made.scores[i]}};
        if (shows)
            entry[is_tei ? "text" : "document"] = is_tei ? Json(documents[i]) : Json{{"text", documents[i]}};
        results.push_back(std::move(entry));
    }
    if (is_tei) return {.body = text_of(results)};
    return {.body = text_of({{"model", made.model},
                             {"object", "list"},
                             {"usage", {{"prompt_tokens", made.tokens}, {"total_tokens", made.tokens}}},
                             {"results", std::move(results)}})};
}

}  // namespace headrace::serve
