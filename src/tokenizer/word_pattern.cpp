#include <array>
#include <utility>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2Short =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Finds the piece that begins at a place of a text, alternative by alternative.
class WordMatch {
public:
    WordMatch(const WordPattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}

    /// Where it ends; after `at` always.
    std::size_t end_of(std::size_t at) const {
        if (const std::size_t end = after_contraction(at); end > at) return end;
        if (const std::size_t end = after_letters(at); end > at) return end;
        const std::size_t inner = text_[at] == ' ' ? at + 1 : at;
        const std::size_t digits_from = pattern_.is_new ? at : inner;
        if (const std::size_t end = after(digits_from, kNumber, pattern_.digits); end > digits_from)
            return end;
        if (const std::size_t end = after_others(inner); end > inner) return newlines_after(end);
        return after_spaces(at);
    }

private:
    /// Behind characters of these kinds; most: of how many, 0 for any number.
    std::size_t after(std::size_t at, std::uint32_t any, std::size_t most = 0) const {
        for (std::size_t count = 0; at < text_.size() && (most == 0 || count < most); ++count) {
            std::size_t behind = at;
            if (!is(next_character(text_, behind), any)) break;
            at = behind;
        }
        return at;
    }
    std::size_t after_others(std::size_t at) const {
        while (at < text_.size()) {
            std::size_t behind = at;
            if (is(next_character(text_, behind), kLetter | kNumber | kPatternSpace)) break;
            at = behind;
        }
        return at;
    }
    std::size_t newlines_after(std::size_t at) const {
        while (pattern_.is_new && at < text_.size() && is_newline(at)) ++at;
        return at;
    }
    bool is_newline(std::size_t at) const { return text_[at] == '\r' || text_[at] == '\n'; }

    std::size_t after_contraction(std::size_t at) const {
        if (text_[at] != '\'') return at;
        std::size_t behind = at + 1;
        const char32_t first = letter(behind);
        if (first == 's' || first == 't' || first == 'm' || first == 'd') return behind;
        const char32_t second = letter(behind);
        const bool ends = second && ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                                     (first == 'l' && second == 'l'));
        return ends ? behind : at;
    }
    /// The next one, small where cases are alike; 0 at the end.
    char32_t letter(std::size_t& at) const {
        if (at >= text_.size()) return 0;
        const char32_t c = next_character(text_, at);
        if (!pattern_.is_new) return c;
        if (c == 0x17F) return 's';  // the long s
        return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    }
    std::size_t after_letters(std::size_t at) const {
        if (!pattern_.is_new) {
            const std::size_t inner = text_[at] == ' ' ? at + 1 : at;
            const std::size_t end = after(inner, kLetter);
            return end > inner ? end : at;
        }
        std::size_t inner = at;
        const char32_t first = next_character(text_, inner);
        if (is(first, kLetter)) return after(at, kLetter);
        if (first == '\r' || first == '\n' || is(first, kNumber)) return at;
        const std::size_t end = after(inner, kLetter);
        return end > inner ? end : at;
    }
    /// Spaces before something else leave it the last one; with the new pattern newlines end a piece.
    std::size_t after_spaces(std::size_t at) const {
        const std::size_t end = after(at, kPatternSpace);
        if (end == at) {  // a character that none of the alternatives takes
            std::size_t behind = at;
            next_character(text_, behind);
            return behind;
        }
        if (pattern_.is_new)
            for (std::size_t i = end; i > at; --i)
                if (is_newline(i - 1)) return i;
        if (end == text_.size()) return end;
        const std::size_t last = previous_character(text_, end);
        return last > at ? last : end;
    }

    const WordPattern pattern_;
    const std::string_view text_;
};

}  // namespace

std::optional<WordPattern> known_pattern(std::string_view expression) {
    if (expression == kGpt2 || expression == kGpt2Short) return WordPattern{};
    if (expression == kLlama3) return WordPattern{.is_new = true, .digits = 3};
    if (expression == kQwen2) return WordPattern{.is_new = true, .digits = 1};
    return std::nullopt;
}

void split_words(const WordPattern& pattern, std::string_view text, const UsePiece& use) {
    const WordMatch match(pattern, text);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = match.end_of(at);
        use(text.substr(at, end - at));
        at = end;
    }
}

}  // namespace headrace::text
