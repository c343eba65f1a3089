#pragma once
#include <string>
#include <vector>

#include "headrace/language_model.h"

namespace headrace::cli {

/// What llama-cli and llama-completion have besides llama-server's flags: in the arguments of `headrace chat`
/// they become its own options, or parameters, or are told to have no effect.
void take_chat_flags(std::vector<std::string>& arguments, Parameters& parameters);

}  // namespace headrace::cli
