#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/export.h"

namespace headrace {

struct ParameterValue;

/// Named values, in the order in which they were set: what docs/parameters.md lists, as JSON would have them.
class HEADRACE_API Parameters {
public:
    using Entry = std::pair<std::string, ParameterValue>;

    Parameters();
    Parameters(std::initializer_list<Entry> entries);
    Parameters(const Parameters&);
    Parameters(Parameters&&) noexcept;
    Parameters& operator=(const Parameters&);
    Parameters& operator=(Parameters&&) noexcept;
    ~Parameters();

    /// Reads a JSON object; blank text has no parameters. Throws Code::invalid_argument with the place of a
    /// mistake.
    static Parameters from_json(std::string_view text);
    /// indent: spaces a level, or one line where it is negative. Bytes that are no UTF-8 become U+FFFD.
    std::string to_json(int indent = -1) const;

    /// In the place of an earlier value of that name.
    void set(std::string name, ParameterValue value);
    /// Whether there was one.
    bool erase(std::string_view name);
    /// Null when there is none.
    const ParameterValue* find(std::string_view name) const;
    const std::vector<Entry>& entries() const& { return entries_; }
    std::vector<Entry> entries() &&;  ///< for (auto& entry : Parameters::from_json(text).entries())
    bool empty() const;

    bool operator==(const Parameters& other) const;

private:
    std::vector<Entry> entries_;
};

/// The value of a parameter: nothing (as if it were not given), a truth value, a number, a text, a list, or
/// parameters of a section.
struct ParameterValue : std::variant<std::nullptr_t, bool, std::int64_t, double, std::string,
                                     std::vector<ParameterValue>, Parameters> {
    using variant::variant;
    ParameterValue(int number) : variant(std::int64_t{number}) {}
    ParameterValue(float number) : variant(double{number}) {}
    ParameterValue(const char* text) : variant(std::string(text)) {}
    ParameterValue(std::string_view text) : variant(std::string(text)) {}

    /// Reads any JSON value: a program's settings are often texts. Throws Code::invalid_argument with the
    /// place of a mistake.
    HEADRACE_API static ParameterValue from_json(std::string_view text);
};

/// What docs/parameters.md has under a name, in whichever of its spellings.
enum class ParameterKind : std::uint8_t {
    unknown,  ///< nothing, or what is known to be without effect
    value,    ///< a parameter; an object in place of its value would be read as a section
    object,   ///< a parameter whose value may be an object
    section,  ///< parameters
};
HEADRACE_API ParameterKind kind_of_parameter(std::string_view name);

/// What two loaded models differ in that have different values of a parameter.
enum class ParameterScope : std::uint8_t {
    answers,  ///< nothing that lies in memory: it is of requests, sessions or the log
    engine,   ///< the context with its cache and queue; their weights may be the same
    weights,  ///< the weights, too, or where they lie; so is a name that is not known
};
HEADRACE_API ParameterScope scope_of_parameter(std::string_view name);

}  // namespace headrace
