#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalizer.h"
#include "tokenizer/token_model.h"
#include "tokenizer/trie.h"

namespace headrace::text {

/// Tokens that are looked for in the text itself, ahead of the model: special ones, and those added later.
class AddedTokens {
public:
    /// From the file's field "added_tokens", a list or missing.
    static Result<AddedTokens> read(const JsonPlace& file, const TokenModel& model,
                                    const Normalizer& normalizer);

    using UseToken = std::function<void(std::int32_t id)>;
    /// Calls one of both for each part of a text, in their order: parts between tokens are normalised.
    void split(std::string_view text, const Normalizer& normalizer, const UseToken& use_token,
               const std::function<void(std::string_view)>& use_text) const;

    std::optional<std::int32_t> id_of(std::string_view content) const;
    std::int32_t largest_id() const { return largest_id_; }

private:
    struct Token {
        std::string content;
        std::string found;  ///< what it is found as
        std::int32_t id = 0;
        bool is_word = false, takes_left = false, takes_right = false, is_normalized = false;
    };
    static Result<Token> read_token(const JsonPlace& place, const TokenModel& model,
                                    const Normalizer& normalizer);
    void index();
    void find(const Trie& trie, std::string_view text, const UseToken& use_token,
              const std::function<void(std::string_view)>& use_text) const;

    std::vector<Token> tokens_;
    Trie as_given_, normalized_;  // values: positions in tokens_
    std::int32_t largest_id_ = -1;
};

}  // namespace headrace::text
