#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

bool ends_with_word(std::string_view text) {
    if (text.empty()) return false;
    std::size_t at = previous_character(text, text.size());
    return is(next_character(text, at), kWord);
}

bool starts_with_word(std::string_view text) {
    std::size_t at = 0;
    return !text.empty() && is(next_character(text, at), kWord);
}

std::size_t spaces_before(std::string_view text, std::size_t end) {
    while (end > 0) {
        const std::size_t begin = previous_character(text, end);
        std::size_t at = begin;
        if (!is(next_character(text, at), kSpace)) break;
        end = begin;
    }
    return end;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        std::size_t behind = at;
        if (!is(next_character(text, behind), kSpace)) break;
        at = behind;
    }
    return at;
}

}  // namespace

Result<AddedTokens> AddedTokens::read(const JsonPlace& file, const TokenModel& model,
                                      const Normalizer& normalizer) {
    AddedTokens made;
    if (!file.find("added_tokens")) return made;
    HR_ASSIGN(const JsonPlace list, file.list("added_tokens"));
    for (std::size_t i = 0; i < list.value().size(); ++i) {
        HR_ASSIGN(Token token, read_token(list.entry(i), model, normalizer));
        made.largest_id_ = std::max(made.largest_id_, token.id);
        made.tokens_.push_back(std::move(token));
    }
    made.index();
    return made;
}

Result<AddedTokens::Token> AddedTokens::read_token(const JsonPlace& place, const TokenModel& model,
                                                   const Normalizer& normalizer) {
    Token token;
    if (!place.is_object()) return place.wrong("an object");
    HR_ASSIGN(token.content, place.text("content"));
    HR_ASSIGN(token.id, place.number("id"));
    HR_ASSIGN(token.is_word, place.flag("single_word", false));
    HR_ASSIGN(token.takes_left, place.flag("lstrip", false));
    HR_ASSIGN(token.takes_right, place.flag("rstrip", false));
    HR_ASSIGN(const bool is_special, place.flag("special", false));
    HR_ASSIGN(token.is_normalized, place.flag("normalized", !is_special));
    token.found = token.is_normalized ? normalizer(token.content) : token.content;
    if (token.found.empty()) return place.wrong("content", "a text that the normaliser leaves something of");
    const std::optional<std::int32_t> known = model.id_of(token.content);
    if (known && *known != token.id)
        return invalid("{}: '{:.60}' has the id {}, and {} in the model's vocabulary", place.path(),
                       token.content, token.id, *known);
    return token;
}

void AddedTokens::index() {
    std::vector<std::pair<std::string_view, std::int32_t>> given, normalized;
    // The first of equal tokens counts.
    for (std::size_t i = tokens_.size(); i-- > 0;)
        (tokens_[i].is_normalized ? normalized : given).emplace_back(tokens_[i].found, static_cast<int>(i));
    as_given_ = Trie(std::move(given));
    normalized_ = Trie(std::move(normalized));
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view content) const {
    for (const Token& token : tokens_)
        if (token.content == content) return token.id;
    return std::nullopt;
}

void AddedTokens::split(std::string_view text, const Normalizer& normalizer, const UseToken& use_token,
                        const std::function<void(std::string_view)>& use_text) const {
    find(as_given_, text, use_token, [&](std::string_view part) {
        if (normalizer.empty()) return find(normalized_, part, use_token, use_text);
        find(normalized_, normalizer(part), use_token, use_text);
    });
}

void AddedTokens::find(const Trie& trie, std::string_view text, const UseToken& use_token,
                       const std::function<void(std::string_view)>& use_text) const {
    std::size_t begin = 0;  // of what is not given to either function
    const auto give_text = [&](std::size_t end) {
        if (end > begin) use_text(text.substr(begin, end - begin));
    };
    if (trie.empty()) return give_text(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const Trie::Match match = trie.longest(text.substr(at));
        if (match.value < 0) {
            ++at;
            continue;
        }
        const Token& token = tokens_[static_cast<std::size_t>(match.value)];
        std::size_t first = at, last = at + match.size;
        at = last;
        if (token.is_word && (ends_with_word(text.substr(0, first)) || starts_with_word(text.substr(last))))
            continue;
        if (token.takes_left) first = std::max(spaces_before(text, first), begin);
        if (token.takes_right) last = spaces_after(text, last);
        give_text(first);
        use_token(token.id);
        begin = last;
    }
    give_text(text.size());
}

}  // namespace headrace::text
