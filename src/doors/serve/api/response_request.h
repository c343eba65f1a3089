#pragma once
#include "doors/serve/request/chat_request.h"

namespace headrace::serve {

/// A request of OpenAI's responses in the shape of its chats. Throws ApiError for what would change the
/// answer and is not offered.
Json chat_of_response(const Json& body);

/// What such a request calls the fields of a chat.
FieldNames names_of_response();

/// Whether messages that the context has no room for are left out.
bool drops_oldest(const Json& body);

}  // namespace headrace::serve
