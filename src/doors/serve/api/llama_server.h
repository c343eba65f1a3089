#pragma once
#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"

// llama-server's own API: its README in llama.cpp's tree.
namespace headrace::serve {

HttpResponse completion(Service& service, const HttpRequest& http);
HttpResponse infill(Service& service, const HttpRequest& http);
HttpResponse embeddings(Service& service, const HttpRequest& http);
/// Jina's and Cohere's shape, too.
HttpResponse rerank(Service& service, const HttpRequest& http);
HttpResponse tokenize(Service& service, const HttpRequest& http);
HttpResponse detokenize(Service& service, const HttpRequest& http);
HttpResponse apply_template(Service& service, const HttpRequest& http);
HttpResponse props(Service& service, const HttpRequest& http);
HttpResponse change_props(Service& service, const HttpRequest& http);
HttpResponse slots(Service& service, const HttpRequest& http);
HttpResponse change_slot(Service& service, const HttpRequest& http);
HttpResponse adapters(Service& service, const HttpRequest& http);
HttpResponse change_adapters(Service& service, const HttpRequest& http);
HttpResponse metrics(Service& service, const HttpRequest& http);

}  // namespace headrace::serve
