#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/json.h"

namespace headrace::llm {

/// What an answer is not held to.
struct LostKeyword {
    std::string place;  ///< of its schema, a JSON pointer: #/properties/size
    std::string keyword;
    std::string reason;

    std::string message() const;
    bool operator==(const LostKeyword&) const = default;
};

/// A schema in the words of llama.cpp's converter, which drops what it does not know.
struct KeptSchema {
    Json schema;
    std::vector<std::string> numbers;  ///< rules, each in the place of a number_mark
    std::vector<LostKeyword> lost;
};

/// Fits no value that the schema does not, but for what is lost. Errors: schemas that grow beyond measure.
/// first_number: the first number's index, of several schemas in one grammar.
Result<KeptSchema> keep_schema(const Json& schema, std::size_t first_number = 0);

/// Whether it has only what the converter reads as it is meant.
bool is_plain_schema(const Json& schema);

/// A whole number that stands in the schema for one of a rule, and then in llama.cpp's grammar.
std::int64_t number_mark(std::size_t index);

}  // namespace headrace::llm
