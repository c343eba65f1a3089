#pragma once
#include "doors/serve/request/chat_request.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// A body of Anthropic's messages. needs_limit: `max_tokens` must be there. Throws ApiError.
ChatBody anthropic_request(const Json& body, const ModelInfo& model, bool needs_limit);

}  // namespace headrace::serve
