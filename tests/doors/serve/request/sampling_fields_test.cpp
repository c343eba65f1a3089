#include "doors/serve/request/sampling_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

void check(const char* text) {
    const Json body = Json::parse(text);
    check_openai_fields(Fields(body));
}

TEST(OpenAiFields, HaveTheRangesAndWordsThatOpenAiDocuments) {
    const std::pair<const char*, const char*> wrong[] = {
        {R"({"temperature": 2.1})", "temperature"},
        {R"({"stop": ["a", "b", "c", "d", "e"]})", "stop"},
        {R"({"logit_bias": {"15": -100.5}})", "logit_bias"},
        {R"({"logit_bias": {"15": 1, "16": 101}})", "logit_bias"},
        {R"({"service_tier": "fastest"})", "service_tier"},
        {R"({"reasoning_effort": "extreme"})", "reasoning_effort"}};
    for (const auto& [text, field] : wrong) EXPECT_EQ(error_of([&] { check(text); }).field, field) << text;
    for (const char* right :
         {R"({"temperature": 2})", R"({"stop": ["a", "b", "c", "d"]})", R"({"stop": "a"})",
          R"({"logit_bias": {"15": -100, "16": 100, "17": false}})", R"({"logit_bias": [[15, 1000]]})",
          R"({"service_tier": "priority", "reasoning_effort": "xhigh"})", R"({"service_tier": null})"})
        EXPECT_NO_THROW(check(right)) << right;
}

TEST(OpenAiFields, ThatAreNoneOfTheirWordsAreToldThese) {
    EXPECT_THAT(error_of([] { check(R"({"reasoning_effort": "extreme"})"); }).what(),
                HasSubstr("is 'extreme'; it must be one of none, minimal, low, medium, high, xhigh, max"));
}

}  // namespace
}  // namespace headrace::serve
