#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json_reader.h"

namespace headrace::text {

/// What a tokenizer's file does to a text before anything looks for words in it.
class Normalizer {
public:
    using Step = std::function<std::string(std::string_view)>;

    /// From the field "normalizer". Errors: Code::unsupported with the types that are known.
    static Result<Normalizer> read(const JsonPlace& place);

    std::string operator()(std::string_view text) const;
    bool empty() const { return steps_.empty(); }

private:
    Status add(const JsonPlace& place, int depth);

    std::vector<Step> steps_;
};

/// sentencepiece's rules, as "precompiled_charsmap" has them in base64.
Result<Normalizer::Step> character_map(const JsonPlace& place);

/// Deepest nesting of "Sequence" that is read.
constexpr int kMostNesting = 8;

}  // namespace headrace::text
