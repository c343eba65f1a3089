#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

/// The user's folder for what can be made again: $XDG_CACHE_HOME/headrace/<name>, else
/// ~/.cache/headrace/<name>. It may not exist. Errors: neither variable names a folder.
Result<std::string> cache_folder(std::string_view name);

/// Where an option wants a cache: nowhere, an empty text, for "off"; cache_folder(name) for "on"; else the
/// folder that it names. An empty option is what the environment variable says, or else `otherwise`.
Result<std::string> chosen_cache_folder(std::string_view option, const char* variable,
                                        std::string_view otherwise, std::string_view name);

}  // namespace headrace
