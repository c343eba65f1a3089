#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace headrace::cli {

/// The interpreter: $HEADRACE_PYTHON, the checkout's for build/bin/headrace in it, or python3.
std::string find_python();

/// Whether the part of the program that is written in Python answers these arguments: wasm.
bool is_for_python(std::span<char* const> arguments);

/// Becomes `python -m headrace` with these arguments. Returns only an error: what is in the way.
Status become_python(std::span<char* const> arguments);

}  // namespace headrace::cli
