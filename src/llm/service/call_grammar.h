#pragma once
#include <string>
#include <vector>

struct common_chat_params;
struct common_chat_tool;

namespace headrace::llm {

struct CallRules {
    bool is_forced = false;
    bool is_single = false;
    bool may_think = true;  ///< before a forced call; what the template has begun goes on in any case
    std::string or_schema;  ///< JSON text: in place of the forced call the answer may be JSON of that schema
};

/// The grammar in which a template's answers call tools: llama.cpp's with strict arguments (call_arguments.h)
/// and two more differences. Of a forced call
/// llama.cpp lets any text come first, which a model that would not call then never ends; here the call is
/// the answer, but for a thought before it. And where an answer may have only one call it has one, which
/// llama.cpp does not see to for every template.
///
/// format: of a template that was applied with tool_choice required where is_forced is set, and with thoughts
/// told from the answer. Empty where the template writes no calls. Throws what llama.cpp throws.
std::string call_grammar(const common_chat_params& format, const std::vector<common_chat_tool>& tools,
                         const CallRules& rules);

}  // namespace headrace::llm
