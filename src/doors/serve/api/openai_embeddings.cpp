#include <fmt/format.h>

#include <iterator>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/vectors.h"

namespace headrace::serve {
namespace {

/// An empty text alone is read, as llama-server does.
void check_texts(const Fields& fields, std::string_view key) {
    constexpr std::size_t kMost = 2048;
    const Json* texts = fields.any(key);
    if (!texts || !texts->is_array() || (!texts->empty() && texts->front().is_number())) return;
    if (texts->size() > kMost)
        throw wrong_field(std::string(key),
                          fmt::format("has {} texts; at most {} are taken", texts->size(), kMost));
    for (std::size_t i = 0; i < texts->size(); ++i)
        if ((*texts)[i] == "") throw wrong_field(fmt::format("{}[{}]", key, i), "is empty");
}

}  // namespace

HttpResponse openai_embeddings(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const Fields fields(body);
    const VectorModel model = vector_model(service, http, body);
    if (model.is_by_token)
        throw wrong_field("",
                          "with pooling none a text has a vector for each token, which POST /embeddings "
                          "gives; a server that "
                          "is started with --pooling mean gives one for a text");
    const bool packed = is_base64(fields);
    if (const auto size = fields.integer("dimensions", 1, INT32_MAX); size && *size != model.width)
        throw wrong_field("dimensions",
                          fmt::format("is {}; this model's vectors have {}", *size, model.width));
    std::string data;
    std::int64_t tokens = 0;
    // llama-server's own name is taken, too.
    const bool is_old = !fields.any("input") && fields.any("content");
    const std::string_view key = is_old ? "content" : "input";
    check_texts(fields, key);
    const std::vector<TextEmbedding> all = model.embed(key);
    for (std::size_t i = 0; i < all.size(); ++i) {
        tokens += all[i].tokens;
        const std::vector<float>& vector = all[i].vectors.front();
        const std::string written =
            packed ? '"' + base64_of(vector) + "\",\"encoding_format\":\"base64\"" : number_list(vector);
        fmt::format_to(std::back_inserter(data),
                       "{}{{\"embedding\":{},\"index\":{},\"object\":\"embedding\"}}", i ? "," : "", written,
                       i);
    }
    const Json rest = {{"model", model.id},
                       {"object", "list"},
                       {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
    std::string text = text_of(rest);
    text.pop_back();
    return {.body = fmt::format("{},\"data\":[{}]}}", text, data)};
}

}  // namespace headrace::serve
