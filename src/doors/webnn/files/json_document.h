#pragma once
#include <string>
#include <string_view>

#include "doors/webnn/files/file_value.h"

namespace headrace::webnn {

/// Parses JSON text (RFC 8259) in linear time. Errors: line:column of what is not JSON, values nested too
/// deep, numbers out of range.
Result<FileValue> parse_json_document(std::string_view text);

/// A value within a document, with the path that messages call it by.
class JsonValue {
public:
    JsonValue(const FileValue& value, std::string path) : value_(&value), path_(std::move(path)) {}

    const FileValue& value() const { return *value_; }
    const std::string& path() const { return path_; }
    Error error(const Error& what) const { return path_.empty() ? what : what.within(path_); }
    Error expected(std::string_view what) const;

    Result<const FileValue::Object*> object() const;
    Result<std::string> string() const;
    Result<std::uint64_t> size() const;  ///< an integer from 0
    /// A member of an object; null where it is absent or null.
    Result<const FileValue*> find(std::string_view key) const;
    Result<JsonValue> at(std::string_view key) const;  ///< an error where find() is null
    JsonValue member(std::string_view key, const FileValue& value) const;
    /// Calls visit(JsonValue) for each element of an array.
    template <class Visit>
    Status each(Visit&& visit) const {
        if (const auto* integers = value_->get<FileValue::Integers>()) {
            for (std::size_t i = 0; i < integers->size(); ++i) {
                const FileValue element{(*integers)[i]};
                HR_TRY(visit(JsonValue(element, fmt::format("{}[{}]", path_, i))));
            }
            return success();
        }
        const auto* list = value_->get<FileValue::List>();
        if (!list) return expected("a list");
        for (std::size_t i = 0; i < list->size(); ++i)
            HR_TRY(visit(JsonValue((*list)[i], fmt::format("{}[{}]", path_, i))));
        return success();
    }

private:
    const FileValue* value_;
    std::string path_;
};

/// "format" and "version" of a document, which must be these.
Status check_format(const JsonValue& document, std::string_view format, std::uint64_t most_version);

}  // namespace headrace::webnn
