#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/export.h"
#include "headrace/parameters.h"

namespace headrace {

struct ToolCall {
    std::string name;
    std::string arguments;  ///< a JSON object as text
    std::string id;         ///< may be empty

    bool operator==(const ToolCall&) const = default;
};

/// A picture in a message, for a model that was loaded with `mmproj`.
struct Image {
    std::shared_ptr<const std::string> file;  ///< the bytes of a PNG, JPEG, GIF (its first picture) or BMP
    std::size_t part = 0;  ///< the number of the message's part that it stands in front of; their count: last
    std::string name;      ///< what errors call it

    bool operator==(const Image& other) const {
        return part == other.part && (file == other.file || (file && other.file && *file == *other.file));
    }
};

/// A message of a conversation.
struct Message {
    std::string role;  ///< "system", "user", "assistant" or "tool"
    std::string content;
    std::string reasoning;             ///< of the assistant, before its answer
    std::vector<ToolCall> tool_calls;  ///< of the assistant
    std::string tool_call_id;          ///< of a tool's answer: which call it answers
    std::string tool_name;             ///< of a tool's answer: whose it is
    std::vector<std::string> parts;    ///< in place of content: texts that the chat template may keep apart
    std::vector<Image> images;         ///< in their order; where there are no parts, content counts as one

    bool operator==(const Message&) const = default;
};

/// What a model is asked: a text, which is a user's message or one to go on with, as the parameter `chat`
/// says (auto: a message, unless it has the chat template's control tokens or the model has no template), or,
/// in its place, messages of which the last is to be answered, or tokens to go on with.
struct Request {
    std::string prompt;
    std::vector<Message> messages;
    Parameters parameters;  ///< of this request: temperature, n_predict, stop, grammar, priority ...
    std::vector<std::int32_t> tokens;
    std::string owner;          ///< requests of one owner share its turns; empty: this one has its own
    std::string chat_template;  ///< Jinja, for its messages in place of the model's; it may run for ever
};

/// Why an answer ended.
enum class StopReason : std::uint8_t {
    none,
    end_of_answer,  ///< the model's end-of-generation token
    token_limit,
    context_full,
    stop_string,
    pattern,
    time_limit,
    indentation,
    repetition,
    similarity,
    grammar,  ///< a grammar was completed
    cancelled,
    timed_out,
    failed,
};
/// The name that results and statistics show, e.g. "end_of_answer".
HEADRACE_API std::string_view to_string(StopReason reason);

/// A parameter that was not taken as it is: clamped, adjusted to others, not known, without effect.
struct Warning {
    std::string parameter;
    std::string message;
};

struct Timings {
    double queued_ms = 0;             ///< from the request to its first step
    double prompt_ms = 0;             ///< to the first token
    double generate_ms = 0;           ///< from the first token to the last
    double prompt_per_second = 0;     ///< tokens read, those from a cache not counted
    double generated_per_second = 0;  ///< tokens after the first
};

struct TokenProbability {
    std::int32_t token = 0;
    std::string text;
    float probability = 0;
};

/// A whole answer.
struct Reply {
    std::string text;       ///< as the model wrote it
    std::string content;    ///< of a message: without reasoning and tool calls
    std::string reasoning;  ///< of a message, as `reasoning_format` takes it out
    std::vector<ToolCall> tool_calls;
    StopReason stop_reason = StopReason::none;
    std::string stop_detail;         ///< the stop string, pattern, repeated text
    std::int64_t prompt_tokens = 0;  ///< those from a cache included
    std::int64_t cached_tokens = 0;  ///< of the prompt: read for an earlier request
    std::int64_t generated_tokens = 0;
    std::int64_t reasoning_tokens = 0;  ///< of these, those of the reasoning: its text's
    std::int64_t text_tokens = 0;       ///< likewise the text's, the first ones: without a stop string's
    std::vector<std::int32_t> tokens;   ///< generated ones
    std::vector<std::int32_t> prompt;   ///< tokens that were read, or remembered
    /// The probabilities for each generated token, the likeliest first, with the parameter n_probs.
    std::vector<std::vector<TokenProbability>> probabilities;
    std::vector<float> token_probabilities;  ///< of each generated token itself, with n_probs
    /// Likewise of each token of the prompt but the first, with the parameter prompt_probs; n_probs says how
    /// many of the likeliest ones.
    std::vector<std::vector<TokenProbability>> prompt_probabilities;
    std::vector<float> prompt_token_probabilities;
    std::int64_t drafted_tokens = 0, accepted_tokens = 0;  ///< of speculative decoding
    std::int64_t pauses = 0;  ///< times that a request of higher priority went first
    std::int64_t context_shifts = 0;
    std::int64_t dropped_messages = 0;  ///< oldest messages that the context had no room for
    Timings timings;
    std::vector<Warning> warnings;
    std::string model;  ///< what llama.cpp calls it, e.g. "qwen3 0.6B Q8_0"
};

/// How much of a prompt was read.
struct PromptProgress {
    std::int64_t total = 0;      ///< tokens of the prompt
    std::int64_t cached = 0;     ///< of these, read for an earlier request
    std::int64_t processed = 0;  ///< in the model's memory now, the cached ones included
    double ms = 0;               ///< since the first step
};

/// More of an answer.
struct Piece {
    std::string text;                      ///< whole characters
    std::int64_t tokens = 0;               ///< generated so far
    std::vector<std::int32_t> new_tokens;  ///< that the text is of
    /// The probabilities for each of these tokens, as in Reply; with n_probs a piece has the text of one
    /// token.
    std::vector<std::vector<TokenProbability>> probabilities;
    std::vector<float> token_probabilities;
    /// With the parameter return_progress, in place of a text while the prompt is read.
    std::optional<PromptProgress> progress;
};

/// More of a message, told apart as Reply has it.
struct MessagePart {
    struct Call {
        std::size_t index = 0;  ///< of the message's calls
        std::string name;       ///< whole, with the call's first part
        std::string id;         ///< likewise; may be empty
        std::string arguments;  ///< more of the JSON text
    };
    std::string content, reasoning;
    std::vector<Call> calls;
    Piece piece;  ///< that it was found in; all other fields may be empty
};

}  // namespace headrace
