#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace headrace::serve {

/// `headrace serve` with these arguments: serves until SIGTERM or SIGINT. Answers that are being written then
/// have half a minute, or until a second signal.
Status run(std::span<const std::string> arguments);

}  // namespace headrace::serve
