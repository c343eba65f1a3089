#pragma once
#include <string>

namespace headrace {

/// The file of a backend that is a library of its own: what the environment variable names; else where it
/// lies in the folder this code was loaded from, in lib below that or beside it. Empty where there is none.
std::string find_backend_library(const char* file, const char* variable);

}  // namespace headrace
