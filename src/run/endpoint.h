#pragma once
#include <string>

#include "base/result.h"

namespace headrace {

/// At "host:port" a ggml RPC server of our protocol version answers within a few seconds. Asked before an
/// endpoint is given to ggml, whose RPC client aborts the process when nobody, or somebody else, answers.
Status check_endpoint(const std::string& endpoint);

}  // namespace headrace
