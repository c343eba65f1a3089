#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/utf8.h"
#include "ir/attr.h"

namespace headrace::webnn {

/// A value as a graph file writes it: JSON's kinds, with integers kept exact.
struct FileValue {
    using Integers = std::vector<std::int64_t>;  ///< an array of nothing but integers, compactly
    using List = std::vector<FileValue>;
    using Object = std::vector<std::pair<std::string, FileValue>>;  ///< in the file's order

    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Integers, List,
                 Object>
        data;

    template <class T>
    const T* get() const {
        return std::get_if<T>(&data);
    }
    bool is_null() const { return data.index() == 0; }
};

/// Deeper values are refused: no option needs more, and recursion over them would end in a crash.
inline constexpr int kMostNesting = 64;

/// Appends to an array that is being read; stays compact while it holds integers only.
void append_element(FileValue& array, FileValue element);

/// How strings are escaped. The text form knows \" and \\ only.
enum class Syntax { text, json };
void append_quoted(std::string& out, std::string_view text, Syntax syntax);
void append_value(std::string& out, const FileValue& value, Syntax syntax);
/// For messages; long values are cut.
using headrace::excerpt;
std::string excerpt(const FileValue& value);

/// Reads a number literal of either format. Errors: an integer beyond 64 bits, a real beyond doubles.
Result<FileValue> parse_number(std::string_view literal);

/// An attribute's value from what the file has for it; monostate for null.
Result<AttrValue> to_attr_value(const FileValue& value, const Field& field);
/// Numbers that JSON cannot express are written as "Infinity", "-Infinity" and "NaN".
FileValue from_attr_value(const AttrValue& value);

}  // namespace headrace::webnn
