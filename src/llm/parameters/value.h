#pragma once
#include "llm/parameters/table.h"

namespace headrace::llm {

/// A warning, and whether `strict` makes it an error.
struct Diagnostic {
    Warning warning;
    bool strict = false;
};
using Diagnostics = std::vector<Diagnostic>;

/// One value on its way into the settings.
struct ParameterContext {
    const Row& row;
    std::string key;  ///< as the caller spells it
    Level level;
    Diagnostics& diagnostics;
    bool lenient = false;  ///< every number outside its range is moved there

    Error wrong(const Json& value, std::string_view must_be) const;
    void warn(bool strict, std::string message) const { diagnostics.push_back({{key, message}, strict}); }
};

/// Stores the value in the row's field, or says what it must be.
Status read_value(const ParameterContext& parameter, const Json& value, Settings& settings);

/// The field as JSON, null where it is the same as nothing given.
Json value_of(const Row& row, Settings& settings);

/// "a number from 0 to 2", as in "it must be ...".
std::string describe(const Row& row);

/// A value for a message: one short line of ASCII.
std::string shown(const Json& value);

std::vector<std::string_view> split(std::string_view text, char separator = ' ');

/// The number inside the range, moved there with a warning where the range clamps or the reading is lenient.
Result<double> number_within(const ParameterContext& parameter, const Json& value, const Values& range,
                             std::string_view must_be);
Result<std::int64_t> read_integer(const ParameterContext& parameter, const Json& value, double min,
                                  double max, std::string_view must_be);
Result<std::string> read_text(const ParameterContext& parameter, const Json& value, std::string_view must_be);
/// A text or a list of texts, at most 256, without those that are empty.
Status read_strings(const ParameterContext& parameter, const Json& value, std::vector<std::string>& field);

}  // namespace headrace::llm
