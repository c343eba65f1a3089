#pragma once
#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"

// OpenAI's API: https://platform.openai.com/docs/api-reference
namespace headrace::serve {

HttpResponse openai_chat(Service& service, const HttpRequest& http);
HttpResponse openai_chat_tokens(Service& service, const HttpRequest& http);
HttpResponse openai_completion(Service& service, const HttpRequest& http);
HttpResponse openai_embeddings(Service& service, const HttpRequest& http);
HttpResponse openai_models(Service& service, const HttpRequest& http);
HttpResponse openai_model(Service& service, const HttpRequest& http);
/// llama-server's way to say which models are to be in memory.
HttpResponse load_model(Service& service, const HttpRequest& http);
HttpResponse unload_model(Service& service, const HttpRequest& http);
HttpResponse openai_responses(Service& service, const HttpRequest& http);
HttpResponse openai_response_tokens(Service& service, const HttpRequest& http);

}  // namespace headrace::serve
