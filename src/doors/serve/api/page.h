#pragma once
#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"

namespace headrace::serve {

/// A page to chat with, which needs nothing but this service.
HttpResponse page(Service& service, const HttpRequest& http);

}  // namespace headrace::serve
