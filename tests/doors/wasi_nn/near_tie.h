#pragma once
#include <optional>
#include <span>
#include <string>

#include "doors/wasi_nn/context_table.h"
#include "llm/engine/generation.h"
#include "stress_conversation.h"

namespace headrace::wasi_nn {

using namespace llm;

/// ggml's kernels round differently at different batch sizes, so a token that is nearly as likely as another
/// may be chosen in its place when other streams run beside. Such an answer is right, too; any other that
/// differs from its reference has been mixed up. The limits are for the share of probability that rounding
/// moves.
constexpr float kLeastRatio = 0.9f;
constexpr double kMostShift = 0.05;

/// Why the token at a position is no near-tie with the reference's; nothing when it is one.
/// row: the model's probabilities there, falling. parameters: the request's, of which "temp", "top_k" and
/// "seed" decide.
std::optional<std::string> why_no_near_tie(std::span<const TokenProbability> row, llama_token observed,
                                           llama_token reference, std::size_t position,
                                           const std::string& parameters);

/// Asks the conversation up to the turn again, with nothing beside it, and looks at the first token that
/// differs.
std::optional<std::string> why_wrong(ContextTable& service, GraphId graph, std::span<const Turn> turns,
                                     std::size_t turn, const Tokens& observed);

/// The tokens of a reply to a request with "return_tokens".
Tokens tokens_of(const std::string& metadata);

}  // namespace headrace::wasi_nn
