#pragma once
#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"

// Ollama's API: https://github.com/ollama/ollama/blob/main/docs/api.md
namespace headrace::serve {

HttpResponse ollama_chat(Service& service, const HttpRequest& http);
HttpResponse ollama_generate(Service& service, const HttpRequest& http);
HttpResponse ollama_embed(Service& service, const HttpRequest& http);
HttpResponse ollama_old_embeddings(Service& service, const HttpRequest& http);
HttpResponse ollama_tags(Service& service, const HttpRequest& http);
HttpResponse ollama_show(Service& service, const HttpRequest& http);
HttpResponse ollama_running(Service& service, const HttpRequest& http);
HttpResponse ollama_version(Service& service, const HttpRequest& http);

}  // namespace headrace::serve
