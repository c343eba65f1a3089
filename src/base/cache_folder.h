#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

/// The user's folder for what can be made again: $XDG_CACHE_HOME/headrace/<name>, else
/// ~/.cache/headrace/<name>. It may not exist. Errors: neither variable names a folder.
Result<std::string> cache_folder(std::string_view name);

/// Where an option wants a cache. "" asks the environment variable, which is "" when it is not set; "off",
/// and
/// "" in both, is none (an empty text); "on" is cache_folder(name); anything else is a folder.
Result<std::string> chosen_cache_folder(std::string_view option, const char* variable, std::string_view name);

}  // namespace headrace
