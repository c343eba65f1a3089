#pragma once
#include <map>
#include <stdexcept>
#include <string>

#include "doors/serve/request/json.h"
#include "headrace/error.h"

namespace headrace::serve {

/// What ends a request, in whichever shape its API reports that. Handlers throw it, as the public API that
/// they stand on throws headrace::Exception.
class ApiError : public std::runtime_error {
public:
    ApiError(int status, std::string type, const std::string& message, std::string field = {})
        : std::runtime_error(message), status(status), type(std::move(type)), field(std::move(field)) {}

    int status;
    std::string type;   ///< OpenAI's and llama-server's word for it
    std::string field;  ///< of the request, e.g. "messages[2].content"
    Json extra = Json::object();
    int retry_after = 0;  ///< seconds; 0: none is said
    std::string allowed;  ///< of 405: the methods that are taken
};

/// A field is missing or wrong: 400.
ApiError wrong_field(const std::string& field, const std::string& what);
ApiError not_found(const std::string& what);
/// 501: what this server was not started for.
ApiError not_offered(const std::string& what);
/// 503, to be tried again in that many seconds.
ApiError overloaded(const std::string& what, int retry_after = 1);

/// {"error": {"code", "message", "type", "param"}}, as OpenAI and llama-server have it.
Json openai_error(const ApiError& error);

/// A failure of the engine.
ApiError api_error(const Exception& error);

/// What the client calls parameters that the engine has under other names, or places within them.
using FieldNames = std::map<std::string, std::string>;
/// The error with the client's own name for its field, of which the longest known beginning is another.
ApiError renamed(ApiError error, const FieldNames& names);

}  // namespace headrace::serve
