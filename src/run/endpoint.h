#pragma once
#include <string>

#include "base/result.h"

namespace headrace {

/// "host:port" answers a TCP connection within a few seconds. Asked before an endpoint is given to ggml,
/// whose RPC client aborts the process when nobody answers.
Status check_endpoint(const std::string& endpoint);

}  // namespace headrace
