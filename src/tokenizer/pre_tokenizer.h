#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/json_reader.h"

namespace headrace::text {

using UsePiece = std::function<void(std::string_view piece)>;

/// Cuts a text into pieces, in which the model looks for tokens, and may rewrite them.
class Splitter {
public:
    virtual ~Splitter() = default;
    /// Empty pieces are left out. They are valid until `use` returns.
    virtual void split(std::string_view text, const UsePiece& use) const = 0;
};

/// Splitters, each of which gets the pieces of the one before.
class PreTokenizer {
public:
    /// From the field "pre_tokenizer". Errors: Code::unsupported with the types that are known.
    static Result<PreTokenizer> read(const JsonPlace& place);

    void split(std::string_view text, const UsePiece& use) const { split_from(0, text, use); }

private:
    Status add(const JsonPlace& place, int depth);
    void split_from(std::size_t step, std::string_view text, const UsePiece& use) const;

    std::vector<std::shared_ptr<const Splitter>> steps_;
};

/// A regular expression that many models use.
struct WordPattern {
    bool is_new = false;  ///< of Llama 3 and after: any one character may stand before letters; else GPT-2's
    std::size_t digits = 0;  ///< of the new one: digits in a piece at most
};

/// The pattern of that expression, if it is known.
std::optional<WordPattern> known_pattern(std::string_view expression);
/// Calls use for each piece of a text by the pattern.
void split_words(const WordPattern& pattern, std::string_view text, const UsePiece& use);

}  // namespace headrace::text
