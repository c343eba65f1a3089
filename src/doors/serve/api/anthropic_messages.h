#pragma once
#include <vector>

#include "doors/serve/request/fields.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// `system` and `messages` of Anthropic's API, which names places as "messages.0.content.1". Throws ApiError
/// for what that API refuses: empty texts, an answer to be gone on with that ends with a space, uses of tools
/// that have no result in the next turn, results of none, ids that come twice. What a `session` may hold is
/// not looked for. Turns of one role that follow each other are one.
std::vector<Message> anthropic_messages_of(const Fields& body);

}  // namespace headrace::serve
