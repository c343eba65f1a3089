#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/json_reader.h"

namespace headrace::text {

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>>;

/// Cuts a piece of a text into tokens.
class TokenModel {
public:
    virtual ~TokenModel() = default;
    /// Appends the tokens of a piece that is not empty.
    virtual void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;

    std::optional<std::int32_t> id_of(std::string_view token) const {
        const auto found = vocabulary_.find(token);
        return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
    }
    std::int32_t largest_id() const { return largest_id_; }

protected:
    explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
        for (const auto& [token, id] : vocabulary_) largest_id_ = std::max(largest_id_, id);
    }
    const Vocabulary vocabulary_;

private:
    std::int32_t largest_id_ = -1;
};

using MadeModel = Result<std::shared_ptr<const TokenModel>>;

/// From the field "model". Errors: Code::unsupported with the types that are known.
MadeModel read_model(const JsonPlace& place);

// Readers of one kind of model each.
MadeModel read_word_piece(const JsonPlace& place);
MadeModel read_unigram(const JsonPlace& place);
MadeModel read_byte_pairs(const JsonPlace& place);

/// Reads the field "vocab", an object of tokens and their ids.
Result<Vocabulary> read_vocabulary(const JsonPlace& place);

}  // namespace headrace::text
