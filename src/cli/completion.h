#pragma once
#include <string>
#include <vector>

namespace headrace::cli {

/// What may be completed behind one command.
struct CompletionCommand {
    std::string name, summary;
    struct Option {
        std::vector<std::string> names;  ///< "-m", "--model"
        std::string summary;
        bool takes_value = false;
    };
    std::vector<Option> options;
    std::vector<std::string> words;  ///< of its argument, in place of files
};

/// A script for "bash", "zsh" or "fish" that completes commands and their options, and files elsewhere.
std::string completion_script(const std::string& shell, const std::vector<CompletionCommand>& commands);

}  // namespace headrace::cli
