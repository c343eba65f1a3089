#include "doors/serve/request/errors.h"

namespace headrace::serve {

ApiError wrong_field(const std::string& field, const std::string& what) {
    return {400, "invalid_request_error", field.empty() ? what : "'" + field + "' " + what, field};
}

ApiError not_found(const std::string& what) { return {404, "not_found_error", what}; }

ApiError not_offered(const std::string& what) { return {501, "not_supported_error", what}; }

ApiError overloaded(const std::string& what, int retry_after) {
    ApiError error(503, "unavailable_error", what);
    error.retry_after = retry_after;
    return error;
}

Json openai_error(const ApiError& error) {
    Json shape = {{"code", error.status},
                  {"message", error.what()},
                  {"type", error.type},
                  {"param", error.field.empty() ? Json() : Json(error.field)}};
    shape.update(error.extra);
    return {{"error", std::move(shape)}};
}

namespace {

ApiError without_field(const Exception& error) {
    switch (error.code()) {
        case Code::invalid_argument:
        case Code::invalid_state: return {400, "invalid_request_error", error.what()};
        case Code::prompt_too_long:
        case Code::context_full: return {400, "exceed_context_size_error", error.what()};
        case Code::unsupported: return {501, "not_supported_error", error.what()};
        case Code::not_found: return {404, "not_found_error", error.what()};
        case Code::denied: return {403, "permission_error", error.what()};
        case Code::busy:
        case Code::cancelled: return overloaded(error.what());
        case Code::timed_out: return {504, "timeout_error", error.what()};
        case Code::out_of_memory:
        case Code::io:
        case Code::backend_failure: break;
    }
    return {500, "server_error", error.what()};
}

}  // namespace

ApiError api_error(const Exception& error) {
    ApiError shown = without_field(error);
    shown.field = error.parameter();
    return shown;
}

ApiError renamed(ApiError error, const FieldNames& names) {
    auto found = names.end();
    std::size_t end = error.field.size();
    while (end > 0 && end != std::string::npos && found == names.end()) {
        found = names.find(error.field.substr(0, end));
        end = error.field.find_last_of(".[", end - 1);
    }
    if (found == names.end()) return error;
    const std::string field = found->second + error.field.substr(found->first.size());
    std::string message = error.what();
    if (message.starts_with("'" + error.field + "'"))
        message.replace(0, error.field.size() + 2, "'" + field + "'");
    else if (message.starts_with(error.field + ":"))
        message.replace(0, error.field.size(), "'" + field + "'");
    ApiError shown(error.status, error.type, message, field);
    shown.extra = std::move(error.extra);
    shown.retry_after = error.retry_after;
    return shown;
}

}  // namespace headrace::serve
