#include <fmt/format.h>

#include <bit>
#include <iterator>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/api/vectors.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {

std::string number_list(const std::vector<float>& vector) {
    std::string text = "[";
    text.reserve(vector.size() * 14);
    for (const float value : vector)
        fmt::format_to(std::back_inserter(text), "{}{}", text.size() > 1 ? "," : "", value);
    return text + "]";
}

std::string base64_of(const std::vector<float>& vector) {
    static_assert(std::endian::native == std::endian::little);
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto* bytes = reinterpret_cast<const unsigned char*>(vector.data());
    const std::size_t size = vector.size() * sizeof(float);
    std::string text;
    text.reserve((size + 2) / 3 * 4);
    for (std::size_t i = 0; i < size; i += 3) {
        const std::size_t count = std::min<std::size_t>(3, size - i);
        unsigned group = 0;
        for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0u);
        for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

std::vector<TextEmbedding> embed(ServedModel& model, const HttpRequest& http, const Json& body,
                                 std::string_view key) {
    const Fields fields(body);
    Parameters parameters;
    if (const auto norm = fields.integer("embd_normalize", -1, 1 << 20))
        parameters.set("embd_normalize", *norm);
    for (std::string_view name : {"timeout_ms", "priority"})
        if (const Json* value = fields.any(name)) parameters.set(std::string(name), value_of(*value));
    const auto sequences = prompts_of(model, fields.required(key), key);
    const auto place = model.places().enter(http.client, -1);
    std::vector<TextEmbedding> all(sequences.size());
    try {
        if (model.kind() == ModelKind::token_vectors) {
            for (std::size_t i = 0; i < sequences.size(); ++i)
                all[i].vectors = model.engine().embed_tokens(sequences[i], parameters).vectors;
        } else {
            Embeddings made = model.engine().embed_sequences(sequences, parameters);
            for (std::size_t i = 0; i < sequences.size(); ++i)
                all[i].vectors.push_back(std::move(made.vectors[i]));
        }
    } catch (const Exception& error) {
        throw model.error_of(error);
    }
    for (std::size_t i = 0; i < sequences.size(); ++i)
        all[i].tokens = static_cast<std::int64_t>(sequences[i].size());
    return all;
}

HttpResponse openai_embeddings(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const Fields fields(body);
    const auto model = service.embedding_model(body);
    if (model->kind() == ModelKind::token_vectors)
        throw wrong_field(
            "", "with pooling none a text has a vector for each token; POST /embeddings gives those");
    const std::string format = fields.text("encoding_format").value_or("float");
    if (format != "float" && format != "base64")
        throw wrong_field("encoding_format", fmt::format("is '{:.40}'; it must be float or base64", format));
    if (const auto size = fields.integer("dimensions", 1, INT32_MAX);
        size && *size != model->info().embedding_size)
        throw wrong_field("dimensions", fmt::format("is {}; this model's vectors have {}", *size,
                                                    model->info().embedding_size));
    std::string data;
    std::int64_t tokens = 0;
    const std::vector<TextEmbedding> all = embed(*model, http, body, "input");
    for (std::size_t i = 0; i < all.size(); ++i) {
        tokens += all[i].tokens;
        const std::vector<float>& vector = all[i].vectors.front();
        const std::string written = format == "float" ? number_list(vector) : '"' + base64_of(vector) + '"';
        fmt::format_to(std::back_inserter(data),
                       "{}{{\"embedding\":{},\"index\":{},\"object\":\"embedding\"}}", i ? "," : "", written,
                       i);
    }
    const Json rest = {{"model", model->id()},
                       {"object", "list"},
                       {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
    std::string text = text_of(rest);
    text.pop_back();
    return {.body = fmt::format("{},\"data\":[{}]}}", text, data)};
}

}  // namespace headrace::serve
