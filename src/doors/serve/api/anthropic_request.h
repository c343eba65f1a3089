#pragma once
#include "doors/serve/request/chat_request.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// What of a body depends on the rest of its request.
struct MessageRules {
    bool needs_limit = true;            ///< `max_tokens` must be there
    bool interleaves_thinking = false;  ///< so that thoughts between calls may be longer than the answer
};

/// A body of Anthropic's messages. Throws ApiError.
ChatBody anthropic_request(const Json& body, const ModelInfo& model, const MessageRules& rules);

}  // namespace headrace::serve
