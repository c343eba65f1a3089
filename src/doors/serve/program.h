#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "doors/serve/options/options.h"

namespace headrace::serve {

/// The options of the arguments behind `headrace serve`, the environment and a file, with the program's
/// defaults.
Result<ServeOptions> program_options(std::span<const std::string> arguments);

/// `headrace serve`, but for --help, --version, --parameters and --completion-bash, which the program prints:
/// serves until SIGTERM or SIGINT. Answers that are being written then have half a minute, or until a second
/// signal.
Status run(const ServeOptions& options);

}  // namespace headrace::serve
