#pragma once
#include <cstdint>
#include <limits>
#include <optional>
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

struct Range {
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    Rule rule = Rule::none;
    bool or_zero = false;                              ///< 0 is allowed, too, and means off
    std::optional<double> lenient_max = std::nullopt;  ///< in the place of max where a text is read leniently
};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr Range clamp(double min, double max = kNoLimit) { return {min, max, Rule::clamp, false}; }
constexpr Range clamp_or_zero(double min, double max) { return {min, max, Rule::clamp, true}; }
constexpr Range reject(double min, double max = kNoLimit) { return {min, max, Rule::reject, false}; }

constexpr Range lenient_up_to(Range range, double max) {
    range.lenient_max = max;
    return range;
}

/// A time: 31 years at most, so that deadlines in nanoseconds do not overflow.
constexpr double kLongestMs = 1e12;

struct Reading;

/// A parameter whose value is not one plain field.
struct Custom {
    Status (*read)(Reading&, Settings&, const Json&);
    Json (*write)(const Settings&);
    std::string_view type;     ///< as in "it must be ..."
    bool takes_object = true;  ///< an object is the value, not a section
};

/// Known from other programs and without effect here; the row's summary says why.
struct Ignored {};

/// Where a parameter is stored, which decides how its value is read. A string with choices is an enumeration.
using Field = std::variant<bool& (*)(Settings&), int& (*)(Settings&), uint32_t& (*)(Settings&),
                           int64_t& (*)(Settings&), float& (*)(Settings&), double& (*)(Settings&),
                           std::string& (*)(Settings&), std::vector<std::string>& (*)(Settings&),
                           std::vector<float>& (*)(Settings&), Custom, Ignored>;

struct IsNumber {
    template <class T>
    bool operator()(T& (*)(Settings&)) const {
        return std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
    }
    bool operator()(const auto&) const { return false; }
};

/// HR_SETTING(request.sampling.temp): the field as a Field.
#define HR_SETTING(member) \
    [](Settings & settings) -> auto& { return settings.member; }

struct Row {
    std::string_view path;     ///< sections and name: "sampling.dynatemp.range"
    std::string_view names;    ///< the flat name, then others, by spaces; '-' and '.' count as '_'
    Level level;               ///< the innermost that may set it
    std::string_view example;  ///< a valid JSON value other than the default
    Field field;
    std::string_view summary;
    Range range = {};
    std::string_view choices = {};  ///< of a string, by spaces
    std::string_view words = {};    ///< other spellings of values: "auto=-1 all=9999"
    uint64_t sampling_config = 0;   ///< common_params_sampling_config: the caller's choice beats the model's

    std::string_view section() const { return path.substr(0, path.rfind('.')); }
    bool is_number() const { return std::visit(IsNumber{}, field); }
    bool ignored() const { return std::holds_alternative<Ignored>(field); }
};

std::span<const Row> sampling_rows();
std::span<const Row> request_rows();
std::span<const Row> model_rows();
std::span<const Row> service_rows();
std::span<const Row> ignored_rows();

/// All of them in the order in which they are applied.
const std::vector<const Row*>& parameter_rows();

}  // namespace headrace::llm
