#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::llm {

/// How many characters a text has.
struct TextLengths {
    static constexpr std::uint32_t kAny = UINT32_MAX;
    std::uint32_t least = 0, most = kAny;
};

struct KeptPattern {
    std::string text;           ///< in what llama.cpp's converter takes
    bool keeps_lengths = true;  ///< every text of it has a length that is wanted
};

/// A schema's pattern, which may match anywhere in a text unless ^ and $ say where, as one of the whole text
/// in JSON, of which characters have to be escaped. Errors say what no grammar can express.
Result<KeptPattern> keep_pattern(std::string_view pattern, const TextLengths& wanted);

}  // namespace headrace::llm
