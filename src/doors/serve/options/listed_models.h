#pragma once
#include <vector>

#include "doors/serve/options/options.h"

namespace headrace::serve {

/// The models of --models-dir and --models-preset as folder and file say now, each with all of its options:
/// the program's arguments come first, then its section, the section [*], the environment and the file of
/// --config. The first of its aliases is its id. Errors name the file, the line and the remedy.
Result<std::vector<ServeOptions>> listed_models(const ServeOptions& server);

}  // namespace headrace::serve
