#pragma once
#include <string>
#include <string_view>

#include "doors/serve/http/message.h"
#include "doors/serve/models/service.h"
#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// The API whose shape errors have.
enum class Dialect { openai, anthropic, ollama };

struct Route {
    std::string_view method, path;  ///< a path that ends in /* has more behind it
    HttpResponse (*handler)(Service&, const HttpRequest&);
    bool works_without_model = false;
    bool is_public = false;  ///< asks for no key
};

/// Null when there is none.
const Route* find_route(std::string_view method, std::string_view path);
/// The first with that path, whatever its method.
const Route* find_path(std::string_view path);
/// The methods that a path takes, by commas, as the header Allow has them.
std::string methods_of(std::string_view path);
Dialect dialect_of(const HttpRequest& http);
/// With the request's id where that API has it in the body.
Json error_in(Dialect dialect, const ApiError& error, std::string_view request_id);

}  // namespace headrace::serve
