// Every row of the table, by every spelling, with right and wrong values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

std::string kebab(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

/// {"a": {"b": value}} of a.b.
std::string nested(std::string_view path, std::string_view value) {
    std::string json, closing;
    for (std::string_view part : split(path, '.')) {
        json += fmt::format("{{\"{}\": ", part);
        closing += "}";
    }
    return fmt::format("{}{}{}", json, value, closing);
}

std::string flat(std::string_view name, std::string_view value) {
    return fmt::format("{{\"{}\": {}}}", name, value);
}

/// Values that the rules about several parameters do not change: a grammar to be lazy with, and so on.
Settings generous_base() {
    Settings base;
    base.request.sampling.grammar_triggers = {{GrammarTrigger::Type::word, "<start>"}};
    base.request.sampling.n_probs = 1;
    return base;
}

std::vector<const Row*> rows_with_values() {
    std::vector<const Row*> rows;
    for (const Row* row : parameter_rows())
        if (!row->ignored()) rows.push_back(row);
    return rows;
}

std::vector<const Row*> rows_with_numbers() {
    std::vector<const Row*> rows = rows_with_values();
    std::erase_if(rows, [](const Row* row) { return !row->is_number(); });
    return rows;
}

std::string row_title(const testing::TestParamInfo<const Row*>& info) {
    std::string name(info.param->path);
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

class ParameterRow : public testing::TestWithParam<const Row*> {
protected:
    const Row& row = *GetParam();

    Result<Settings> read(std::string_view json, Warnings& warnings) {
        return with_parameters(generous_base(), json, row.level, warnings);
    }
};

TEST_P(ParameterRow, IsSetByEverySpelling) {
    Settings base = generous_base();
    const Json before = value_of(row, base);
    std::vector<std::string> texts = {nested(row.path, row.example), nested(kebab(row.path), row.example),
                                      flat(row.path, row.example), flat(kebab(row.path), row.example)};
    for (std::string_view name : split(row.names)) {
        texts.push_back(flat(name, row.example));
        texts.push_back(flat(kebab(name), row.example));
        texts.push_back(fmt::format("{{\"{}\": {}}}", split(row.path, '.')[0], flat(name, row.example)));
    }
    Json after;
    for (const std::string& text : texts) {
        Warnings warnings;
        auto result = read(text, warnings);
        ASSERT_TRUE(result.ok()) << text << ": " << result.error().message;
        const Json value = value_of(row, result.value());
        EXPECT_NE(value, before) << text;
        EXPECT_THAT(warnings,
                    AnyOf(testing::IsEmpty(), testing::Each(testing::Field(
                                                  &Warning::message, testing::Not(HasSubstr("not known"))))))
            << text;
        if (text == texts.front()) after = value;
        EXPECT_EQ(value, after) << text;
    }
    if (!std::holds_alternative<Custom>(row.field)) {
        const Json example = Json::parse(row.example);
        EXPECT_EQ(after, std::holds_alternative<std::vector<std::string>& (*)(Settings&)>(row.field) &&
                                 example.is_string()
                             ? Json::array({example})
                             : example);
    }
}

TEST_P(ParameterRow, RefusesValuesOfOtherTypes) {
    const bool takes_object =
        std::holds_alternative<Custom>(row.field) && std::get<Custom>(row.field).takes_object;
    const auto refused = [&](std::string_view value) {
        Warnings warnings;
        const auto result = read(flat(row.path, value), warnings);
        if (result.ok()) return false;
        EXPECT_THAT(result.error().message, AllOf(HasSubstr(std::string(row.path)), HasSubstr("it must be")))
            << value;
        EXPECT_TRUE(warnings.empty());
        return true;
    };
    EXPECT_TRUE(refused("[[[]]]"));
    const std::string object = "{\"unexpected\": 1}";
    if (takes_object) {
        EXPECT_TRUE(refused("7"));
    } else if (!refused(object)) {
        // It is a section, then, whose name is not known.
        Warnings warnings;
        EXPECT_TRUE(read(flat(row.path, object), warnings).ok());
        EXPECT_FALSE(warnings.empty());
    }
    const Json example = Json::parse(row.example);
    std::vector<std::string_view> wrong = {"-3.5"};
    if (example.is_number()) wrong = {"\"many\"", "\"1\""};
    if (example.is_number() && row.path != "output.logprobs") wrong.push_back("true");
    if (example.is_boolean()) wrong = {"0", "1", "\"true\""};
    if (!row.values.choices.empty()) wrong.push_back("\"other\"");
    for (std::string_view value : wrong) EXPECT_TRUE(refused(value)) << value;
}

INSTANTIATE_TEST_SUITE_P(Rows, ParameterRow, testing::ValuesIn(rows_with_values()), row_title);

class NumberRow : public ParameterRow {
protected:
    bool is_float() const { return row.field.index() >= 4; }
    double lowest() const { return row.field.index() == 1 ? INT_MIN : row.field.index() == 2 ? -1 : -9e18; }
    double highest() const {
        return row.field.index() == 1 ? INT_MAX : row.field.index() == 2 ? UINT_MAX : 9e18;
    }

    std::string number(double value) const {
        return is_float() ? fmt::format("{}", value) : fmt::format("{}", static_cast<std::int64_t>(value));
    }
    /// Checks a value at or beyond an end of the range.
    void expect(double given, double end) {
        Warnings warnings;
        auto result = read(flat(row.path, number(given)), warnings);
        if (given == end || row.values.rule == Rule::clamp) {
            ASSERT_TRUE(result.ok()) << given << ": " << result.error().message;
            const Json value = value_of(row, result.value());
            const bool follows_another = row.path == "context.n_parallel" || row.path == "context.n_ubatch";
            const double expected = row.path == "sampling.seed" && end == -1 ? UINT_MAX : end;
            if (!follows_another) {
                EXPECT_NEAR(value.get<double>(), expected, std::abs(end) * 1e-6) << given;
            }
            const std::string clamped = "is used, as it must be";
            const bool is_warned = std::any_of(warnings.begin(), warnings.end(), [&](const Warning& warning) {
                return warning.message.find(clamped) != std::string::npos;
            });
            EXPECT_EQ(is_warned, given != end) << given;
        } else {
            ASSERT_FALSE(result.ok()) << given;
            EXPECT_THAT(result.error().message, HasSubstr(number(end)));
        }
    }
};

TEST_P(NumberRow, HoldsItsRangeAtTheEdges) {
    const double step = is_float() ? 0.01 : 1;
    if (std::isfinite(row.values.min)) {
        expect(row.values.min, row.values.min);
        if (row.values.min - step >= lowest() && !(row.values.or_zero && row.values.min == step))
            expect(row.values.min - step, row.values.min);
    }
    if (std::isfinite(row.values.max)) {
        expect(row.values.max, row.values.max);
        if (row.values.max + step <= highest()) expect(row.values.max + step, row.values.max);
    }
}

TEST_P(NumberRow, RefusesWhatItsTypeCannotHold) {
    const auto refused = [&](std::string_view value) {
        Warnings warnings;
        return !read(flat(row.path, value), warnings).ok();
    };
    if (is_float()) {
        EXPECT_EQ(refused("1e300"), !(row.values.rule == Rule::clamp && std::isfinite(row.values.max)) &&
                                        row.field.index() == 4);
        return;
    }
    EXPECT_TRUE(refused("1.9"));
    EXPECT_TRUE(refused("1e40"));
    EXPECT_TRUE(refused("18446744073709551615"));
    const bool is_64_bits = row.field.index() == 3;
    EXPECT_EQ(refused("4294967297"), !is_64_bits);  // 2^32 + 1 would wrap to 1
}

TEST_P(NumberRow, TakesAnIntegerWithADecimalPoint) {
    if (is_float()) return;
    Warnings warnings;
    auto result = read(flat(row.path, std::string(row.example) + ".0"), warnings);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(value_of(row, result.value()), Json::parse(row.example));
}

INSTANTIATE_TEST_SUITE_P(Rows, NumberRow, testing::ValuesIn(rows_with_numbers()), row_title);

TEST(ParameterRows, ThatAreIgnoredSayWhy) {
    for (const Row& row : ignored_rows())
        for (std::string_view name : split(row.names))
            for (std::string_view value : {"1", "{\"a\": 1}", "[]"}) {
                Warnings warnings;
                const auto result = with_parameters({}, flat(kebab(name), value), Level::request, warnings);
                ASSERT_TRUE(result.ok()) << name;
                ASSERT_EQ(warnings.size(), 1u) << name;
                EXPECT_THAT(warnings[0].message, HasSubstr(std::string(row.summary)));
            }
}

TEST(ParameterRows, NameEverySetting) {
    for (const Row* row : rows_with_values()) {
        EXPECT_FALSE(row->summary.empty()) << row->path;
        EXPECT_FALSE(row->names.empty()) << row->path;
        EXPECT_NE(row->path.find('.'), row->path.npos) << row->path;
    }
}

}  // namespace
}  // namespace headrace::llm
