#pragma once
#include <string_view>

namespace headrace {

/// Tells the user, in one line on standard error, about something that went on otherwise than asked for:
/// a cache that could not be used or written. What fails is an Error instead.
void warn(std::string_view message);

}  // namespace headrace
