#pragma once
#include <string>

namespace headrace::llm {

/// "llama.cpp 0.5.0-dev (b11312-0c1e57098), ggml 0.25.3": the build's number and commit where they are known.
std::string library_versions();

}  // namespace headrace::llm
