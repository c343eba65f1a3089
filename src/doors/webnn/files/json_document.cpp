#include "doors/webnn/files/json_document.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.h"
#include "doors/webnn/files/text_lexer.h"

namespace headrace::webnn {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostReason = 160;

/// Receives the parser's events and builds the tree. nlohmann's own tree would take several times the memory
/// for lists of numbers, has no limit of depth, and keeps no order of keys.
class TreeBuilder {
public:
    explicit TreeBuilder(std::string_view text) : text_(text) {}

    bool null() { return add({}); }
    bool boolean(bool v) { return add({v}); }
    bool number_integer(Json::number_integer_t v) { return add({std::int64_t{v}}); }
    bool number_unsigned(Json::number_unsigned_t v) {
        if (v <= static_cast<std::uint64_t>(INT64_MAX)) return add({static_cast<std::int64_t>(v)});
        return add({std::uint64_t{v}});
    }
    bool number_float(Json::number_float_t v, const std::string& literal) {
        if (literal.find_first_of(".eE") != std::string::npos) return add({v});
        if (literal == "-0") return add({-0.0});
        return refuse(invalid("the integer {} needs more than 64 bits", excerpt(std::string_view(literal))));
    }
    bool string(std::string& v) { return add({std::move(v)}); }
    bool binary(Json::binary_t&) { return false; }  // not in text
    bool start_object(std::size_t) { return open({FileValue::Object{}}); }
    bool start_array(std::size_t) { return open({FileValue::Integers{}}); }
    bool key(std::string& name) {
        keys_.push_back(std::move(name));
        return true;
    }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool parse_error(std::size_t at, const std::string&, const Json::exception& e) {
        // The library's text starts with the place once more; the reason comes last.
        std::string_view what = e.what();
        for (const std::string_view before : {"] ", " - "})
            if (const std::size_t found = what.find(before); found != std::string_view::npos)
                what.remove_prefix(found + before.size());
        std::string reason = excerpt(what, kMostReason);
        if (find_invalid_utf8(reason)) reason = "ill-formed UTF-8";  // which the text would quote
        error_ = error_at(text_, std::min(at > 0 ? at - 1 : 0, text_.size()),
                          invalid("this is not JSON: {}", reason));
        return false;
    }

    Result<FileValue> finish(bool parsed) {
        if (error_) return *error_;
        if (!parsed) return invalid("this is not JSON");
        return std::move(root_);
    }

private:
    bool refuse(Error error) {
        error_ = std::move(error);
        return false;
    }
    bool open(FileValue container) {
        if (open_.size() >= kMostNesting)
            return refuse(invalid("values are nested more than {} deep", kMostNesting));
        open_.push_back(std::move(container));
        return true;
    }
    bool close() {
        FileValue done = std::move(open_.back());
        open_.pop_back();
        return add(std::move(done));
    }
    bool add(FileValue value) {
        if (open_.empty()) {
            root_ = std::move(value);
        } else if (auto* object = std::get_if<FileValue::Object>(&open_.back().data)) {
            object->emplace_back(std::move(keys_.back()), std::move(value));
            keys_.pop_back();
        } else {
            append_element(open_.back(), std::move(value));
        }
        return true;
    }

    std::string_view text_;
    FileValue root_;
    std::vector<FileValue> open_;    ///< containers around the next value, outermost first
    std::vector<std::string> keys_;  ///< of the objects among them
    std::optional<Error> error_;
};

}  // namespace

Result<FileValue> parse_json_document(std::string_view text) {
    TreeBuilder builder(text);
    const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
    return builder.finish(parsed);
}

Error JsonValue::expected(std::string_view what) const {
    return error(invalid("expected {}, found {}", what, excerpt(*value_)));
}

Result<const FileValue::Object*> JsonValue::object() const {
    const auto* object = value_->get<FileValue::Object>();
    if (!object) return expected("an object");
    return object;
}

Result<std::string> JsonValue::string() const {
    const auto* text = value_->get<std::string>();
    if (!text) return expected("a string");
    return *text;
}

Result<std::uint64_t> JsonValue::size() const {
    if (const auto* i = value_->get<std::int64_t>(); i && *i >= 0) return static_cast<std::uint64_t>(*i);
    if (const auto* u = value_->get<std::uint64_t>()) return *u;
    return expected("an integer from 0");
}

Result<const FileValue*> JsonValue::find(std::string_view key) const {
    HR_ASSIGN(const auto* members, object());
    const FileValue* found = nullptr;
    for (const auto& [name, value] : *members) {
        if (name != key) continue;
        if (found) return error(invalid("the key '{}' is there twice", key));
        found = &value;
    }
    return found && found->is_null() ? nullptr : found;
}

Result<JsonValue> JsonValue::at(std::string_view key) const {
    HR_ASSIGN(const FileValue* found, find(key));
    if (!found) return error(invalid("the key '{}' is missing", key));
    return member(key, *found);
}

JsonValue JsonValue::member(std::string_view key, const FileValue& value) const {
    return {value, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

Status check_format(const JsonValue& document, std::string_view format, std::uint64_t most_version) {
    HR_ASSIGN(const JsonValue name, document.at("format"));
    HR_ASSIGN(const std::string given, name.string());
    if (given != format)
        return name.error(invalid("'{}' is not '{}'", excerpt(std::string_view(given)), format));
    HR_ASSIGN(const JsonValue version, document.at("version"));
    HR_ASSIGN(const std::uint64_t number, version.size());
    if (number < 1 || number > most_version)
        return version.error(invalid("version {}; this build reads 1 to {}", number, most_version));
    return success();
}

}  // namespace headrace::webnn
