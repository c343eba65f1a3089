#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "llm/schema/schema_keeper.h"

namespace headrace::llm {
namespace {

constexpr std::uint32_t kMostCounted = 2000;  // repetitions of a grammar

/// Days that there are, from the year 1 on: llama.cpp's date has 31 in every month.
constexpr std::string_view kDatePattern =
    "((000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|"
    "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTimePattern =
    R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))";

/// Formats of texts that llama.cpp does not know. They forbid more than the standards do.
constexpr std::pair<std::string_view, std::string_view> kFormatPatterns[] = {
    {"email",
     R"(^[A-Za-z0-9_%+-]+(\.[A-Za-z0-9_%+-]+)*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,24}$)"},
    {"ipv4",
     R"(^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$)"},
    {"ipv6", R"(^([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$)"},
    {"hostname",
     R"(^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?){0,3}$)"},
    {"uri", R"(^[A-Za-z][A-Za-z0-9+.-]*:(//)?[A-Za-z0-9._~:/?#@!$&'()*+,;=-]+$)"},
    {"duration",
     R"(^P([0-9]+W|([0-9]+Y)?([0-9]+M)?[0-9]+D(T[0-9]+(H([0-9]+M([0-9]+S)?)?|M([0-9]+S)?|S))?|T[0-9]+(H([0-9]+M([0-9]+S)?)?|M([0-9]+S)?|S))$)"},
};

/// The lengths of texts in the formats that are left to llama.cpp.
std::optional<TextLengths> lengths_of_format(std::string_view format) {
    if (format == "time") return TextLengths{9, 18};
    const bool is_uuid = format == "uuid" || (format.size() == 5 && format.starts_with("uuid") &&
                                              format[4] >= '1' && format[4] <= '5');
    return is_uuid ? std::optional(TextLengths{36, 36}) : std::nullopt;
}

std::string pattern_of_format(std::string_view format) {
    if (format == "date") return fmt::format("^{}$", kDatePattern);
    if (format == "date-time") return fmt::format("^{}T{}$", kDatePattern, kTimePattern);
    for (const auto& [name, pattern] : kFormatPatterns)
        if (name == format) return std::string(pattern);
    return {};
}

bool is_power_of_ten(const Decimal& number, int& places) {
    places = static_cast<int>(number.fraction.size());
    if (number.is_negative) return false;
    if (number.fraction.empty()) return number.whole == 1;
    return number.whole == 0 && number.fraction.find_first_not_of('0') == number.fraction.size() - 1 &&
           number.fraction.back() == '1';
}

}  // namespace

Json SchemaKeeper::kept_array(const Json& schema, Place at) {
    const Json* prefix = keyword_of(schema, "prefixItems");
    const Json* items = keyword_of(schema, "items");
    const Json* rest = items;
    if (!prefix && items && items->is_array()) {  // as older drafts have it
        prefix = items;
        rest = keyword_of(schema, "additionalItems");
    }
    const auto most = count_of(schema, "maxItems");
    const Json* unique = keyword_of(schema, "uniqueItems");
    const bool is_short = most && *most < 2;
    if (unique && *unique == true && !is_short) lose(at, "uniqueItems", kNoGrammar);
    if (count_of(schema, "minContains").value_or(1) > 0) lose_each(schema, {"contains"}, at);
    if (prefix && prefix->is_array() && !prefix->empty())
        return kept_tuple(schema, *prefix, rest ? *rest : Json(true), at);
    Json array{{"type", "array"}};
    if (items && *items == false) {
        array["maxItems"] = 0;
        return array;
    }
    if (items) array["items"] = kept(*items, at + "/items");
    for (const std::string_view keyword : {"minItems", "maxItems"}) {
        const Json* value = keyword_of(schema, keyword);
        if (!value) continue;
        if (count_of(schema, keyword).value_or(0) > kMostCounted)
            lose(at, keyword, fmt::format("at most {} items can be counted", kMostCounted));
        else
            array[std::string(keyword)] = *value;
    }
    return array;
}

/// A list of one length: of the items that have schemas of their own, or of the least that there must be.
Json SchemaKeeper::kept_tuple(const Json& schema, const Json& items, const Json& rest, Place at) {
    const std::size_t least = count_of(schema, "minItems").value_or(0);
    const std::size_t most = count_of(schema, "maxItems").value_or(kMostCounted);
    std::size_t count = std::min(std::max(items.size(), least), most);
    if (const auto no_value = std::ranges::find(items, Json(false)); no_value != items.end())
        count = std::min(count, static_cast<std::size_t>(no_value - items.begin()));
    if (rest == false) count = std::min(count, items.size());
    if (count < least) lose(at, "minItems", "the schema allows no list of that length");
    Json tuple = Json::array();
    for (std::size_t i = 0; i < count; ++i)
        tuple.push_back(i < items.size() ? kept(items[i], fmt::format("{}/prefixItems/{}", at, i))
                                         : kept(rest, at + "/items"));
    if (tuple.empty()) return Json{{"type", "array"}, {"maxItems", 0}};
    return Json{{"type", "array"}, {"prefixItems", tuple}};
}

Json SchemaKeeper::kept_string(const Json& schema, Place at) {
    Json text{{"type", "string"}};
    for (const std::string_view keyword : {"pattern", "format"})
        if (const Json* value = keyword_of(schema, keyword); value && !value->is_string()) {
            text[std::string(keyword)] = *value;  // the converter says so
            return text;
        }
    TextLengths wanted{count_of(schema, "minLength").value_or(0),
                       count_of(schema, "maxLength").value_or(TextLengths::kAny)};
    for (const std::string_view keyword : {"minLength", "maxLength"}) {
        const auto count = count_of(schema, keyword);
        if (!count || *count <= kMostCounted) continue;
        lose(at, keyword, fmt::format("at most {} characters can be counted", kMostCounted));
        (keyword == "minLength" ? wanted.least : wanted.most) =
            keyword == "minLength" ? 0 : TextLengths::kAny;
    }
    const bool has_lengths = wanted.least > 0 || wanted.most != TextLengths::kAny;
    const auto lose_lengths = [&] {
        for (const std::string_view keyword : {"minLength", "maxLength"})
            if (count_of(schema, keyword))
                lose(at, keyword, "it cannot be joined with the 'pattern' or 'format' beside it");
    };
    const Json* format = keyword_of(schema, "format");
    const std::string format_name = format ? format->get<std::string>() : "";
    const Json* pattern = keyword_of(schema, "pattern");
    std::string used = pattern ? pattern->get<std::string>() : pattern_of_format(format_name);
    if (!used.empty()) {
        const Result<KeptPattern> read = keep_pattern(used, wanted);
        if (read.ok()) {
            text["pattern"] = read.value().text;
            if (!read.value().keeps_lengths) lose_lengths();
            if (pattern && format) lose(at, "format", "it stands beside a 'pattern'");
            return text;
        }
        lose(at, "pattern", read.error().message);
    }
    if (const std::optional<TextLengths> own = lengths_of_format(format_name)) {
        text["format"] = format_name;
        if (own->least < wanted.least || own->most > wanted.most) lose_lengths();
        return text;
    }
    if (format) lose(at, "format", "it is not known");
    if (has_lengths && wanted.least > wanted.most) {
        lose(at, "minLength", "it is more than 'maxLength'");
        return text;
    }
    if (wanted.least > 0) text["minLength"] = wanted.least;
    if (wanted.most != TextLengths::kAny) text["maxLength"] = wanted.most;
    return text;
}

std::optional<NumberRange> SchemaKeeper::range_of(const Json& schema, Place at) {
    NumberRange range;
    const auto tighten = [&](std::string_view keyword, bool is_inside) {
        const Json* value = keyword_of(schema, keyword);
        if (!value || value->is_boolean()) return;  // older drafts say by true that the end is outside
        const std::optional<Decimal> number = value->is_number() ? decimal_of(value->dump()) : std::nullopt;
        if (!number) return lose(at, keyword, "it has more digits than are compared");
        std::optional<NumberRange::End>& end = keyword.ends_with("inimum") ? range.least : range.most;
        const int order = !end ? 0 : compare(*number, end->value) * (keyword.ends_with("inimum") ? 1 : -1);
        if (!end || order > 0 || (order == 0 && !is_inside)) end = {*number, is_inside};
    };
    const auto is_true = [&](std::string_view keyword) {
        const Json* value = keyword_of(schema, keyword);
        return value && *value == true;
    };
    tighten("minimum", !is_true("exclusiveMinimum"));
    tighten("exclusiveMinimum", false);
    tighten("maximum", !is_true("exclusiveMaximum"));
    tighten("exclusiveMaximum", false);
    if (!range.least && !range.most) return std::nullopt;
    return range;
}

/// Where they are few; or the range has places instead.
std::optional<Json> SchemaKeeper::multiples(const Json& schema, NumberRange& range, const std::string& type,
                                            Place at) {
    constexpr std::int64_t kMostListed = 500;
    const Json* of = keyword_of(schema, "multipleOf");
    const std::optional<Decimal> unit = of && of->is_number() ? decimal_of(of->dump()) : std::nullopt;
    int places = 0;
    if (unit && is_power_of_ten(*unit, places)) {
        if (type == "number") range.places = places;
        return std::nullopt;
    }
    const bool is_whole = unit && unit->fraction.empty() && !unit->is_negative && unit->whole > 0;
    if (is_whole && range.least && range.most) {
        const std::int64_t step = unit->whole;
        const auto number = [](const Decimal& end) { return end.is_negative ? -end.whole : end.whole; };
        Json values = Json::array();
        const std::int64_t first = number(range.least->value) / step - 1,
                           last = number(range.most->value) / step + 1;
        for (std::int64_t i = first; last - first <= kMostListed && i <= last; ++i) {
            const Decimal value{.is_negative = i < 0, .whole = std::abs(i) * step};
            const int above = compare(value, range.least->value), below = compare(value, range.most->value);
            const bool fits = (above > 0 || (above == 0 && range.least->is_inside)) &&
                              (below < 0 || (below == 0 && range.most->is_inside));
            if (fits) values.push_back(i * step);
        }
        if (!values.empty()) return Json{{"enum", values}};
    }
    lose(at, "multipleOf", kNoGrammar);
    return std::nullopt;
}

Json SchemaKeeper::kept_number(const Json& schema, const std::string& type, Place at) {
    std::optional<NumberRange> range = range_of(schema, at);
    if (keyword_of(schema, "multipleOf")) {
        NumberRange held = range.value_or(NumberRange());
        if (std::optional<Json> values = multiples(schema, held, type, at)) return *std::move(values);
        if (range || held.places < NumberRange().places) range = held;
    }
    if (!range) return Json{{"type", type}};
    if (type == "integer") range->places = 0;
    std::optional<std::string> rule = number_rule(*range);
    if (!rule) {
        lose(at, range->least ? "minimum" : "maximum", "no number fits the bounds");
        return Json{{"type", type}};
    }
    result_.numbers.push_back(*std::move(rule));
    return Json{{"const", number_mark(first_number_ + result_.numbers.size() - 1)}};
}

}  // namespace headrace::llm
