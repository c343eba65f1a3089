#pragma once
#include <common/peg-parser.h>

#include <string>
#include <vector>

struct common_chat_params;
struct common_chat_tool;

namespace headrace::llm {

/// How a template's answers are read, and the grammar in which they are written.
struct CallFormat {
    common_peg_arena parser;
    std::string grammar;
};

/// llama.cpp's, with arguments that follow the tools' schemas in templates that write each between marks of
/// its own. There llama.cpp's grammar takes any text for one that may be a string, and in some templates
/// leaves out what is required or takes values of any type; and it takes white space that its parser then
/// does not.
///
/// What may be any text here, too: values whose schema says neither what they may be (enum, const, pattern,
/// format, lengths) nor anything but that, and those that are put together with allOf. Optional arguments may
/// come twice. is_forced: the answer has no form in which a text between marks of its own comes before a
/// call. Throws what llama.cpp throws.
CallFormat with_strict_arguments(const common_chat_params& format, const std::vector<common_chat_tool>& tools,
                                 bool is_forced);

}  // namespace headrace::llm
