#include <queue>
#include <tuple>

#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

struct Merge {
    std::int32_t rank = 0, token = 0;
};
using Merges = std::unordered_map<std::uint64_t, Merge>;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

/// Characters that become one token, pair after pair, those that come first in the list of merges first.
class BytePairs : public TokenModel {
public:
    struct Options {
        std::optional<std::int32_t> unknown;
        bool fuses_unknown = false, ignores_merges = false;
    };
    BytePairs(Vocabulary vocabulary, Merges merges, Options options)
        : TokenModel(std::move(vocabulary)), merges_(std::move(merges)), options_(options) {}

    void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const override {
        if (options_.ignores_merges)
            if (const auto id = id_of(piece)) return ids.push_back(*id);
        std::vector<Symbol> symbols = characters_of(piece);
        merge(symbols);
        for (int i = symbols.empty() ? -1 : 0; i >= 0; i = at(symbols, i).next)
            ids.push_back(at(symbols, i).id);
    }

private:
    struct Symbol {
        std::int32_t id = 0;
        int previous = -1, next = -1;
        bool is_merged = false;  // into the one before
    };
    struct Candidate {
        std::int32_t rank = 0;
        int place = 0;
        std::int32_t token = 0;
        bool operator<(const Candidate& other) const {  // the largest comes first
            return std::tie(rank, place) > std::tie(other.rank, other.place);
        }
    };
    static Symbol& at(std::vector<Symbol>& symbols, int i) { return symbols[static_cast<std::size_t>(i)]; }

    std::vector<Symbol> characters_of(std::string_view piece) const {
        std::vector<Symbol> all;
        bool was_unknown = false;
        for (std::size_t place = 0; place < piece.size();) {
            const std::size_t begin = place;
            next_character(piece, place);
            const auto id = id_of(piece.substr(begin, place - begin));
            const bool is_unknown = !id && options_.unknown;
            if (id || (is_unknown && !(was_unknown && options_.fuses_unknown)))
                all.push_back({.id = id.value_or(options_.unknown.value_or(0))});
            was_unknown = id ? false : is_unknown || was_unknown;
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].previous = static_cast<int>(i) - 1;
            all[i].next = i + 1 < all.size() ? static_cast<int>(i) + 1 : -1;
        }
        return all;
    }

    void merge(std::vector<Symbol>& symbols) const {
        std::priority_queue<Candidate> waiting;
        const auto offer = [&](int i) {
            if (i < 0 || at(symbols, i).next < 0) return;
            const auto found = merges_.find(pair_of(at(symbols, i).id, at(symbols, at(symbols, i).next).id));
            if (found != merges_.end()) waiting.push({found->second.rank, i, found->second.token});
        };
        for (int i = 0; i < static_cast<int>(symbols.size()); ++i) offer(i);
        while (!waiting.empty()) {
            const Candidate best = waiting.top();
            waiting.pop();
            Symbol& left = at(symbols, best.place);
            if (left.is_merged || left.next < 0) continue;
            Symbol& right = at(symbols, left.next);
            // The pair may have become another one since.
            const auto found = merges_.find(pair_of(left.id, right.id));
            if (found == merges_.end() || found->second.token != best.token) continue;
            left.id = best.token;
            right.is_merged = true;
            left.next = right.next;
            if (left.next >= 0) at(symbols, left.next).previous = best.place;
            offer(left.previous);
            offer(best.place);
        }
    }

    const Merges merges_;
    const Options options_;
};

/// "a b", or ["a", "b"].
std::optional<std::pair<std::string_view, std::string_view>> merge_of(const Json& entry) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
        return std::pair<std::string_view, std::string_view>(entry[0].get_ref<const std::string&>(),
                                                             entry[1].get_ref<const std::string&>());
    if (!entry.is_string()) return std::nullopt;
    const std::string_view text = entry.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        return std::nullopt;
    return std::pair(text.substr(0, space), text.substr(space + 1));
}

Result<Merges> read_merges(const JsonPlace& place, const Vocabulary& vocabulary) {
    HR_ASSIGN(const JsonPlace given, place.list("merges"));
    Merges merges;
    merges.reserve(given.value().size());
    std::string whole;
    for (std::size_t i = 0; i < given.value().size(); ++i) {
        const auto pair = merge_of(given.value()[i]);
        if (!pair) return given.entry(i).wrong("two tokens, as a list or with a space between them");
        whole.assign(pair->first).append(pair->second);
        const auto left = vocabulary.find(pair->first), right = vocabulary.find(pair->second),
                   both = vocabulary.find(whole);
        if (left == vocabulary.end() || right == vocabulary.end() || both == vocabulary.end())
            return invalid("{} merges '{:.60}' and '{:.60}', and not all of these and '{:.60}' are tokens",
                           given.entry(i).path(), pair->first, pair->second, whole);
        merges[pair_of(left->second, right->second)] = {static_cast<std::int32_t>(i), both->second};
    }
    return merges;
}

/// Refuses options that models of bytes do without.
Status check_plain(const JsonPlace& place) {
    HR_ASSIGN(const std::string prefix, place.text("continuing_subword_prefix", ""));
    HR_ASSIGN(const std::string suffix, place.text("end_of_word_suffix", ""));
    HR_ASSIGN(const bool has_bytes, place.flag("byte_fallback", false));
    const auto dropout = place.find("dropout");
    const bool drops = dropout && !(dropout->value().is_number() && dropout->value().get<double>() == 0);
    const std::string_view odd = !prefix.empty()   ? "continuing_subword_prefix"
                                 : !suffix.empty() ? "end_of_word_suffix"
                                 : has_bytes       ? "byte_fallback"
                                 : drops           ? "dropout"
                                                   : "";
    if (odd.empty()) return success();
    return unsupported(
        "{}.{} is set: of BPE, models of bytes are known here, which do without; a GGUF file of the "
        "model may do instead",
        place.path(), odd);
}

}  // namespace

MadeModel read_byte_pairs(const JsonPlace& place) {
    HR_TRY(check_plain(place));
    HR_ASSIGN(Vocabulary vocabulary, read_vocabulary(place));
    HR_ASSIGN(Merges merges, read_merges(place, vocabulary));
    BytePairs::Options options;
    HR_ASSIGN(options.fuses_unknown, place.flag("fuse_unk", false));
    HR_ASSIGN(options.ignores_merges, place.flag("ignore_merges", false));
    HR_ASSIGN(const std::string unknown, place.text("unk_token", ""));
    if (const auto found = vocabulary.find(unknown); !unknown.empty() && found != vocabulary.end())
        options.unknown = found->second;
    else if (!unknown.empty())
        return invalid("{}.unk_token is '{:.60}', which is no token of the vocabulary", place.path(),
                       unknown);
    return std::shared_ptr<const TokenModel>(
        std::make_shared<const BytePairs>(std::move(vocabulary), std::move(merges), options));
}

}  // namespace headrace::text
