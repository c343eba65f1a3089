#include "llm/parameters/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/take_until.h"
#include "llm/parameters/names.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMaxStrings = 256;
constexpr std::size_t kMaxStringBytes = 4096;

template <class T>
constexpr bool is_integer_field = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// The seed is the only unsigned one; -1 stands for its largest value, which asks for a random seed.
template <class T>
Values bounds(const Values& range) {
    const double low = std::is_unsigned_v<T> ? -1 : static_cast<double>(std::numeric_limits<T>::lowest());
    Values within = range;
    within.min = std::max(range.min, low);
    within.max = std::min(range.max, static_cast<double>(std::numeric_limits<T>::max()));
    return within;
}

std::string limits_text(const Values& range, bool integer) {
    std::string text = integer ? "an integer" : "a number";
    if (std::isfinite(range.min) && std::isfinite(range.max))
        text += fmt::format(" from {} to {}", range.min, range.max);
    else if (std::isfinite(range.min))
        text += fmt::format(" of at least {}", range.min);
    else if (std::isfinite(range.max))
        text += fmt::format(" of at most {}", range.max);
    return range.or_zero ? text + ", or 0" : text;
}

std::string or_words(const Row& row) {
    std::string text;
    for (std::string_view word : split(row.values.words))
        text += fmt::format(" or \"{}\"", word.substr(0, word.find('=')));
    return text;
}

/// What another spelling stands for, or the text itself.
std::string_view meaning(const Row& row, std::string_view text) {
    for (std::string_view word : split(row.values.words))
        if (const auto equals = word.find('='); word.substr(0, equals) == text)
            return word.substr(equals + 1);
    return text;
}

bool holds(const Values& range, double number) {
    return (number >= range.min && number <= range.max) || (range.or_zero && number == 0);
}

template <class T>
Status read_integer_field(const ParameterContext& parameter, const Json& given, T& field) {
    const Values range = bounds<T>(parameter.row.values);
    const std::string must_be = limits_text(range, true) + or_words(parameter.row);
    Json value = given;
    if (given.is_string()) {
        const std::string_view word = given.get_ref<const std::string&>();
        const std::string_view number = meaning(parameter.row, word);
        if (number == word) return parameter.wrong(given, must_be);
        value = Json::parse(number);
    }
    const bool is_moved = parameter.lenient && value.is_number() && !holds(range, value.get<double>());
    if (!is_moved) {
        const Values type = bounds<T>({});
        HR_TRY(read_integer(parameter, value, type.min, type.max, must_be));
    }
    HR_ASSIGN(const double allowed, number_within(parameter, value, range, must_be));
    field = static_cast<T>(static_cast<std::int64_t>(allowed));
    return success();
}

template <class T>
Status read_number_field(const ParameterContext& parameter, const Json& value, T& field) {
    const Values& range = parameter.row.values;
    const std::string must_be = limits_text(range, false);
    if (!value.is_number()) return parameter.wrong(value, must_be);
    HR_ASSIGN(const double number,
              number_within(parameter, value, parameter.lenient ? bounds<T>(range) : range, must_be));
    if (std::abs(number) > static_cast<double>(std::numeric_limits<T>::max()))
        return parameter.wrong(value, must_be + ", not beyond what 32 bits hold");
    field = static_cast<T>(number);
    return success();
}

Status read_choice(const ParameterContext& parameter, const Json& value, std::string& field) {
    const std::string must_be = describe(parameter.row);
    std::vector<std::string> given;
    if (value.is_boolean())
        given = value.get<bool>() ? std::vector<std::string>{"true", "on"}
                                  : std::vector<std::string>{"false", "off"};
    else if (value.is_string())
        given = {value.get<std::string>()};
    for (const std::string& text : given) {
        const auto parts = key_parts(text);
        for (std::string_view choice : split(parameter.row.values.choices))
            if (parts == key_parts(choice) || meaning(parameter.row, parts.front()) == choice) {
                field = choice;
                return success();
            }
    }
    return parameter.wrong(value, must_be);
}

/// The list of a text such as "3,2", or null.
Json split_numbers(std::string_view text) {
    Json list = Json::array();
    for (std::string_view part : split(text, ',')) {
        double number = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error != std::errc{} || end != part.data() + part.size()) return nullptr;
        list.push_back(number);
    }
    return list;
}

Status read_numbers(const ParameterContext& parameter, const Json& value, std::vector<float>& field) {
    const Json list = value.is_string() ? split_numbers(value.get_ref<const std::string&>()) : value;
    if (!list.is_array()) return parameter.wrong(value, describe(parameter.row));
    std::vector<float> numbers;
    for (const Json& item : list) {
        ParameterContext element = parameter;
        element.key = fmt::format("{}[{}]", parameter.key, numbers.size());
        HR_TRY(read_number_field(element, item, numbers.emplace_back()));
    }
    if (numbers.size() > kMaxStrings)
        return invalid("'{}' has {} numbers; at most {} are allowed", parameter.key, numbers.size(),
                       kMaxStrings);
    field = std::move(numbers);
    return success();
}

/// Stores one JSON value in a field of each type.
struct ValueReader {
    const ParameterContext& parameter;
    const Json& value;
    Settings& settings;

    template <class T>
    Status operator()(T& (*field)(Settings&)) const {
        T& target = field(settings);
        if constexpr (std::is_same_v<T, bool>) {
            if (!value.is_boolean()) return parameter.wrong(value, "true or false");
            target = value.get<bool>();
            return success();
        } else if constexpr (is_integer_field<T>) {
            return read_integer_field(parameter, value, target);
        } else if constexpr (std::is_floating_point_v<T>) {
            return read_number_field(parameter, value, target);
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (!parameter.row.values.choices.empty()) return read_choice(parameter, value, target);
            HR_ASSIGN(target, read_text(parameter, value, "a text"));
            return success();
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            return read_numbers(parameter, value, target);
        } else {
            return read_strings(parameter, value, target);
        }
    }
    Status operator()(const Custom& custom) const {
        ParameterContext own = parameter;
        return custom.read(own, settings, value);
    }
    Status operator()(const Ignored&) const { return success(); }
};

/// A float's shortest decimal, so that 0.3f shows as 0.3.
Json decimal(float value) { return Json::parse(fmt::format("{}", value), nullptr, false); }

struct Writer {
    Settings& settings;

    template <class T>
    Json operator()(T& (*field)(Settings&)) const {
        if constexpr (std::is_same_v<T, float>) {
            return decimal(field(settings));
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            Json list = Json::array();
            for (float value : field(settings)) list.push_back(decimal(value));
            return list;
        } else {
            return field(settings);
        }
    }
    Json operator()(const Custom& custom) const { return custom.write(settings); }
    Json operator()(const Ignored&) const { return nullptr; }
};

struct Describer {
    const Row& row;

    template <class T>
    std::string operator()(T& (*)(Settings&)) const {
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        if constexpr (is_integer_field<T>) return limits_text(row.values, true) + or_words(row);
        if constexpr (std::is_floating_point_v<T>) return limits_text(row.values, false);
        if constexpr (std::is_same_v<T, std::vector<float>>) return "a list of numbers";
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
            return row.values.min > 0 ? "a text or a list of at least one" : "a text or a list of texts";
        if (row.values.choices.empty()) return "a text";
        return fmt::format("one of {}", fmt::join(split(row.values.choices), ", "));
    }
    std::string operator()(const Custom& custom) const { return std::string(custom.type); }
    std::string operator()(const Ignored&) const { return "anything"; }
};

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::string_view part = take_until(text, separator);
        if (!part.empty()) parts.push_back(part);
    }
    return parts;
}

std::string shown(const Json& value) {
    constexpr std::size_t kLongest = 60;
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
    return text;
}

Error ParameterContext::wrong(const Json& value, std::string_view must_be) const {
    return invalid("'{}' is {}; it must be {}", key, shown(value), must_be);
}

Result<double> number_within(const ParameterContext& parameter, const Json& value, const Values& range,
                             std::string_view must_be) {
    if (!value.is_number()) return parameter.wrong(value, must_be);
    const auto number = value.get<double>();
    if (holds(range, number)) return number;
    if (range.rule != Rule::clamp && !parameter.lenient) return parameter.wrong(value, must_be);
    const double moved = number < range.min ? range.min : range.max;
    parameter.warn(true, fmt::format("'{}' is {}; {} is used, as it must be {}", parameter.key, shown(value),
                                     moved, must_be));
    return moved;
}

Result<std::int64_t> read_integer(const ParameterContext& parameter, const Json& value, double min,
                                  double max, std::string_view must_be) {
    // Up to 2^53 a double without a fraction is the integer that was meant: 8.0, 1e3.
    constexpr double kExact = 9007199254740992.0;
    if (!value.is_number()) return parameter.wrong(value, must_be);
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        return parameter.wrong(value, must_be);
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (std::trunc(number) != number || std::abs(number) > kExact) return parameter.wrong(value, must_be);
    }
    const auto number = value.get<std::int64_t>();
    if (static_cast<double>(number) < min || static_cast<double>(number) > max)
        return parameter.wrong(value, must_be);
    return number;
}

Result<std::string> read_text(const ParameterContext& parameter, const Json& value,
                              std::string_view must_be) {
    if (!value.is_string()) return parameter.wrong(value, must_be);
    // What is passed on as a C string would end there.
    if (value.get_ref<const std::string&>().find('\0') != std::string::npos)
        return parameter.wrong(value, fmt::format("{} without zero bytes", must_be));
    return value.get<std::string>();
}

Status read_strings(const ParameterContext& parameter, const Json& value, std::vector<std::string>& field) {
    std::vector<std::string> strings;
    if (value.is_string()) {
        strings.push_back(value.get<std::string>());
    } else {
        if (!value.is_array()) return parameter.wrong(value, describe(parameter.row));
        for (const Json& item : value) {
            if (!item.is_string()) return parameter.wrong(item, "a text in each place of the list");
            strings.push_back(item.get<std::string>());
        }
    }
    std::erase(strings, "");
    if (strings.size() > kMaxStrings)
        return invalid("'{}' has {} texts; at most {} are allowed", parameter.key, strings.size(),
                       kMaxStrings);
    for (const std::string& text : strings)
        if (text.size() > kMaxStringBytes)
            return invalid("'{}' has a text of {} bytes; at most {} are allowed", parameter.key, text.size(),
                           kMaxStringBytes);
    if (strings.size() < static_cast<std::size_t>(std::max(parameter.row.values.min, 0.0)))
        return parameter.wrong(value, "a list with at least one text that is not empty");
    field = std::move(strings);
    return success();
}

Status read_value(const ParameterContext& parameter, const Json& value, Settings& settings) {
    return std::visit(ValueReader{parameter, value, settings}, parameter.row.field);
}

Json value_of(const Row& row, Settings& settings) { return std::visit(Writer{settings}, row.field); }

std::string describe(const Row& row) { return std::visit(Describer{row}, row.field); }

}  // namespace headrace::llm
