#include "tokenizer/json_reader.h"

#include <filesystem>
#include <fstream>

namespace headrace::text {

std::string JsonPlace::name(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
    if (!value_->is_object()) return std::nullopt;
    const auto found = value_->find(key);
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonPlace(*found, name(key));
}

Result<JsonPlace> JsonPlace::object(std::string_view key) const {
    const std::optional<JsonPlace> place = find(key);
    if (!place || !place->value().is_object()) return wrong(key, "an object");
    return *place;
}

Result<JsonPlace> JsonPlace::list(std::string_view key) const {
    const std::optional<JsonPlace> place = find(key);
    if (!place || !place->value().is_array()) return wrong(key, "a list");
    return *place;
}

JsonPlace JsonPlace::entry(std::size_t index) const {
    return {(*value_)[index], fmt::format("{}[{}]", path_, index)};
}

Result<std::string> JsonPlace::text(std::string_view key, std::optional<std::string> otherwise) const {
    const std::optional<JsonPlace> place = find(key);
    if (!place && otherwise) return *otherwise;
    if (!place || !place->value().is_string()) return wrong(key, "a text");
    return place->value().get<std::string>();
}

Result<bool> JsonPlace::flag(std::string_view key, bool otherwise) const {
    const std::optional<JsonPlace> place = find(key);
    if (!place) return otherwise;
    if (!place->value().is_boolean()) return wrong(key, "true or false");
    return place->value().get<bool>();
}

std::optional<std::int32_t> JsonPlace::as_number(const Json& value) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() ? value.get<std::uint64_t>() > INT32_MAX : value.get<std::int64_t>() < 0)
        return std::nullopt;
    return value.get<std::int32_t>();
}

Result<std::int32_t> JsonPlace::number(std::string_view key, std::optional<std::int32_t> otherwise) const {
    const std::optional<JsonPlace> place = find(key);
    if (!place && otherwise) return *otherwise;
    const std::optional<std::int32_t> number = place ? as_number(place->value()) : std::nullopt;
    if (!number) return wrong(key, "a whole number from 0 to 2147483647");
    return *number;
}

Result<std::string> JsonPlace::type() const { return text("type"); }

Error JsonPlace::wrong(std::string_view needed) const {
    return invalid("{} is {}; it must be {}", path_.empty() ? "the file" : path_,
                   value_->is_object()    ? "an object"
                   : value_->is_array()   ? "a list"
                   : value_->is_string()  ? "a text"
                   : value_->is_number()  ? "a number"
                   : value_->is_boolean() ? "a truth value"
                                          : "null",
                   needed);
}

Error JsonPlace::wrong(std::string_view key, std::string_view needed) const {
    const std::optional<JsonPlace> place = find(key);
    if (place) return place->wrong(needed);
    return invalid("{} is missing; it must be {}", name(key), needed);
}

Result<Json> parse_json(std::string_view text) {
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        return invalid("no JSON: {:.200}", error.what());
    }
}

Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes) {
    std::error_code problem;
    const auto kind = std::filesystem::status(path, problem);
    if (!std::filesystem::exists(kind)) return failure(Code::not_found, "there is no file {}", path);
    if (!std::filesystem::is_regular_file(kind)) return failure(Code::io, "{} is no file", path);
    const auto size = std::filesystem::file_size(path, problem);
    if (size > most_bytes) return invalid("{} has {} bytes; at most {} are read", path, size, most_bytes);
    std::ifstream file(path, std::ios::binary);
    std::string text(size, '\0');
    file.read(text.data(), static_cast<std::streamsize>(size));
    if (!file) return failure(Code::io, "{} could not be read", path);
    return text;
}

}  // namespace headrace::text
