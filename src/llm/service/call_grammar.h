#pragma once
#include <string>
#include <vector>

#include <common/chat.h>

#include "base/result.h"

namespace headrace::llm {

struct CallTools {
    std::vector<common_chat_tool> tools;
    std::vector<std::string> numbers;  ///< as KeptSchema has them, of all tools
    bool is_changed = false;
};

struct CallRules {
    bool is_forced = false;
    bool is_single = false;
    bool may_think = true;  ///< before a forced call; what the template has begun goes on in any case
    std::string or_schema;  ///< JSON text: in place of the forced call the answer may be JSON of that schema
};

/// The grammar in which a template's answers call tools: llama.cpp's with strict arguments (call_arguments.h)
/// and two more differences. llama.cpp
/// lets any text come before a forced call, which a model that would not call then never ends; here the call
/// is the answer, but for a thought before it. And where an answer may have only one call it has one, which
/// llama.cpp does not see to for every template.
///
/// format: of a template that was applied with tool_choice required where is_forced is set, and with thoughts
/// told from the answer. Empty where the template writes no calls. Throws what llama.cpp throws.
Result<std::string> call_grammar(const common_chat_params& format, const CallTools& tools,
                                 const CallRules& rules);

/// The tools with schemas of which llama.cpp's converter drops nothing that can be kept to.
Result<CallTools> kept_tools(std::vector<common_chat_tool> tools);

}  // namespace headrace::llm
