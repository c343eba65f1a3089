#pragma once
#include "doors/serve/request/fields.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// The longest name of a tool that OpenAI takes.
constexpr std::size_t kLongestToolName = 64;
/// The length of names where an API takes any, also twice.
constexpr std::size_t kAnyToolName = 0;

/// `name`, of letters, digits, "_" and "-". Throws ApiError.
std::string tool_name(const Fields& tool, std::size_t longest);

/// `tools` in OpenAI's shape, and a `tool_choice`: "auto", "none", "required", one that names a function,
/// which leaves only that of the tools, and required; or one that lists allowed tools, which leaves those.
/// longest: of a name; names are unique then. Throws ApiError for a choice without tools.
void read_tools(const Fields& body, std::size_t longest, Parameters& parameters);

/// OpenAI's first names for the same: `functions` and `function_call`. Whether the body has functions, whose
/// call the answer then has under these names, too.
bool read_functions(const Fields& body, std::size_t longest, Parameters& parameters);

/// That every message of a tool is of a call in the assistant's message before it, and every call there has
/// one, by their ids where they have some. messages: in OpenAI's shape, and read before. Throws ApiError.
void check_tool_messages(const Json& messages);

/// Throws ApiError where a call is forced that the model's template cannot show.
void check_can_call(const Parameters& parameters, const ModelInfo& model);

}  // namespace headrace::serve
