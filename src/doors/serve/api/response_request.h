#pragma once
#include "doors/serve/request/chat_request.h"

namespace headrace::serve {

/// A request of OpenAI's responses in the shape of its chats, and what it calls their fields.
struct ResponseChat {
    Json chat;
    FieldNames names;
};
/// Throws ApiError for what would change the answer and is not offered.
ResponseChat chat_of_response(const Json& body);

/// Whether messages that the context has no room for are left out.
bool drops_oldest(const Json& body);

}  // namespace headrace::serve
