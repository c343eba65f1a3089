#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/headrace.h"
#include "headrace/tokenizer.h"

/// Vectors of texts, and scores of documents, by a compiled graph and the tokenizer of its model.
///
///     auto encoder = headrace::TextEncoder::load("bge-small/model.hrg");
///     encoder.embed({"a text", "another one"}).vectors;
///
/// Everything may be called from any thread at the same time: texts of calls that run at once share batches.
/// Every function throws headrace::Exception on failure. Texts are UTF-8.
namespace headrace {

/// How the vectors of a text's tokens become one.
enum class TextPooling : std::uint8_t {
    mean,
    cls,               ///< the first token's
    last,              ///< the last token's
    pooled,            ///< the graph does that itself: its output is [batch, width]
    max,               ///< of each number the largest
    mean_sqrt_length,  ///< their sum by the square root of how many there are
};

struct TextEncoderOptions {
    std::string tokenizer;  ///< a file; empty: tokenizer.json in the model's folder
    /// Unset: what the folder says (1_Pooling/config.json, as sentence-transformers writes it), else pooled
    /// where the graph has an output sentence_embedding or no vectors of tokens, else mean.
    std::optional<TextPooling> pooling;
    /// Vectors of length 1. Unset: as modules.json says, and yes where there is none.
    std::optional<bool> normalizes;
    /// The most tokens of a text, special ones included; the rest is cut off. 0: what the folder says
    /// (sentence_bert_config.json, tokenizer_config.json, config.json, tokenizer.json), else 512.
    std::int64_t most_tokens = 0;
    /// Whether sentence_bert_config.json counts, which sentence-transformers reads and fastembed does not.
    bool sentence_config = true;
    bool ranks = false;  ///< the model is a cross-encoder: its output is a score for each pair of texts
    std::size_t most_waiting = 0;  ///< calls that wait or run; one more fails with Code::busy. 0: any number
    CompileOptions compile;
};

/// Options of one call.
struct EncodeCall {
    /// Asked now and then while the call waits; when it says yes, the call fails with Code::cancelled.
    std::function<bool()> is_cancelled;
    std::chrono::milliseconds timeout{0};  ///< then it fails with Code::timed_out; 0: none
};

struct TextVectors {
    std::vector<std::vector<float>> vectors;  ///< of each text: float [width]
    std::vector<std::int64_t> tokens;         ///< of each text, special ones included
};

struct TextScores {
    std::vector<float> scores;         ///< of each document, as the graph gives them: logits of most models
    std::vector<std::int64_t> tokens;  ///< of each pair
};

struct TextEncoderInfo {
    std::string path;
    bool ranks = false;
    TextPooling pooling = TextPooling::mean;
    bool normalizes = false;
    std::int64_t width = 0;  ///< of a vector; 0 of one that ranks
    std::int64_t most_tokens = 0, vocabulary_size = 0;
    std::int64_t bytes = 0;  ///< of the weights
};

/// Counts since the model was loaded, and what waits and runs now.
struct TextEncoderStatistics {
    std::uint64_t calls = 0, finished = 0, failed = 0, cancelled = 0;  ///< calls
    std::uint64_t texts = 0, tokens = 0;  ///< that the graph has read; a pair is a text
    std::uint64_t padding = 0;            ///< tokens that filled up shorter texts of a batch
    std::uint64_t runs = 0;               ///< of the graph
    std::size_t waiting = 0;              ///< texts
    std::size_t running = 0;              ///< runs
};

/// A model and the threads that run it, which all copies of this object share; they end with the last one.
class HEADRACE_API TextEncoder {
public:
    struct Impl;

    /// path: of a graph file (.hrg) or an ONNX model, whose inputs are int64 or int32 [batch, sequence], both
    /// open: input_ids, and attention_mask, token_type_ids and position_ids where it has them. Errors:
    /// Code::not_found and io of files; invalid_argument and unsupported with what is wrong in the graph or
    /// the folder, and for more most_tokens than the model has positions.
    static TextEncoder load(const std::string& path, const TextEncoderOptions& options = {});
    /// Makes an encoder of a program's own graph; the other files lie in path's folder.
    static TextEncoder load(const Graph& graph, const std::string& path,
                            const TextEncoderOptions& options = {});
    /// Makes an encoder of a graph and a tokenizer; options.tokenizer and the folder have no meaning.
    TextEncoder(const Graph& graph, Tokenizer tokenizer, const TextEncoderOptions& options = {});

    /// A vector of each text. Errors: Code::unsupported of a model that ranks; busy, cancelled, timed_out.
    TextVectors embed(const std::vector<std::string>& texts, const EncodeCall& call = {}) const;
    /// The same of texts that are tokens already, special ones included. Errors: invalid_argument for numbers
    /// outside the vocabulary, for none, and for more than most_tokens.
    TextVectors embed_tokens(const std::vector<std::vector<std::int32_t>>& sequences,
                             const EncodeCall& call = {}) const;
    /// A score of each document for the query. Errors: Code::unsupported of a model that gives vectors.
    TextScores rank(std::string_view query, const std::vector<std::string>& documents,
                    const EncodeCall& call = {}) const;

    /// The tokens of each text that embed() reads.
    std::vector<TokenizedText> tokenize(const std::vector<std::string>& texts) const;

    const Tokenizer& tokenizer() const;
    const TextEncoderInfo& info() const;
    TextEncoderStatistics statistics() const;
    /// Ends all calls that wait with Code::cancelled.
    void cancel_all() const;

private:
    explicit TextEncoder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
