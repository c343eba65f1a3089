#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "llm/json.h"
#include "llm/parameters/parameters.h"

namespace headrace::llm {

/// What happens to a number outside its range: nothing, it is moved to the nearest end, or it is an error.
enum class Rule { none, clamp, reject };

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The values that a parameter may have.
struct Values {
    double min = -kNoLimit, max = kNoLimit;  ///< of a number; of a list, how many texts it has at least
    Rule rule = Rule::none;
    bool or_zero = false;           ///< 0 is allowed, too, and means off
    std::string_view choices = {};  ///< of a string, by spaces
    std::string_view words = {};    ///< other spellings: "auto=-1 all=9999"

    constexpr Values with_words(std::string_view spellings) const {
        Values values = *this;
        values.words = spellings;
        return values;
    }
};
constexpr Values clamp(double min, double max = kNoLimit) {
    return {.min = min, .max = max, .rule = Rule::clamp};
}
constexpr Values clamp_or_zero(double min, double max) {
    return {.min = min, .max = max, .rule = Rule::clamp, .or_zero = true};
}
constexpr Values reject(double min, double max = kNoLimit) {
    return {.min = min, .max = max, .rule = Rule::reject};
}
constexpr Values one_of(std::string_view choices) { return {.choices = choices}; }

/// A time: 31 years at most, so that deadlines in nanoseconds do not overflow.
constexpr double kLongestMs = 1e12;

struct ParameterContext;

/// A parameter whose value is not one plain field.
struct Custom {
    Status (*read)(ParameterContext&, Settings&, const Json&);
    Json (*write)(const Settings&);
    std::string_view type;     ///< as in "it must be ..."
    bool takes_object = true;  ///< an object is the value, not a section
};

/// Known from other programs and without effect here; the row's summary says why.
struct Ignored {};

/// Where a parameter is stored, which decides how its value is read. A string with choices is an enumeration.
using Field = std::variant<bool& (*)(Settings&), int& (*)(Settings&), std::uint32_t& (*)(Settings&),
                           std::int64_t& (*)(Settings&), float& (*)(Settings&), double& (*)(Settings&),
                           std::string& (*)(Settings&), std::vector<std::string>& (*)(Settings&),
                           std::vector<float>& (*)(Settings&), Custom, Ignored>;

struct IsNumber {
    template <class T>
    bool operator()(T& (*)(Settings&)) const {
        return std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
    }
    bool operator()(const auto&) const { return false; }
};

struct Row {
    Field field;
    ParameterScope scope;      ///< of the settings that the field belongs to
    Level level;               ///< the innermost that may set it
    std::string_view path;     ///< sections and name: "sampling.dynatemp.range"
    std::string_view names;    ///< the flat name, then others, by spaces; '-' and '.' count as '_'
    std::string_view example;  ///< a valid JSON value other than the default
    std::string_view summary;
    Values values = {};

    std::string_view section() const { return path.substr(0, path.rfind('.')); }
    bool is_number() const { return std::visit(IsNumber{}, field); }
    bool ignored() const { return std::holds_alternative<Ignored>(field); }
    /// An object is its value, and no section.
    bool takes_object() const {
        const auto* custom = std::get_if<Custom>(&field);
        return ignored() || (custom && custom->takes_object);
    }
};

/// Names of other programs' parameters, which have no effect here.
std::span<const Row> ignored_rows();

/// All of them in the order in which they are applied.
const std::vector<const Row*>& parameter_rows();

}  // namespace headrace::llm
