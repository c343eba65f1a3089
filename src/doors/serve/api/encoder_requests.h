#pragma once
#include "doors/serve/api/vectors.h"

// The requests that graphs answer.
namespace headrace::serve {

/// Vectors of the prompts in a field of a body. Throws ApiError with the field's name.
std::vector<TextEmbedding> encode_texts(EncoderModel& model, const HttpRequest& http, const Json& body,
                                        std::string_view key);
/// Scores from 0 to 1, or with `raw_scores` the graph's own. Throws ApiError.
Ranking encode_pairs(EncoderModel& model, const HttpRequest& http, const Json& body, const std::string& query,
                     const std::vector<std::string>& documents);

}  // namespace headrace::serve
