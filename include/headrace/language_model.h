#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"
#include "headrace/parameters.h"
#include "headrace/reply.h"

/// GGUF language models in C++: texts, conversations, embeddings and rank scores, from libheadrace_llm.so.
///
///     auto model = headrace::LanguageModel::load("model.gguf", {.parameters = {{"n_ctx", 4096}}});
///     auto answer = model.stream("What is the capital of France?", {{"temperature", 0}});
///     while (auto piece = answer.next()) std::cout << piece->text << std::flush;
///
/// Everything may be called from any thread at the same time; requests that run at once share batches.
/// Every function throws headrace::Exception on failure. Texts are UTF-8.
namespace headrace {

struct ModelOptions {
    /// Parameters of the model and its context (n_ctx, n_gpu_layers, devices, embeddings, draft_model ...),
    /// and defaults for its requests. docs/parameters.md has all of them.
    Parameters parameters;
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
    /// Waits for the end likewise, and gives what there is, also of a request that failed: check says why.
    Reply end();
    /// After the end: throws if the request failed, was cancelled or had no time left.
    void check() const;
    /// From any thread; takes effect within a step.
    void cancel();
    /// All parameters of the request, as LanguageModel::effective has them.
    Parameters parameters() const;

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
    bool of_tokens = false;  ///< whether they are those of one text's tokens
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
    Parameters metadata;                                  ///< the file's, under its names; lists are null
    std::uint64_t weights_sample = 0;  ///< of models of one shape, what tells their weights apart
    std::int64_t device_bytes = 0;     ///< about, of the weights: in the memory of GPUs and of other machines
    std::int64_t context_bytes = 0;    ///< of the context's keys and values; 0 where that is not known
    bool reads_images = false;
    /// Tokens for filling in the middle; -1 where the vocabulary has none.
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
    std::uint64_t drafts = 0;                ///< that were checked
    std::vector<std::uint64_t> accepted_at;  ///< tokens of drafts, by their place in the draft
    double prompt_ms = 0, decode_ms = 0;     ///< of steps that read prompts, and that wrote answers
    std::uint64_t stream_steps = 0;          ///< requests that had a part in a step, of all steps
    std::size_t longest_request = 0;         ///< tokens of a prompt and its answer
    std::uint64_t steps = 0, overtaken_steps = 0, broken_off_steps = 0, pauses = 0, context_shifts = 0;
    double longest_step_ms = 0;
    int threads = 0;  ///< of the latest step
    std::size_t remembered_sequences = 0, remembered_tokens = 0, ram_cache_bytes = 0;
    /// The cache on disk (cache_dir): tokens of prompts that came from there, which cached_tokens has,
    /// too, and that were written; reads and writes that failed; bytes of the folder.
    std::uint64_t disk_cached_tokens = 0, disk_written_tokens = 0, disk_failures = 0;
    std::size_t disk_cache_bytes = 0;
    std::uint64_t evictions = 0;
    std::size_t context_tokens = 0;  ///< that all sequences share
    std::size_t named_sessions = 0, anonymous_sessions = 0;
    std::size_t process_models = 0, process_engines = 0;  ///< of the whole process
    std::size_t process_resident_bytes = 0;
    double memory_share_in_use = 0;  ///< of the machine or the control group, 0 to 1
};

/// Whether a GGUF file, or the files of a model that is split, can be loaded as far as headers and sizes
/// tell: a model's weights are not read. Throws what LanguageModel::load would.
HEADRACE_API void check_model_file(const std::string& path);

/// What can be said of a model before it is loaded.
struct ModelOutline {
    ModelKind kind = ModelKind::text;
    std::string architecture;
    std::int64_t weight_bytes = 0;   ///< in all files
    std::int64_t context_bytes = 0;  ///< about, of the context that these options ask for
};
/// Reads headers only. measures_context: that takes longest, up to a second. Throws what LanguageModel::load
/// would of them and of the options.
HEADRACE_API ModelOutline outline_model(const std::string& path, const ModelOptions& options = {},
                                        bool measures_context = true);

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
    /// What the load warned of: parameters that were not taken as they are.
    std::vector<Warning> warnings() const;
    /// Ends all requests that run or wait with Code::cancelled.
    void cancel_all();

private:
    explicit LanguageModel(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
