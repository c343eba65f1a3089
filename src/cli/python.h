#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::cli {

/// The interpreter: $HEADRACE_PYTHON, the checkout's for build/bin/headrace in it, or python3.
std::string find_python();

/// A program for it that calls main() of one of the package's modules. The current folder is no place for
/// packages. otherwise: statements, each line indented by four, for an interpreter without the package.
std::string python_program(std::string_view module, std::string_view otherwise);

/// Whether the part of the program that is written in Python answers these arguments: wasm.
bool is_for_python(std::span<char* const> arguments);

/// Becomes `python -m headrace` with these arguments. Returns only an error: what is in the way.
Status become_python(std::span<char* const> arguments);

}  // namespace headrace::cli
