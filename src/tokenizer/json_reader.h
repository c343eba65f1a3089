#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::text {

using Json = nlohmann::json;

/// A value of a file with the place that messages name it by, "model.vocab".
class JsonPlace {
public:
    JsonPlace(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

    const Json& value() const { return *value_; }
    const std::string& path() const { return path_; }
    bool is_object() const { return value_->is_object(); }

    /// A field that is there and not null; none where this is no object.
    std::optional<JsonPlace> find(std::string_view key) const;
    /// The same, where it must be an object or a list.
    Result<JsonPlace> object(std::string_view key) const;
    Result<JsonPlace> list(std::string_view key) const;
    JsonPlace entry(std::size_t index) const;

    Result<std::string> text(std::string_view key, std::optional<std::string> otherwise = std::nullopt) const;
    Result<bool> flag(std::string_view key, bool otherwise) const;
    /// From 0 to INT32_MAX.
    Result<std::int32_t> number(std::string_view key,
                                std::optional<std::int32_t> otherwise = std::nullopt) const;
    /// "type" of an object.
    Result<std::string> type() const;

    /// "model.vocab is a number; it must be ..."
    Error wrong(std::string_view needed) const;
    /// The same of a field.
    Error wrong(std::string_view key, std::string_view needed) const;

    /// 0 to INT32_MAX, or nothing.
    static std::optional<std::int32_t> as_number(const Json& value);

private:
    std::string name(std::string_view key) const;

    const Json* value_;
    std::string path_;
};

/// Errors: Code::invalid_argument with the place of a mistake.
Result<Json> parse_json(std::string_view text);
/// The text of a file. Errors: Code::not_found, Code::io, and invalid_argument beyond the limit.
Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes);

}  // namespace headrace::text
