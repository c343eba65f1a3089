#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"

/// GGUF language models in C++: texts, conversations, embeddings and rank scores, from libheadrace_llm.so.
///
///     auto model = headrace::LanguageModel::load("model.gguf", {.parameters = {{"n_ctx", 4096}}});
///     auto answer = model.stream("What is the capital of France?", {{"temperature", 0}});
///     while (auto piece = answer.next()) std::cout << piece->text << std::flush;
///
/// Everything may be called from any thread at the same time; requests that run at once share batches.
/// Every function throws headrace::Exception on failure. Texts are UTF-8.
namespace headrace {

struct ParameterValue;

/// Named values, in the order in which they were set: what docs/parameters.md lists, as JSON would have them.
class HEADRACE_API Parameters {
public:
    using Entry = std::pair<std::string, ParameterValue>;

    Parameters();
    Parameters(std::initializer_list<Entry> entries);
    Parameters(const Parameters&);
    Parameters(Parameters&&) noexcept;
    Parameters& operator=(const Parameters&);
    Parameters& operator=(Parameters&&) noexcept;
    ~Parameters();

    /// Of a JSON object; blank text has none. Throws Code::invalid_argument with the place of a mistake.
    static Parameters from_json(std::string_view text);
    /// indent: spaces a level, or one line where it is negative. Bytes that are no UTF-8 become U+FFFD.
    std::string to_json(int indent = -1) const;

    /// In the place of an earlier value of that name.
    void set(std::string name, ParameterValue value);
    /// Whether there was one.
    bool erase(std::string_view name);
    /// Null when there is none.
    const ParameterValue* find(std::string_view name) const;
    const std::vector<Entry>& entries() const& { return entries_; }
    std::vector<Entry> entries() &&;  ///< for (auto& entry : Parameters::from_json(text).entries())
    bool empty() const;

    bool operator==(const Parameters& other) const;

private:
    std::vector<Entry> entries_;
};

/// Nothing (as if the parameter were not given), a truth value, a number, a text, a list, or parameters of a
/// section.
struct ParameterValue : std::variant<std::nullptr_t, bool, std::int64_t, double, std::string,
                                     std::vector<ParameterValue>, Parameters> {
    using variant::variant;
    ParameterValue(int number) : variant(std::int64_t{number}) {}
    ParameterValue(float number) : variant(double{number}) {}
    ParameterValue(const char* text) : variant(std::string(text)) {}
    ParameterValue(std::string_view text) : variant(std::string(text)) {}

    /// Of any JSON value: a program's settings are often texts. Throws Code::invalid_argument with the place
    /// of a mistake.
    HEADRACE_API static ParameterValue from_json(std::string_view text);
};

/// What docs/parameters.md has under a name, in whichever of its spellings.
enum class ParameterKind : std::uint8_t {
    unknown,  ///< nothing, or what is known to be without effect
    value,    ///< a parameter; an object in place of its value would be read as a section
    object,   ///< a parameter whose value may be an object
    section,  ///< parameters
};
HEADRACE_API ParameterKind kind_of_parameter(std::string_view name);

struct ModelOptions {
    /// Of the model and its context (n_ctx, n_gpu_layers, devices, embeddings, draft_model ...), and defaults
    /// for its requests. docs/parameters.md has all of them.
    Parameters parameters;
};

struct ToolCall {
    std::string name;
    std::string arguments;  ///< a JSON object as text
    std::string id;         ///< may be empty

    bool operator==(const ToolCall&) const = default;
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
    std::vector<std::int32_t> prompt;  ///< tokens that were read, or remembered
    /// Of each generated token, the likeliest ones first, with the parameter n_probs.
    std::vector<std::vector<TokenProbability>> probabilities;
    std::vector<float> token_probabilities;                ///< of each generated token itself, with n_probs
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
    /// Of each of these, as Reply has them; with n_probs a piece has the text of one token.
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

/// An answer that is being written. One that nobody holds any more is cancelled.
class HEADRACE_API Generation {
public:
    struct Impl;
    explicit Generation(std::unique_ptr<Impl> impl);
    Generation(Generation&&) noexcept;
    Generation& operator=(Generation&&) noexcept;
    ~Generation();

    using Piece = headrace::Piece;
    /// Waits for more text; nothing at the end. Throws when the request fails, is cancelled or out of time.
    std::optional<Piece> next();
    /// The same of a request with messages; use either.
    std::optional<MessagePart> next_part();
    /// Waits no longer than that; whether `next` has an answer now.
    bool wait_for(std::chrono::milliseconds patience);
    /// Waits for the end. Its text is the whole answer, whatever was read by next. After cancel: what there
    /// was until then, with StopReason::cancelled. Throws when the request fails or is out of time. A
    /// conversation remembers an answer once this was called, or `next` gave nothing.
    Reply reply();
    /// From any thread; takes effect within a step.
    void cancel();

private:
    std::unique_ptr<Impl> impl_;
};

/// Messages and answers that a model remembers. One request at a time: another waits for it, or, when that
/// one is read piece by piece, is told that it is busy.
class HEADRACE_API Conversation {
public:
    struct Impl;
    explicit Conversation(std::shared_ptr<Impl> impl);

    Reply say(std::string_view message, const Parameters& parameters = {});
    Generation stream(std::string_view message, const Parameters& parameters = {});
    /// What was said so far.
    std::vector<Message> messages() const;
    /// Ends the requests that run in it or wait for it.
    void cancel();

private:
    std::shared_ptr<Impl> impl_;
};

struct Embeddings {
    std::vector<std::vector<float>> vectors;  ///< one of each text, or of each token of one text
    std::int64_t tokens = 0;                  ///< read, of all texts
    std::vector<Warning> warnings;
};

struct RankScores {
    std::vector<float> scores;  ///< of each document, higher is nearer; as the model gives them
    std::int64_t tokens = 0;
    std::vector<Warning> warnings;
};

/// What a model gives for a text.
enum class ModelKind : std::uint8_t {
    text,           ///< an answer: generate, stream, conversation
    vectors,        ///< one vector: embed
    token_vectors,  ///< a vector of each token: embed_tokens
    scores,         ///< how well it answers another: rerank
};

/// What a file and its load say of a model.
struct ModelInfo {
    std::string path, description;
    std::string chat_template;                       ///< Jinja's source; empty when the model has none
    std::map<std::string, bool> template_abilities;  ///< what llama.cpp finds that it can do
    std::string begin_of_text, end_of_text;          ///< tokens; empty where it has none
    std::int64_t vocabulary_size = 0, training_context = 0, embedding_size = 0, parameters = 0, bytes = 0;
    std::string vocabulary;                               ///< kind of tokenizer: SPM, BPE, WPM, UGM ...
    std::int64_t context_tokens = 0;                      ///< that all requests share
    std::int64_t request_tokens = 0;                      ///< that one may have, its answer included
    std::int64_t parallel = 0;                            ///< requests that run at once
    std::vector<std::pair<std::string, float>> adapters;  ///< LoRA files and their scales
    /// Of filling in the middle; -1 where the vocabulary has none.
    std::int32_t fill_prefix = -1, fill_suffix = -1, fill_middle = -1, fill_repository = -1,
                 fill_separator = -1;
};

/// What was read of a prompt, in a file.
struct SavedPrompt {
    std::int64_t tokens = 0, bytes = 0;
    std::vector<std::int32_t> text;  ///< the tokens themselves, of a file that was restored
};

/// What a request becomes for the model.
struct RenderedPrompt {
    std::string text;  ///< as the chat template writes it, or the request's own
    std::vector<std::int32_t> tokens;
};

/// Counts since the model was loaded, and what is held now.
struct LanguageModelStatistics {
    std::string name, description;
    std::size_t weight_bytes = 0;
    std::uint64_t submitted = 0, finished = 0, failed = 0, cancelled = 0, rejected = 0;  ///< requests
    std::size_t waiting = 0, running = 0;                                                ///< requests now
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
    std::uint64_t drafted_tokens = 0, accepted_tokens = 0;
    std::uint64_t steps = 0, overtaken_steps = 0, broken_off_steps = 0, pauses = 0, context_shifts = 0;
    double longest_step_ms = 0;
    int threads = 0;  ///< of the latest step
    std::size_t remembered_sequences = 0, remembered_tokens = 0, ram_cache_bytes = 0;
    std::uint64_t evictions = 0;
    std::size_t context_tokens = 0;  ///< that all sequences share
    std::size_t named_sessions = 0, anonymous_sessions = 0;
    std::size_t process_models = 0, process_engines = 0;  ///< of the whole process
    std::size_t process_resident_bytes = 0;
    double memory_share_in_use = 0;  ///< of the machine or the control group, 0 to 1
};

/// A model and its engine, which all copies of this object share. Loads of one file with the same parameters
/// share the engine, too, and with other parameters the weights where they can.
class HEADRACE_API LanguageModel {
public:
    struct Impl;

    /// path: of a GGUF file, or its first part. Errors: Code::not_found, invalid_argument with what is wrong
    /// in the file or the parameters, out_of_memory with what is needed and there.
    static LanguageModel load(const std::string& path, const ModelOptions& options = {});
    /// The bytes of a GGUF file. They are copied.
    static LanguageModel load_bytes(std::string_view bytes, const ModelOptions& options = {});

    ModelKind kind() const;
    /// Whether a remote host of it was lost. The next request loads the model again.
    bool is_lost() const;

    Reply generate(std::string_view prompt, const Parameters& parameters = {});
    Reply generate(const Request& request);
    Generation stream(std::string_view prompt, const Parameters& parameters = {});
    Generation stream(const Request& request);

    /// A conversation of that name, new or known; without a name one of its own. The parameters are defaults
    /// of its requests. At most `max_concurrent` (64) without a name exist at once; another is Code::busy. Of
    /// those with a name `max_sessions` (100) are remembered: for one more, the one that was used least
    /// recently and does not run is forgotten; Code::busy where all run. Requests of no conversation do not
    /// count.
    Conversation conversation(std::string_view name = {}, const Parameters& parameters = {});

    /// A vector of each text, by a model loaded with `embeddings`. Errors: Code::unsupported where the model
    /// writes texts, ranks, or leaves a vector for each token (`pooling` none).
    Embeddings embed(const std::vector<std::string>& texts, const Parameters& parameters = {});
    /// The same of texts that are tokens already.
    Embeddings embed_sequences(const std::vector<std::vector<std::int32_t>>& sequences,
                               const Parameters& parameters = {});
    /// A vector of each token of a text, by a model loaded with `embeddings` and `pooling` none.
    Embeddings embed_tokens(std::string_view text, const Parameters& parameters = {});
    Embeddings embed_tokens(const std::vector<std::int32_t>& sequence, const Parameters& parameters = {});
    /// How well each document answers the query, by a model loaded with `pooling` rank.
    RankScores rerank(std::string_view query, const std::vector<std::string>& documents,
                      const Parameters& parameters = {});

    ModelInfo info() const;
    /// special: with the marks of begin and end that the model wants. control: control tokens in the text are
    /// read as such.
    std::vector<std::int32_t> tokenize(std::string_view text, bool special = true, bool control = true) const;
    /// Control tokens show. Errors: Code::invalid_argument for a number outside the vocabulary.
    std::string detokenize(const std::vector<std::int32_t>& tokens) const;
    /// What the model would read for a request, and nothing is done.
    RenderedPrompt render(const Request& request) const;
    /// All parameters of a request with these values, those of the load and defaults included.
    Parameters effective(const Parameters& parameters = {}) const;

    /// Writes what is remembered of a text that begins with these tokens into a file, from which this model
    /// reads it faster than it would read the text. Errors: Code::invalid_argument where nothing is; io.
    SavedPrompt save_prompt(const std::vector<std::int32_t>& tokens, const std::string& path);
    /// Remembers what such a file has. Errors: Code::not_found; invalid_argument where it is another model's
    /// or damaged; unsupported where the cache has no room (cache_ram).
    SavedPrompt restore_prompt(const std::string& path);
    /// Forgets what is remembered of texts that begin like these tokens; returns how many tokens that were.
    std::int64_t forget_prompt(const std::vector<std::int32_t>& tokens);

    /// Puts another model in this one's place: requests that run end on the old one, later ones use the new
    /// one. A load that fails changes nothing.
    void replace(const std::string& path, const ModelOptions& options = {});

    LanguageModelStatistics statistics() const;
    /// Of the load: parameters that were not taken as they are.
    std::vector<Warning> warnings() const;
    /// Ends all requests that run or wait with Code::cancelled.
    void cancel_all();

private:
    explicit LanguageModel(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
