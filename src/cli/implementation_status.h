#pragma once
#include <string>

namespace headrace::cli {

/// Every WebNN operator and data type with the implementations that exist for it, as Markdown.
std::string implementation_status();

}  // namespace headrace::cli
