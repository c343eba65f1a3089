#include "llm/schema/schema_grammar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>

#include "llm/grammar/grammars.h"
#include "llm/json.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

/// Whether an answer of the schema may be that text, as a whole.
class SchemaGrammar : public testing::Test {
protected:
    SchemaGrammar() : engine(tiny_engine()), grammars(engine->model().vocab()) {}

    bool takes(const Json& schema, const std::string& text) {
        const Result<std::string> grammar = schema_grammar(schema.dump());
        EXPECT_TRUE(grammar.ok()) << grammar.error().message;
        const std::shared_ptr<GrammarAutomaton> automaton = grammars.automaton(grammar.value());
        EXPECT_NE(automaton, nullptr) << grammar.value();
        if (!automaton) return false;
        GrammarPlace place(grammars, automaton);
        for (const llama_token token : engine->model().tokenize(text, false, false))
            if (!place.accept(token)) return false;
        return place.admits(llama_vocab_eos(engine->model().vocab()));
    }

    void expect(const Json& schema, const std::vector<std::string>& fitting,
                const std::vector<std::string>& others) {
        for (const std::string& text : fitting) EXPECT_TRUE(takes(schema, text)) << schema << "\n" << text;
        for (const std::string& text : others) EXPECT_FALSE(takes(schema, text)) << schema << "\n" << text;
    }

    static Json text_like(const char* pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

    std::shared_ptr<Engine> engine;
    Grammars grammars;
};

TEST_F(SchemaGrammar, KeepsToPatternsWithClassesOfCharacters) {
    expect(text_like(R"(^\d{3}-\w+\s?$)"), {R"("123-a_9")", R"("123-b ")"},
           {R"("12-a")", R"("123-é")", R"("123-")"});
    expect(text_like(R"(^[\d.,]+$)"), {R"("1.5,0")"}, {R"("1;5")"});
    expect(text_like(R"(^\D\W\S$)"), {R"("a-b")"}, {R"("1-b")", R"("aab")", R"("a- ")"});
    expect(text_like(R"(^a\/b\-c$)"), {R"("a/b-c")"}, {R"("a\/b-c")"});
}

TEST_F(SchemaGrammar, LooksForAPatternWithoutAnchorsAnywhere) {
    expect(text_like("[0-9]+"), {R"("7")", R"("a7b")", R"("\n7 \"")"}, {R"("")", R"("ab")"});
    expect(text_like("^ab"), {R"("ab")", R"("abc")"}, {R"("cab")"});
    expect(text_like("ab$"), {R"("ab")", R"("cab")"}, {R"("abc")"});
    expect(text_like("^a|b$"), {R"("ax")", R"("xb")"}, {R"("xa")"});
}

TEST_F(SchemaGrammar, WritesWhatPatternsMatchAsJsonDoes) {
    expect(text_like("^.$"), {R"("x")", R"("\"")", R"("\\")", R"("\t")"},
           {R"(""")", R"("\")", R"("\n")", R"("xx")"});
    expect(text_like(R"(^[^,]$)"), {R"("\"")", R"("\n")"}, {R"(""")", R"(",")"});
    expect(text_like(R"(^say "\\"$)"), {R"("say \"\\\"")"}, {R"("say "\"")"});
}

TEST_F(SchemaGrammar, JoinsPatternsWithLengths) {
    Json schema = text_like("^[A-Z][a-z]*$");
    schema["minLength"] = 3;
    schema["maxLength"] = 4;
    expect(schema, {R"("Abc")", R"("Abcd")"}, {R"("Ab")", R"("Abcde")"});
    Json anywhere = text_like("x");
    anywhere["maxLength"] = 1;
    EXPECT_TRUE(takes(anywhere, R"("x")"));  // and longer ones, which is a warning
}

TEST_F(SchemaGrammar, KeepsToTheBoundsOfNumbers) {
    const auto number = [](Json bounds) {
        bounds["type"] = "number";
        return bounds;
    };
    expect(number({{"minimum", 0}}), {"0", "0.5", "17", "1234567.25", "0.0"}, {"-1", "-0.5", "1e5"});
    expect(number({{"minimum", 0}, {"maximum", 1}}), {"0", "1", "0.999", "1.0", "0.0"},
           {"1.01", "2", "-0.1"});
    expect(number({{"exclusiveMinimum", 0}}), {"0.1", "1", "0.001"}, {"0", "0.0", "-1"});
    expect(number({{"minimum", -90}, {"maximum", 90}}), {"-90", "-89.9", "0", "90.0", "45.25"},
           {"-90.1", "91", "90.5"});
    expect(number({{"minimum", 1.25}, {"exclusiveMaximum", 1.75}}), {"1.25", "1.3", "1.749", "1.7"},
           {"1.2", "1.249", "1.75", "1.750", "1", "2"});
    expect(number({{"maximum", -2.5}}), {"-2.5", "-3", "-100.1"}, {"-2.4", "0", "2.5", "-2"});
    expect(number({{"minimum", 3}, {"maximum", 3}}), {"3", "3.0"}, {"3.1", "2"});
    expect(number({{"multipleOf", 0.01}}), {"1", "1.25", "-0.5"}, {"1.255"});
    expect(number({{"multipleOf", 0.01}, {"minimum", 0}}), {"1", "1.25"}, {"1.255", "-1"});
}

TEST_F(SchemaGrammar, KeepsToTheBoundsOfWholeNumbers) {
    const auto integer = [](Json bounds) {
        bounds["type"] = "integer";
        return bounds;
    };
    expect(integer({{"minimum", 0}, {"exclusiveMinimum", 5}}), {"6", "100"}, {"5", "0", "6.0"});
    expect(integer({{"minimum", 5}, {"exclusiveMinimum", true}}), {"6"}, {"5"});
    expect(integer({{"minimum", 0.5}, {"maximum", 2.5}}), {"1", "2"}, {"0", "3"});
    expect(integer({{"minimum", -12}, {"maximum", 105}}), {"-12", "-9", "0", "99", "100", "105"},
           {"-13", "106", "007"});
    expect(integer({{"minimum", 0}, {"maximum", 20}, {"multipleOf", 5}}), {"0", "5", "20"}, {"7", "25"});
    expect(integer({{"maximum", 1e30}}), {"5"}, {});
}

TEST_F(SchemaGrammar, IsRightForEveryNumberNearRandomBounds) {
    std::uint32_t state = 7;
    const auto random = [&](std::uint32_t most) { return (state = state * 1664525 + 1013904223) % most; };
    const auto digits = [](int hundredths) {
        std::string text = std::to_string(std::abs(hundredths));
        text.insert(0, text.size() < 3 ? 3 - text.size() : 0, '0');
        return (hundredths < 0 ? "-" : "") + text.insert(text.size() - 2, ".");
    };
    for (int round = 0; round < 40; ++round) {
        const int least = static_cast<int>(random(4000)) - 2000, most = least + static_cast<int>(random(300));
        const bool has_least = random(2) == 0, has_most = random(2) == 0;
        Json schema = {{"type", "number"}};
        schema[has_least ? "minimum" : "exclusiveMinimum"] = Json::parse(digits(least));
        schema[has_most ? "maximum" : "exclusiveMaximum"] = Json::parse(digits(most));
        if (least == most && !(has_least && has_most)) continue;
        for (const int value : {least - 1, least, least + 1, (least + most) / 2, most - 1, most, most + 1}) {
            const bool fits =
                (has_least ? value >= least : value > least) && (has_most ? value <= most : value < most);
            EXPECT_EQ(takes(schema, digits(value)), fits) << schema << " " << digits(value);
        }
    }
}

TEST_F(SchemaGrammar, HasPropertiesThatAreOnlyRequired) {
    const Json schema = {
        {"type", "object"}, {"properties", {{"a", {{"type", "null"}}}}}, {"required", {"b", "a"}}};
    expect(schema, {R"({"a":null,"b":1})", R"({"a":null,"b":"x"})"}, {R"({"a":null})", "{}"});
    expect({{"type", "object"}, {"required", {"b"}}}, {R"({"b":1})", R"({"b":1,"c":2})"},
           {"{}", R"({"c":2})"});
}

TEST_F(SchemaGrammar, ReadsListsOfPlaces) {
    const Json pair = {{{"type", "integer"}}, {{"type", "null"}}};
    const Json closed = {{"type", "array"}, {"prefixItems", pair}, {"items", false}};
    expect(closed, {"[1,null]"}, {"[1]", "[1,null,2]", "[null,1]"});
    expect({{"type", "array"}, {"prefixItems", pair}, {"items", {{"type", "boolean"}}}, {"minItems", 3}},
           {"[1,null,true]"}, {"[1,null]", "[1,null,3]"});
    expect({{"type", "array"}, {"items", false}}, {"[]"}, {"[1]"});
    expect({{"type", "array"}, {"items", pair}, {"additionalItems", false}, {"maxItems", 1}}, {"[1]"},
           {"[1,null]"});
}

TEST_F(SchemaGrammar, JoinsWhatStandsSideBySide) {
    const Json base = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}}}, {"b", {{"type", "integer"}}}}},
                       {"additionalProperties", false}};
    Json either = base;
    either["anyOf"] = {{{"required", {"a"}}}, {{"required", {"b"}}}};
    expect(either, {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"}, {"{}", R"({"a":"x"})"});
    const Json extended = {
        {"allOf", {{{"$ref", "#/$defs/base"}}}},
        {"properties", {{"c", {{"type", "null"}}}}},
        {"required", {"c"}},
        {"$defs",
         {{"base",
           {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}, {"required", {"a"}}}}}}};
    expect(extended, {R"({"c":null,"a":1})"}, {R"({"a":1})", R"({"c":null})"});
    const Json narrowed = {
        {"$ref", "#/$defs/n"}, {"maximum", 5}, {"$defs", {{"n", {{"type", "integer"}, {"minimum", 1}}}}}};
    expect(narrowed, {"1", "5"}, {"0", "6"});
}

TEST_F(SchemaGrammar, FollowsReferencesToItselfAndToNamesThatAreEscaped) {
    const Json tree = {{"type", "object"},
                       {"properties", {{"next", {{"anyOf", {{{"$ref", "#"}}, {{"type", "null"}}}}}}}},
                       {"required", {"next"}}};
    expect(tree, {R"({"next":null})", R"({"next":{"next":null}})"}, {"{}", R"({"next":{}})"});
    expect({{"$ref", "#/$defs/a~1b%20c"}, {"$defs", {{"a/b c", {{"type", "null"}}}}}}, {"null"}, {"1"});
}

TEST_F(SchemaGrammar, KnowsFormatsOfTexts) {
    const auto format = [](const char* name) { return Json{{"type", "string"}, {"format", name}}; };
    expect(format("ipv4"), {R"("127.0.0.1")"}, {R"("256.0.0.1")", R"("1.2.3")"});
    expect(format("email"), {R"("a.b@c-d.org")"}, {R"("a@b")", R"("@c.org")"});
    expect(format("uri"), {R"("https://a.org/x?y#z")"}, {R"("a b")"});
    expect(format("duration"), {R"("P1DT2H")", R"("PT5M")"}, {R"("1 hour")"});
    expect(format("hostname"), {R"("a.b-c.org")"}, {R"("-a")"});
}

TEST_F(SchemaGrammar, HasTheDaysThatThereAre) {
    const Json date = {{"type", "string"}, {"format", "date"}};
    for (const int year : {1, 4, 400, 1900, 2000, 2023, 2024})
        for (unsigned month = 0; month <= 13; ++month)
            for (unsigned day = 0; day <= 32; ++day) {
                const std::chrono::year_month_day at{std::chrono::year(year), std::chrono::month(month),
                                                     std::chrono::day(day)};
                const std::string text = fmt::format("\"{:04}-{:02}-{:02}\"", year, month, day);
                EXPECT_EQ(takes(date, text), at.ok()) << text;
            }
    expect(date, {R"("9999-12-31")"}, {R"("0000-01-01")", R"("24-01-01")", R"("2024-1-1")"});
    expect({{"type", "string"}, {"format", "date-time"}},
           {R"("2024-02-29T23:59:59Z")", R"("1999-12-31T00:00:00.250-12:30")"},
           {R"("2023-02-29T00:00:00Z")", R"("2024-01-01T24:00:00Z")", R"("2024-01-01")"});
}

TEST_F(SchemaGrammar, FiltersValuesByTheirType) {
    expect({{"type", {"string", "null"}}, {"enum", {"a", nullptr, 3}}}, {R"("a")", "null"}, {"3"});
    expect({{"type", {"integer", "string"}}, {"minimum", 3}, {"maxLength", 1}}, {"3", R"("a")"},
           {"2", R"("ab")"});
}

}  // namespace
}  // namespace headrace::llm
