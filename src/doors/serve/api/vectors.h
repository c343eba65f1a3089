#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/http/message.h"
#include "doors/serve/models/served_model.h"

namespace headrace::serve {

/// A text's vector, or, with pooling none, one of each of its tokens.
struct TextEmbedding {
    std::vector<std::vector<float>> vectors;
    std::int64_t tokens = 0;
};

/// Of the prompts in a field of a body: texts, tokens, or lists of such.
std::vector<TextEmbedding> embed(ServedModel& model, const HttpRequest& http, const Json& body,
                                 std::string_view key);

/// "[0.1,0.2]", each number as short as a float's value allows.
std::string number_list(const std::vector<float>& vector);
/// Of the floats' bytes, the lowest first.
std::string base64_of(const std::vector<float>& vector);

}  // namespace headrace::serve
