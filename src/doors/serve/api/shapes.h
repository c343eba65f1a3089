#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doors/serve/models/served_model.h"
#include "doors/serve/request/json.h"
#include "headrace/language_model.h"

// What OpenAI's, llama-server's and other APIs' answers have in common.
namespace headrace::serve {

/// A prefix and letters and digits that no other answer has.
std::string new_id(std::string_view prefix);
/// Seconds since 1970.
std::int64_t now();
/// llama-server's "b" and a build; here Headrace's version.
std::string fingerprint();

/// What llama.cpp calls the kind of a file's weights, at the end of its description: "Q8_0", "Q4_K - Medium".
std::string weights_kind(const ModelInfo& info);

/// "stop", "length" or "tool_calls".
std::string_view finish_reason(const Reply& reply);
/// Counts of tokens; replies: of one or several prompts with that many answers each, in order.
Json usage_of(const std::vector<Reply>& replies, int choices);
/// What OpenAI's chats and responses say of a prompt that is only counted.
Json input_tokens_of(const RenderedPrompt& prompt);
/// llama-server's `prompt_progress`.
Json progress_of(const PromptProgress& progress);
/// llama-server's numbers of an answer.
Json timings_of(const Reply& reply);
/// Probabilities as OpenAI's chats and llama-server have them. most: of the likeliest that are shown of
/// each. after_sampling: probabilities in place of their logarithms.
Json probabilities_of(ServedModel& model, const std::vector<std::int32_t>& tokens,
                      const std::vector<std::vector<TokenProbability>>& likeliest,
                      const std::vector<float>& own, std::size_t most, bool after_sampling = false);
/// The answer's tokens that its text is of: without the one that ends it, or those of a stop string.
std::vector<std::int32_t> text_tokens(const Reply& reply);
/// Parameters that were not taken as they are; nothing where there is none.
void add_warnings(Json& body, const ServedModel& model, const Reply& reply);

/// A text prompt, a list of tokens, or such a list with texts in it, as tokens; of several such, each.
/// key: of the field, for errors.
std::vector<std::vector<std::int32_t>> prompts_of(ServedModel& model, const Json& given, std::string_view key,
                                                  bool special = true);

}  // namespace headrace::serve
