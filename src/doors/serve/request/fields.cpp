#include "doors/serve/request/fields.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

namespace headrace::serve {
namespace {

constexpr int kMostDepth = 64;
/// Comparisons of keys while a body is read: each key is compared with those before it.
constexpr std::size_t kMostComparisons = std::size_t{1} << 25;

/// Refuses bodies as they are read that would take seconds, or the stack.
class Looker {
public:
    bool operator()(int depth, Json::parse_event_t event, Json&) {
        is_too_deep_ = is_too_deep_ || depth > kMostDepth;
        if (event == Json::parse_event_t::object_start) keys_.push_back(0);
        if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
        if (event == Json::parse_event_t::key && !keys_.empty()) comparisons_ += keys_.back()++;
        if (comparisons_ > kMostComparisons)
            throw wrong_field("", "the body has too many keys; an object of 8,000 may be read");
        return !is_too_deep_;
    }
    bool is_too_deep() const { return is_too_deep_; }

private:
    std::vector<std::size_t> keys_;  // of the objects that are open
    std::size_t comparisons_ = 0;
    bool is_too_deep_ = false;
};

}  // namespace

Json parse_any_body(std::string_view body) {
    Looker look;
    Json parsed;
    try {
        parsed = Json::parse(body, std::ref(look));
    } catch (const Json::exception& e) {
        // What nlohmann says begins with its own name and number.
        std::string_view message = e.what();
        if (const auto at = message.find("] "); at != std::string_view::npos) message.remove_prefix(at + 2);
        throw wrong_field("", fmt::format("the body is no JSON: {}", message));
    }
    if (look.is_too_deep())
        throw wrong_field("", fmt::format("the body is nested deeper than {} levels", kMostDepth));
    return parsed;
}

Json parse_body(std::string_view body) {
    Json parsed = parse_any_body(body);
    if (!parsed.is_object())
        throw wrong_field("", fmt::format("the body is {}; it must be an object", kind_of(parsed)));
    return parsed;
}

std::string_view kind_of(const Json& value) {
    if (value.is_string()) return "a text";
    if (value.is_boolean()) return "true or false";
    if (value.is_number()) return "a number";
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return "null";
}

Fields::Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object())
        throw wrong_field(place_, fmt::format("is {}; it must be an object", kind_of(object)));
}

std::string Fields::name(std::string_view key) const {
    return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

const Json* Fields::any(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::required(std::string_view key) const {
    if (const Json* value = any(key)) return *value;
    throw wrong_field(name(key), "is missing");
}

void Fields::wrong(std::string_view key, std::string_view must_be) const {
    const Json* value = any(key);
    throw wrong_field(name(key),
                      fmt::format("is {}; it must be {}", value ? kind_of(*value) : "missing", must_be));
}

std::optional<std::string> Fields::text(std::string_view key) const {
    const Json* value = any(key);
    if (!value) return std::nullopt;
    if (!value->is_string()) wrong(key, "a text");
    return value->get<std::string>();
}

std::string Fields::required_text(std::string_view key) const {
    if (auto value = text(key)) return *value;
    throw wrong_field(name(key), "is missing");
}

std::optional<bool> Fields::flag(std::string_view key) const {
    const Json* value = any(key);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) wrong(key, "true or false");
    return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t least,
                                            std::int64_t most) const {
    const Json* value = any(key);
    if (!value) return std::nullopt;
    if (!value->is_number_integer()) wrong(key, "an integer");
    const bool is_large = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
    const auto number = is_large ? INT64_MAX : value->get<std::int64_t>();
    if (number < least || number > most)
        throw wrong_field(name(key),
                          fmt::format("is {}; it must be from {} to {}", value->dump(), least, most));
    return number;
}

std::optional<double> Fields::number(std::string_view key, double least, double most) const {
    const Json* value = any(key);
    if (!value) return std::nullopt;
    if (!value->is_number()) wrong(key, fmt::format("a number from {} to {}", least, most));
    const auto number = value->get<double>();
    if (!(number >= least && number <= most))
        throw wrong_field(
            name(key), fmt::format("is {}; it must be a number from {} to {}", value->dump(), least, most));
    return number;
}

const Json* Fields::list(std::string_view key) const {
    const Json* value = any(key);
    if (value && !value->is_array()) wrong(key, "a list");
    return value;
}

const Json* Fields::object(std::string_view key) const {
    const Json* value = any(key);
    if (value && !value->is_object()) wrong(key, "an object");
    return value;
}

}  // namespace headrace::serve
