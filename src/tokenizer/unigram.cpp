#include <algorithm>
#include <limits>

#include "tokenizer/token_model.h"
#include "tokenizer/trie.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

/// sentencepiece's: of all ways to cut a piece into tokens the one whose scores have the largest sum.
class Unigram : public TokenModel {
public:
    Unigram(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, bool has_bytes)
        : TokenModel(std::move(vocabulary)), scores_(std::move(scores)), unknown_(unknown) {
        constexpr double kUnknownPenalty = 10;
        unknown_score_ = *std::ranges::min_element(scores_) - kUnknownPenalty;
        std::vector<std::pair<std::string_view, std::int32_t>> entries(vocabulary_.begin(),
                                                                       vocabulary_.end());
        trie_ = Trie(std::move(entries));
        if (has_bytes) read_bytes();
    }

    void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const override {
        const std::vector<End> ends = best_ends(piece);
        std::vector<std::string_view> tokens;  // from the last to the first
        std::size_t unknown_end = 0;           // of unknown ones in a row, which are one
        for (std::size_t end = piece.size(); end > 0; end = ends[end].begin) {
            if (ends[end].id == unknown_) {
                if (unknown_end == 0) unknown_end = end;
            } else {
                if (unknown_end > 0) tokens.push_back(piece.substr(end, unknown_end - end));
                unknown_end = 0;
                tokens.push_back(piece.substr(ends[end].begin, end - ends[end].begin));
            }
        }
        if (unknown_end > 0) tokens.push_back(piece.substr(0, unknown_end));
        for (std::size_t i = tokens.size(); i-- > 0;) append(tokens[i], ids);
    }

private:
    struct End {
        double score = 0;
        std::size_t begin = std::string_view::npos;
        std::int32_t id = 0;
    };

    /// The best token that ends at each place in the piece.
    std::vector<End> best_ends(std::string_view piece) const {
        std::vector<End> ends(piece.size() + 1);
        for (std::size_t at = 0; at < piece.size();) {
            std::size_t behind = at;
            next_character(piece, behind);
            const double score = ends[at].score;
            bool has_character = false;
            const auto offer = [&](std::size_t end, double sum, std::int32_t id) {
                if (ends[end].begin == std::string_view::npos || sum > ends[end].score)
                    ends[end] = {sum, at, id};
            };
            trie_.each_prefix(piece.substr(at), [&](std::int32_t id, std::size_t size) {
                offer(at + size, scores_[static_cast<std::size_t>(id)] + score, id);
                has_character = has_character || at + size == behind;
            });
            if (!has_character) offer(behind, unknown_score_ + score, unknown_);
            at = behind;
        }
        return ends;
    }

    void append(std::string_view token, std::vector<std::int32_t>& ids) const {
        if (const auto id = id_of(token)) return ids.push_back(*id);
        if (bytes_.empty()) return ids.push_back(unknown_);
        for (const char byte : token) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    }
    void read_bytes() {
        std::vector<std::int32_t> all;
        for (int byte = 0; byte < 256; ++byte) {
            const auto id = id_of(fmt::format("<0x{:02X}>", byte));
            if (!id) return;
            all.push_back(*id);
        }
        bytes_ = std::move(all);
    }

    const std::vector<double> scores_;
    const std::int32_t unknown_;
    double unknown_score_ = 0;
    Trie trie_;
    std::vector<std::int32_t> bytes_;  // tokens of single bytes, in place of the unknown one
};

}  // namespace

MadeModel read_unigram(const JsonPlace& place) {
    HR_ASSIGN(const JsonPlace given, place.list("vocab"));
    HR_ASSIGN(const std::int32_t unknown, place.number("unk_id"));
    HR_ASSIGN(const bool has_bytes, place.flag("byte_fallback", false));
    if (given.value().size() > std::numeric_limits<std::int32_t>::max() ||
        static_cast<std::size_t>(unknown) >= given.value().size())
        return invalid("{}.unk_id is {}, and the vocabulary has {} tokens", place.path(), unknown,
                       given.value().size());
    Vocabulary vocabulary;
    vocabulary.reserve(given.value().size());
    std::vector<double> scores;
    for (const Json& entry : given.value()) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
            return given.entry(scores.size()).wrong("a list of a token and its score");
        vocabulary[entry[0].get_ref<const std::string&>()] = static_cast<std::int32_t>(scores.size());
        scores.push_back(entry[1].get<double>());
    }
    return std::shared_ptr<const TokenModel>(
        std::make_shared<const Unigram>(std::move(vocabulary), std::move(scores), unknown, has_bytes));
}

}  // namespace headrace::text
