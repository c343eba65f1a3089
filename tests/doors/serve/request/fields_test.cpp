#include "doors/serve/request/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parameter_json.h"
#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

TEST(Bodies, ThatAreNoObjectsAreErrors) {
    EXPECT_THAT(error_of([] { parse_body("{"); }).what(), HasSubstr("column"));
    EXPECT_THAT(error_of([] { parse_body("[]"); }).what(), HasSubstr("a list"));
    EXPECT_THAT(error_of([] { parse_body(""); }).what(), HasSubstr("no JSON"));
    EXPECT_THAT(error_of([] { parse_body("{\"a\": \"\xff\"}"); }).what(), HasSubstr("UTF-8"));
    const std::string deep = "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
    EXPECT_THAT(error_of([&] { parse_body(deep); }).what(), HasSubstr("64 levels"));
    EXPECT_EQ(parse_body("{\"a\": 1}")["a"], 1);
}

// Each key is looked for among those before it: a million would take minutes.
TEST(Bodies, WithMoreKeysThanCanBeReadInTimeAreErrors) {
    const auto object_of = [](int keys) {
        std::string text = "{";
        for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
        return text + "}";
    };
    EXPECT_EQ(parse_body(object_of(8000)).size(), 8000u);
    EXPECT_THAT(error_of([&] { parse_body(object_of(100'000)); }).what(), HasSubstr("too many keys"));
    std::string many = "{\"list\":[";
    for (int i = 0; i < 20; ++i) many += (i > 0 ? "," : "") + object_of(5000);
    EXPECT_THAT(error_of([&] { parse_body(many + "]}"); }).what(), HasSubstr("too many keys"));
}

TEST(Fields, OfAWrongKindAreNamed) {
    const Json body = {{"text", 1}, {"number", "x"}, {"large", 9}, {"nothing", nullptr}, {"half", 0.5}};
    const Fields fields(body, "messages[2]");
    EXPECT_EQ(error_of([&] { fields.text("text"); }).field, "messages[2].text");
    EXPECT_THAT(error_of([&] { fields.text("text"); }).what(), HasSubstr("a number; it must be a text"));
    EXPECT_THAT(error_of([&] { fields.integer("number", 0, 5); }).what(), HasSubstr("an integer"));
    EXPECT_THAT(error_of([&] { fields.integer("half", 0, 5); }).what(), HasSubstr("an integer"));
    EXPECT_THAT(error_of([&] { fields.integer("large", 0, 5); }).what(), HasSubstr("from 0 to 5"));
    EXPECT_THAT(error_of([&] { fields.required_text("none"); }).what(), HasSubstr("is missing"));
    EXPECT_EQ(fields.text("nothing"), std::nullopt);
}

TEST(ParameterJson, KeepsValuesAndTheirOrder) {
    const char* text = R"({"b":2.5,"a":"text","c":{"d":null,"e":[true,-7]},"f":9223372036854775807})";
    const ParameterValue value = parameter_of(Json::parse(text));
    EXPECT_EQ(value, ParameterValue::from_json(text));
    EXPECT_EQ(text_of(json_object_of<Json>(std::get<Parameters>(value))), text);
    EXPECT_EQ(parameter_of(Json(18446744073709551615u)), ParameterValue(18446744073709551615.0));
}

}  // namespace
}  // namespace headrace::serve
