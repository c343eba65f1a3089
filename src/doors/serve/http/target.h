#pragma once
#include <string_view>

#include "doors/serve/http/message.h"

namespace headrace::serve {

/// The path and query of a target that names the server, too: "http://host/v1/models". Others are as they
/// were.
std::string_view origin_form(std::string_view target);

/// A request for a target as HTTP has it, "/v1/models?limit=1", with percent signs decoded.
HttpRequest request_to(std::string_view method, std::string_view target);

}  // namespace headrace::serve
