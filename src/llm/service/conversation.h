#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/model/model.h"
#include "llm/settings.h"
#include "llm/warnings.h"

struct common_chat_params;

namespace headrace::llm {

/// What a model is given for an input.
struct Prompt {
    Tokens tokens;
    std::vector<ImagePiece> images;  ///< that stand among the tokens
    std::string text;                ///< that they are of; empty where they were given
    bool chat = false;               ///< the input was a message, so that the answer is one
    std::size_t dropped = 0;         ///< oldest messages that were left out for lack of room
    Messages messages;               ///< with the input's, those that were not left out
    std::shared_ptr<const common_chat_params> format;  ///< how the template writes reasoning and tool calls
};

/// The tokens for messages of which the last is to be answered, by the model's chat template. Messages are
/// left out from the oldest on (never the system's) until prompt and some room for an answer fit into a
/// context of that size. The settings' grammar and stop strings may be extended by what the template wants.
Result<Prompt> make_prompt(const Model& model, Messages messages, int context_size,
                           RequestSettings& settings);

/// The tokens for a text: as it is, or, as the settings' `chat` and the text itself say, for a user's message
/// that follows a history.
Result<Prompt> make_prompt(const Model& model, const Messages& history, std::string_view text,
                           int context_size, RequestSettings& settings);

/// Warnings the parameters of a request that the model's chat template does not look at.
void warn_of_unused_by_template(const Model& model, const RequestSettings& request, Warnings& warnings);

}  // namespace headrace::llm
