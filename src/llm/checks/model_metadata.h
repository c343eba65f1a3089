#pragma once
#include <gguf.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::llm {

/// Checks of a GGUF's metadata: what llama.cpp asserts of it, divides by or takes for granted. An assertion
/// there ends the process. Errors name the key and its value.
Status check_metadata(const gguf_context* gguf, const std::string& architecture);

/// That the layers' projections have a row for each value of their heads.
Status check_projections(const gguf_context* gguf, const ggml_context* shapes,
                         const std::string& architecture);

/// Whether a Jinja template is small and flat enough for llama.cpp's parser and interpreter, which call
/// themselves for each level of nesting.
Status check_template(std::string_view source);

}  // namespace headrace::llm
