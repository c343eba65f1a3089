#include <algorithm>

#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace headrace::text {
namespace {

/// BERT's: the longest token that a word begins with, then the longest that continues it, and so on.
class WordPiece : public TokenModel {
public:
    WordPiece(Vocabulary vocabulary, std::string prefix, std::int32_t unknown, std::int32_t most_characters)
        : TokenModel(std::move(vocabulary)),
          prefix_(std::move(prefix)),
          unknown_(unknown),
          most_characters_(static_cast<std::size_t>(most_characters)) {
        for (const auto& [token, id] : vocabulary_) longest_ = std::max(longest_, token.size());
    }

    void tokenize(std::string_view word, std::vector<std::int32_t>& ids) const override {
        const auto characters = std::ranges::count_if(word, [](char c) { return (c & 0xC0) != 0x80; });
        const std::size_t before = ids.size();
        const bool is_read = static_cast<std::size_t>(characters) <= most_characters_ && read(word, ids);
        if (is_read) return;
        ids.resize(before);
        ids.push_back(unknown_);
    }

private:
    bool read(std::string_view word, std::vector<std::int32_t>& ids) const {
        std::string candidate;
        for (std::size_t begin = 0; begin < word.size();) {
            candidate.assign(begin > 0 ? prefix_ : "");
            const std::size_t prefix = candidate.size();
            candidate += word.substr(begin, longest_);
            while (candidate.size() > prefix) {
                const auto found = vocabulary_.find(std::string_view(candidate));
                if (found != vocabulary_.end()) {
                    ids.push_back(found->second);
                    break;
                }
                candidate.resize(previous_character(candidate, candidate.size()));
            }
            if (candidate.size() <= prefix) return false;
            begin += candidate.size() - prefix;
        }
        return true;
    }

    const std::string prefix_;
    const std::int32_t unknown_;
    const std::size_t most_characters_;
    std::size_t longest_ = 0;  // bytes of a token
};

}  // namespace

MadeModel read_word_piece(const JsonPlace& place) {
    HR_ASSIGN(Vocabulary vocabulary, read_vocabulary(place));
    HR_ASSIGN(const std::string unknown, place.text("unk_token", "[UNK]"));
    HR_ASSIGN(std::string prefix, place.text("continuing_subword_prefix", "##"));
    HR_ASSIGN(const std::int32_t most, place.number("max_input_chars_per_word", 100));
    const auto found = vocabulary.find(unknown);
    if (found == vocabulary.end())
        return invalid("{}.unk_token is '{:.60}', which is no token of the vocabulary", place.path(),
                       unknown);
    const std::int32_t id = found->second;
    return std::shared_ptr<const TokenModel>(
        std::make_shared<const WordPiece>(std::move(vocabulary), std::move(prefix), id, most));
}

}  // namespace headrace::text
