#pragma once
#include <string_view>

#include "doors/serve/http/message.h"

namespace headrace::serve {

/// A request for a target as HTTP has it, "/v1/models?limit=1", with percent signs decoded.
HttpRequest request_to(std::string_view method, std::string_view target);

}  // namespace headrace::serve
