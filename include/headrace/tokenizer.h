#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"

/// Texts as numbers of tokens, by the file tokenizer.json that models of Hugging Face have, as its library
/// does.
///
///     auto tokenizer = headrace::Tokenizer::load("tokenizer.json");
///     tokenizer.encode("Hello world").ids;  // {101, 7592, 2088, 102} with BERT's
namespace headrace {

/// A text, or two, as a model reads them. Nothing is padding.
struct TokenizedText {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t>
        types;  ///< of each token: which text it belongs to, as models of BERT's kind want
};

struct EncodeOptions {
    /// Tokens at most, special ones included: what is beyond is cut off, from two texts as the file says, or
    /// else from the longer one. 0: as many as the file says, which may be any number.
    std::int64_t most_tokens = 0;
    bool special = true;  ///< with the tokens that the file puts around texts
};

/// The tokenizer of a model, immutable: copies share it, and threads may use it at once.
///
/// Covered are WordPiece, Unigram and BPE of bytes with the normalisers and pre-tokenizers of BERT,
/// XLM-RoBERTa (T5, ALBERT), RoBERTa, GPT-2, ModernBERT, Llama 3 and Qwen2, and their post-processors:
/// docs/serving.md has the list. A file with anything else is refused, never read differently.
class HEADRACE_API Tokenizer {
public:
    struct Impl;

    /// Errors: Code::not_found and io of the file; invalid_argument with the place of what is wrong in it;
    /// unsupported with what is not covered, and what is.
    static Tokenizer load(const std::string& path);
    /// Makes a tokenizer of the file's content.
    static Tokenizer parse(std::string_view json);

    /// Errors: invalid_argument for a text that is no UTF-8, and where the special tokens alone are more than
    /// most_tokens.
    TokenizedText encode(std::string_view text, const EncodeOptions& options = {}) const;
    /// The tokens of two texts that the model compares, a question and an answer.
    TokenizedText encode_pair(std::string_view first, std::string_view second,
                              const EncodeOptions& options = {}) const;

    /// The token's id, or nothing where no token has that content.
    std::optional<std::int32_t> token_id(std::string_view content) const;
    /// The id of the token that fills up shorter texts of a batch; 0 where the file names none.
    std::int32_t padding_id() const;
    /// One more than the largest token.
    std::int64_t size() const;
    /// That the file cuts texts to, special ones included; 0: none.
    std::int64_t most_tokens() const;

private:
    explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

}  // namespace headrace
