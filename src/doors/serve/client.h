#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"

namespace headrace::serve {

struct ClientOptions {
    std::string url;    ///< http://host:port, with or without the path of the API: /v1, /llm
    std::string key;    ///< empty: none is sent
    std::string model;  ///< that requests name; empty: none
    std::string system;
    Parameters parameters;             ///< of every request
    std::vector<std::string> prompts;  ///< said one after the other; none: lines of standard input
    bool single_turn = false;          ///< of those lines the first
};

/// `headrace chat --server`: a conversation with any server that speaks OpenAI's chat completions. Answers
/// are shown while they come.
Status chat(const ClientOptions& options);

}  // namespace headrace::serve
