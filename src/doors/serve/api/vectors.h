#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {

/// A text's vector, or, with pooling none, one of each of its tokens.
struct TextEmbedding {
    std::vector<std::vector<float>> vectors;
    std::int64_t tokens = 0;
};

/// What gives vectors for a request, a language model or a graph.
struct VectorModel {
    std::string id;
    std::int64_t width = 0;
    bool is_by_token = false;  ///< a vector of each token
    /// The vectors of the prompts in that field of the body: texts, tokens, or lists of such. Throws
    /// ApiError.
    std::function<std::vector<TextEmbedding>(std::string_view key)> embed;
};

/// The model that a body names, or the first that gives vectors. The request and its body must outlive it.
VectorModel vector_model(Service& service, const HttpRequest& http, const Json& body);
VectorModel vector_model(AnyModel model, const HttpRequest& http, const Json& body);

/// How well documents answer a query, in their order.
struct Ranking {
    std::string model;
    std::vector<float> scores;
    std::int64_t tokens = 0;
};
/// By the model that a body names, or the first that ranks. Throws ApiError.
Ranking rank(Service& service, const HttpRequest& http, const Json& body, const std::string& query,
             const std::vector<std::string>& documents);

/// Whether a request wants its vectors as base64. Throws ApiError for an encoding that there is not.
bool is_base64(const Fields& body);
/// "[0.1,0.2]", each number as short as a float's value allows.
std::string number_list(const std::vector<float>& vector);
/// The floats' bytes, the lowest first, in base64.
std::string base64_of(const std::vector<float>& vector);

}  // namespace headrace::serve
