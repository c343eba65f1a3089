#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/report.h"
#include "headrace/language_model.h"

namespace headrace::cli {

struct ChatOptions {
    std::string model, session = "chat", system;
    Parameters parameters;
    std::string prompt_file, system_file;  ///< what `prompts` and `system` get besides
    bool single_turn = false;              ///< ends after an answer
    std::string server, key;               ///< in place of a model
    std::string served_model;              ///< of the server's; empty: its first
    std::vector<std::string> prompts;
    JsonOption json;  ///< of the answers to the prompts
};

/// Answers are shown while they are generated. Lines that start with / change parameters, session and
/// priority; /help lists them. Ctrl-C ends an answer, and at the prompt the program.
Status chat(const ChatOptions& options);

}  // namespace headrace::cli
