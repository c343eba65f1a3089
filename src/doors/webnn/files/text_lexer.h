#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::webnn {

struct Token {
    enum class Kind : std::uint8_t { identifier, number, string, punctuation, end };
    Kind kind = Kind::end;
    std::string_view text;  ///< as written; of a string: between the quotes
    std::size_t at = 0;

    bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
    bool is(std::string_view word) const { return kind == Kind::identifier && text == word; }
    std::string str() const;  ///< for messages: "'axis'", "the end of the file"
};

/// "12:7", counting columns in code points from 1. For errors only: it reads the text from its start.
std::string line_and_column(std::string_view text, std::size_t at);
/// An error at a place in the text.
Error error_at(std::string_view text, std::size_t at, const Error& error);

/// Whether the text form can name a value so.
bool is_identifier(std::string_view name);

/// Splits a `.webnn` text, which must be valid UTF-8 and outlive the tokens. `#` starts a comment.
class TextLexer {
public:
    explicit TextLexer(std::string_view text) : text_(text) {}
    Result<Token> next();

private:
    void skip_space();
    Result<Token> string();
    Result<Token> number();
    Token take(Token::Kind kind, std::size_t size);

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace headrace::webnn
