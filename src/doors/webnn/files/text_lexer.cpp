#include "doors/webnn/files/text_lexer.h"

#include <algorithm>

#include "doors/webnn/files/file_value.h"

namespace headrace::webnn {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool starts_identifier(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' || c == '$';
}
constexpr bool continues_identifier(char c) { return starts_identifier(c) || is_digit(c) || c == '.'; }

}  // namespace

std::string Token::str() const {
    switch (kind) {
        case Kind::end: return "the end of the file";
        case Kind::string: return fmt::format("\"{}\"", excerpt(text));
        default: return fmt::format("'{}'", excerpt(text));
    }
}

std::string line_and_column(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto column = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(start), before.end(),
                                      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n') + 1, column + 1);
}

Error error_at(std::string_view text, std::size_t at, const Error& error) {
    return error.within(line_and_column(text, at));
}

bool is_identifier(std::string_view name) {
    return !name.empty() && starts_identifier(name[0]) &&
           std::all_of(name.begin(), name.end(), continues_identifier) && name != "true" && name != "false" &&
           name != "null";
}

void TextLexer::skip_space() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '#')
            at_ = std::min(text_.find('\n', at_), text_.size());
        else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            ++at_;
        else
            return;
    }
}

Token TextLexer::take(Token::Kind kind, std::size_t size) {
    const Token token{kind, text_.substr(at_, size), at_};
    at_ += size;
    return token;
}

Result<Token> TextLexer::string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return error_at(text_, at_, invalid("the string has no closing quote"));
    const Token token{Token::Kind::string, text_.substr(at_ + 1, end - at_ - 1), at_};
    at_ = end + 1;
    return token;
}

Result<Token> TextLexer::number() {
    std::size_t end = at_;
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    const auto skip_digits = [&] {
        const std::size_t start = end;
        while (is_digit(at(end))) ++end;
        return end > start;
    };
    if (at(end) == '-') ++end;
    bool complete = skip_digits();
    if (complete && at(end) == '.') {
        ++end;
        complete = skip_digits();
    }
    if (complete && (at(end) == 'e' || at(end) == 'E')) {
        ++end;
        if (at(end) == '+' || at(end) == '-') ++end;
        complete = skip_digits();
    }
    if (!complete || continues_identifier(at(end))) {
        while (continues_identifier(at(end))) ++end;
        return error_at(text_, at_,
                        invalid("'{}' is not a number; numbers look like -1, 2.5 or 1e-5",
                                excerpt(text_.substr(at_, end - at_))));
    }
    return take(Token::Kind::number, end - at_);
}

Result<Token> TextLexer::next() {
    skip_space();
    if (at_ == text_.size()) return Token{Token::Kind::end, {}, at_};
    const char c = text_[at_];
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    if (starts_identifier(c)) {
        std::size_t size = 1;
        while (at_ + size < text_.size() && continues_identifier(text_[at_ + size])) ++size;
        return take(Token::Kind::identifier, size);
    }
    if (std::string_view("{}[]():;,=@").find(c) != std::string_view::npos)
        return take(Token::Kind::punctuation, 1);
    std::size_t size = 1;
    while (at_ + size < text_.size() && (static_cast<unsigned char>(text_[at_ + size]) & 0xC0) == 0x80)
        ++size;
    return error_at(text_, at_,
                    invalid("the character '{}' has no meaning here; only strings and comments may have it",
                            text_.substr(at_, size)));
}

}  // namespace headrace::webnn
