#pragma once
#include "llm/parameters/table.h"

namespace headrace::llm {

constexpr std::size_t kMaxJsonBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxJsonDepth = 64;

/// A value from untrusted text. Errors begin with `what` and name line and column: no JSON, invalid UTF-8,
/// nesting or size beyond the limits, a key that is given twice in one object, a number beyond a double's
/// range.
Result<Json> parse_json(std::string_view text, std::string_view what);

/// The same for parameters, which are an object. Blank text is an empty one; zero bytes at the end, which C
/// callers count, are ignored.
Result<Json> parse_object(std::string_view text);

}  // namespace headrace::llm
