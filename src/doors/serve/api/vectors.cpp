#include "doors/serve/api/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/parameter_json.h"
#include "doors/serve/api/encoder_requests.h"
#include "doors/serve/api/shapes.h"

namespace headrace::serve {
namespace {

/// To what the model reads, with the mark that ends every text.
void cut(ServedModel& model, std::vector<std::int32_t>& tokens) {
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(model.info().request_tokens, 1));
    if (tokens.size() <= most) return;
    const std::int32_t last = tokens.back();
    const std::vector<std::int32_t> marks = model.engine().tokenize("", true, false);
    tokens.resize(most);
    if (!marks.empty() && marks.back() == last) tokens.back() = last;
}

std::vector<TextEmbedding> embed(ServedModel& model, const HttpRequest& http, const Json& body,
                                 std::string_view key) {
    const Fields fields(body);
    Parameters parameters;
    if (const auto norm = fields.integer("embd_normalize", -1, 1 << 20))
        parameters.set("embd_normalize", *norm);
    for (std::string_view name : {"timeout_ms", "priority"})
        if (const Json* value = fields.any(name)) parameters.set(std::string(name), parameter_of(*value));
    auto sequences = prompts_of(model, fields.required(key), key);
    if (fields.flag("truncate").value_or(false))
        for (std::vector<std::int32_t>& tokens : sequences) cut(model, tokens);
    const auto place = model.places().enter(http.client, -1);
    place->asks_for(parameters, false, http.client);
    http.record->set_model(model.id());
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
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        all[i].tokens = static_cast<std::int64_t>(sequences[i].size());
        http.record->add({.prompt_tokens = all[i].tokens});
    }
    return all;
}

}  // namespace

bool is_base64(const Fields& body) {
    const std::string format = body.text("encoding_format").value_or("float");
    if (format != "float" && format != "base64")
        throw wrong_field("encoding_format", fmt::format("is '{:.40}'; it must be float or base64", format));
    return format == "base64";
}

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

namespace {

VectorModel vector_model(std::shared_ptr<ServedModel> model, const HttpRequest& http, const Json& body) {
    return {.id = model->id(),
            .width = model->info().embedding_size,
            .is_by_token = model->kind() == ModelKind::token_vectors,
            .embed = [model, &http, &body](std::string_view key) { return embed(*model, http, body, key); }};
}

VectorModel vector_model(std::shared_ptr<EncoderModel> model, const HttpRequest& http, const Json& body) {
    return {.id = model->id(),
            .width = model->info().width,
            .embed = [model, &http, &body](std::string_view key) {
                return encode_texts(*model, http, body, key);
            }};
}

}  // namespace

VectorModel vector_model(AnyModel model, const HttpRequest& http, const Json& body) {
    return model.graph ? vector_model(std::move(model.graph), http, body)
                       : vector_model(std::move(model.language), http, body);
}

VectorModel vector_model(Service& service, const HttpRequest& http, const Json& body) {
    return vector_model(service.any_model_for(http, body, Role::vectors), http, body);
}

Ranking rank(Service& service, const HttpRequest& http, const Json& body, const std::string& query,
             const std::vector<std::string>& documents) {
    const AnyModel found = service.any_model_for(http, body, Role::scores);
    if (found.graph) return encode_pairs(*found.graph, http, body, query, documents);
    const auto model = found.language;
    const auto place = model->places().enter(http.client, -1);
    http.record->set_model(model->id());
    try {
        RankScores made = model->engine().rerank(query, documents);
        http.record->add({.prompt_tokens = made.tokens});
        return {model->id(), std::move(made.scores), made.tokens};
    } catch (const Exception& error) {
        throw model->error_of(error);
    }
}

}  // namespace headrace::serve
