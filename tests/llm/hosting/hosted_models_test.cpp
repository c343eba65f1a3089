#include "headrace/hosted_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/tiny_model.h"

namespace headrace {
namespace {

using llm::tiny_model;
using testing::HasSubstr;

const GivenParameters kGreedy = {.values = {{"temp", 0}, {"n_predict", 64}, {"threads", 1}}};

template <class Call>
Exception thrown_by(Call call) {
    try {
        call();
    } catch (const Exception& e) {
        return e;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {Code::invalid_state, ""};
}

std::string said(HostedConversation place, std::string_view text, const GivenParameters& defaults = {},
                 const GivenParameters& parameters = {}) {
    return place.start(text, defaults, parameters, false).reply().text;
}

TEST(HostedModels, ShareASessionAmongThem) {
    HostedModels models(HostOptions{});
    const auto first = models.load(tiny_model(), kGreedy), second = models.load(tiny_model(), kGreedy);
    ASSERT_NE(first, second);
    said(models.open(first, "ada"), "My name is Ada.");
    EXPECT_EQ(said(models.open(second, "ada"), "What is my name?"), "Your name is Ada.");
}

TEST(HostedModels, EndTheRequestsOfOnePlaceAlone) {
    HostedModels models(HostOptions{});
    const auto model = models.load(tiny_model(), kGreedy);
    HostedConversation place = models.open(model), other = models.open(model);
    const GivenParameters endless = {.values = {{"ignore_eos", true}, {"n_predict", 400}}};
    Generation cancelled = place.start("Tell me a story.", {}, endless, true);
    Generation kept = other.start("What is 2+3?", {}, {}, true);
    place.cancel();
    EXPECT_EQ(cancelled.end().stop_reason, StopReason::cancelled);
    EXPECT_EQ(thrown_by([&] { cancelled.check(); }).code(), Code::cancelled);
    EXPECT_EQ(kept.end().text, "2+3=5");
    EXPECT_NO_THROW(kept.check());
    EXPECT_FALSE(place.has_requests());
}

TEST(HostedModels, TakeARequestsParametersOverThoseOfItsPlace) {
    HostedModels models(HostOptions{});
    HostedConversation place = models.open(models.load(tiny_model(), kGreedy));
    const GivenParameters seven = {.values = {{"grammar", "root ::= \"seven\""}}};
    EXPECT_EQ(said(place, "What is 2+3?", seven), "seven");
    EXPECT_EQ(said(place, "What is 2+3?", seven, {.values = {{"stop", "v"}}}), "se");
    const Generation made = place.start("Hello.", seven, {.values = {{"return_tokens", true}}}, true);
    EXPECT_EQ(*made.parameters().find("return_tokens"), ParameterValue(true));
    EXPECT_EQ(*made.parameters().find("grammar"), ParameterValue("root ::= \"seven\""));
}

TEST(HostedModels, ReadATextThatIsNoneLenientlyOrNot) {
    const GivenParameters wrong = GivenParameters::from_json("{");
    ASSERT_TRUE(wrong.mistake);
    HostedModels exact(HostOptions{});
    EXPECT_EQ(thrown_by([&] { exact.load(tiny_model(), wrong); }).code(), Code::invalid_argument);
    HostedModels lenient(HostOptions{.lenient = true});
    HostedConversation place = lenient.open(lenient.load(tiny_model(), wrong));
    const Reply reply = place.start("What is 2+3?", {}, {.values = {{"temp", 0}}}, false).reply();
    ASSERT_EQ(reply.warnings.size(), 1u);
    EXPECT_THAT(reply.warnings[0].message, HasSubstr("the defaults are used"));
    HostedModels strict(HostOptions{.defaults = {{"strict", true}}, .lenient = true});
    EXPECT_EQ(thrown_by([&] { strict.load(tiny_model(), wrong); }).code(), Code::invalid_argument);
}

TEST(HostedModels, ShowTheWarningsOfWhoeverReadTheParameters) {
    HostedModels models(HostOptions{});
    HostedConversation place = models.open(models.load(tiny_model(), kGreedy));
    const GivenParameters given = {.warnings = {{"parameters", std::string("half of them was read")}}};
    const Reply reply = place.start("What is 2+3?", given, {}, false).reply();
    ASSERT_EQ(reply.warnings.size(), 1u);
    EXPECT_EQ(reply.warnings[0].message, "half of them was read");
}

TEST(HostedModels, AreGoneForPlacesWhenTheyAreUnloaded) {
    HostedModels models(HostOptions{});
    const auto model = models.load(tiny_model(), kGreedy);
    HostedConversation place = models.open(model);
    EXPECT_FALSE(place.gives_vectors());
    models.unload(model);
    EXPECT_FALSE(place.has_model());
    EXPECT_EQ(thrown_by([&] { place.gives_vectors(); }).code(), Code::not_found);
    EXPECT_EQ(thrown_by([&] { said(place, "Hello."); }).code(), Code::not_found);
    EXPECT_EQ(thrown_by([&] { models.first(); }).code(), Code::not_found);
}

TEST(HostedModels, GiveAPlaceThatIsClosedToAnother) {
    HostedModels models(HostOptions{.defaults = {{"max_concurrent", 1}}});
    const auto model = models.load(tiny_model(), kGreedy);
    HostedConversation place = models.open(model);
    EXPECT_EQ(thrown_by([&] { models.open(model); }).code(), Code::busy);
    place.close();
    EXPECT_EQ(said(models.open(model), "What is 2+3?"), "2+3=5") << "and the end of a copy closes it, too";
    EXPECT_NO_THROW(models.open(model));
}

TEST(HostedModels, CountRequestsByModel) {
    HostedModels models(HostOptions{});
    const auto model = models.load(tiny_model(), kGreedy);
    HostedConversation place = models.open(model, "ada");
    EXPECT_EQ(place.latest_request(), 0u);
    const auto before = models.statistics().models.at(model).numbers.finished;
    said(place, "What is 2+3?");
    EXPECT_GT(place.latest_request(), 0u);
    EXPECT_EQ(place.label(), "ada");
    const HostedStatistics statistics = models.statistics();
    EXPECT_EQ(statistics.models.at(model).numbers.finished, before + 1);
    EXPECT_FALSE(statistics.models.at(model).gives_vectors);
    EXPECT_EQ(statistics.process.named_sessions, 1u);
}

}  // namespace
}  // namespace headrace
