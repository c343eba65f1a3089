#include "llm/model/library_versions.h"

#include <fmt/format.h>
#include <ggml.h>
#include <llama.h>

#include <string_view>

namespace headrace::llm {

std::string library_versions() {
    constexpr std::string_view kBuild = HEADRACE_LLAMA_BUILD;
    return fmt::format("llama.cpp {}{}, ggml {}", llama_version(),
                       kBuild.empty() ? std::string() : fmt::format(" ({})", kBuild), ggml_version());
}

}  // namespace headrace::llm
