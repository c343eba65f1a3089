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

constexpr std::int64_t kMiB = 1 << 20;

HostedModels limited(std::int64_t bytes) {
    return HostedModels({.own = GivenParameters{.values = {{"max_memory_bytes", bytes}}}});
}

std::string context_of(std::int64_t tokens) {
    return R"({"threads": 1, "temp": 0, "n_parallel": 1, "n_ctx": )" + std::to_string(tokens) + "}";
}

Exception load_error(HostedModels& models, std::string_view parameters) {
    return thrown_by([&] { models.load(tiny_model(), GivenParameters::from_json(parameters)); });
}

TEST(HostedMemory, RefusesAContextThatIsTooLargeBeforeItIsThere) {
    HostedModels models = limited(200 * kMiB);
    const auto before = models.statistics().process.process_resident_bytes;
    for (const char* more : {"", R"("offload_kqv": false, )", R"("type_k": "f32", "type_v": "f32", )",
                             R"("max_memory_bytes": 0, )", R"("swa_full": false, )"}) {
        const Exception refused =
            load_error(models, "{" + std::string(more) + context_of(10'000'000).substr(1));
        EXPECT_EQ(refused.code(), Code::out_of_memory) << more;
        EXPECT_THAT(refused.what(), HasSubstr("n_ctx 10000000 takes"));
        EXPECT_THAT(refused.what(), HasSubstr("of 209715200, the host's max_memory_bytes, are in use"));
        EXPECT_THAT(refused.what(), HasSubstr("ask for a smaller n_ctx or n_ubatch"));
    }
    EXPECT_LT(models.statistics().process.process_resident_bytes, before + 100 * kMiB);
    EXPECT_EQ(said(models.open(models.load(tiny_model(), GivenParameters::from_json(context_of(512)))),
                   "What is 2+3?"),
              "2+3=5");
}

TEST(HostedMemory, RefusesLargeStepsToo) {
    HostedModels models = limited(200 * kMiB);
    const Exception refused =
        load_error(models, R"({"n_ctx": 65536, "n_batch": 65536, "n_ubatch": 65536, "flash_attn": "off"})");
    EXPECT_EQ(refused.code(), Code::out_of_memory) << refused.what();
}

TEST(HostedMemory, CountsModelsTogetherAndThoseThatAreAlikeOnce) {
    HostedModels models = limited(120 * kMiB);
    const auto load = [&](int tokens) {
        return models.load(tiny_model(), GivenParameters::from_json(context_of(tokens)));
    };
    std::vector<HostedModels::Id> loaded;
    for (int i = 0; i < 20; ++i) loaded.push_back(load(512));
    const Exception refused = thrown_by([&] {
        for (int i = 1; i < 64; ++i) loaded.push_back(load(512 + 256 * i));
    });
    EXPECT_EQ(refused.code(), Code::out_of_memory);
    for (const auto id : loaded) models.unload(id);
    EXPECT_NO_THROW(load(1024)) << "what was unloaded takes no memory";
}

TEST(HostedMemory, ARequestThatRunsKeepsTheMemoryOfItsUnloadedModel) {
    HostedModels models = limited(120 * kMiB);
    const auto first = models.load(tiny_model(), GivenParameters::from_json(context_of(16384)));
    const auto loads_that_fit = [&] {
        std::vector<HostedModels::Id> loaded;
        const Exception refused = thrown_by([&] {
            for (int i = 0; i < 64; ++i)
                loaded.push_back(
                    models.load(tiny_model(), GivenParameters::from_json(context_of(512 + 256 * i))));
        });
        EXPECT_EQ(refused.code(), Code::out_of_memory);
        for (const auto id : loaded) models.unload(id);
        return loaded.size();
    };
    std::size_t beside = 0;
    {
        Generation running = models.open(first).start(
            "Tell me a story.", {}, {.values = {{"ignore_eos", true}, {"n_predict", 16000}}}, true);
        models.unload(first);
        beside = loads_that_fit();
        running.cancel();
        EXPECT_EQ(running.end().stop_reason, StopReason::cancelled);
    }
    EXPECT_GT(loads_that_fit(), beside);
}

TEST(HostedMemory, GivesRememberedPromptsAQuarterOfWhatIsLeft) {
    HostedModels models = limited(200 * kMiB);
    HostedConversation place = models.open(
        models.load(tiny_model(),
                    GivenParameters::from_json(R"({"threads": 1, "temp": 0, "n_ctx": 512, "ram_mib": -1})")));
    const Reply reply = place.start("What is 2+3?", {}, {}, false).reply();
    EXPECT_EQ(reply.text, "2+3=5");
    ASSERT_EQ(reply.warnings.size(), 1u);
    EXPECT_EQ(reply.warnings[0].parameter, "ram_mib");
    EXPECT_THAT(reply.warnings[0].message,
                HasSubstr("MiB in place of -1: a quarter at most of what the host's "
                          "max_memory_bytes leaves"));
}

TEST(HostedMemory, HoldsTextsOfPlacesAndSessions) {
    HostedModels models = limited(200 * kMiB);
    const auto model = models.load(
        tiny_model(), GivenParameters::from_json(R"({"threads": 1, "temp": 0, "n_ctx": 512, "ram_mib": 0})"));
    std::vector<HostedConversation> places;
    const auto hold = [&](std::size_t bytes) {
        return thrown_by([&] {
            for (int i = 0; i < 64; ++i) {
                places.push_back(models.open(model));
                places.back().hold(bytes, "the prompt");
            }
        });
    };
    const Exception refused = hold(10 * kMiB);
    EXPECT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_THAT(refused.what(), HasSubstr("the prompt takes 10485760 bytes"));
    HostedConversation last = places.back();
    EXPECT_EQ(said(last, "What is 2+3?"), "2+3=5") << "the limit is not passed";
    last.note_held(200 * kMiB);
    EXPECT_THAT(
        thrown_by([&] { said(last, "What is 2+3?"); }).what(),
        HasSubstr("the host's max_memory_bytes is 209715200; close a context or a session, or unload"));
    places.clear();
    last.hold(0, "");
    EXPECT_EQ(said(last, "What is 2+3?"), "2+3=5");
}

}  // namespace
}  // namespace headrace
