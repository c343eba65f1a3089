#pragma once
#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"

// Anthropic's Messages API: https://docs.anthropic.com/en/api/messages
namespace headrace::serve {

HttpResponse anthropic_messages(Service& service, const HttpRequest& http);
HttpResponse anthropic_tokens(Service& service, const HttpRequest& http);
HttpResponse anthropic_models(Service& service, const HttpRequest& http);
HttpResponse anthropic_model(Service& service, const HttpRequest& http);
/// {"type": "error", "error": {"type", "message"}}
Json anthropic_error(const ApiError& error);

}  // namespace headrace::serve
