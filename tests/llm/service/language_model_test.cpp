#include "headrace/language_model.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "checkout.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string tiny_model() { return checkout_path("models/tiny-chat-q8_0.gguf"); }

LanguageModel load(const Parameters& more = {}) {
    Parameters parameters = {{"temp", 0}, {"n_predict", 64}, {"threads", 1}, {"n_ctx", 512}};
    for (const auto& [name, value] : more.entries()) parameters.set(name, value);
    return LanguageModel::load(tiny_model(), {.parameters = parameters});
}

const Parameters kEndless = {{"ignore_eos", true}, {"n_predict", 400}};

#ifdef __GLIBC__
TEST(LanguageModel, LeavesTheProgramTheCLibrarysLocaltime) {
    void* symbol = dlsym(RTLD_DEFAULT, "localtime");
    Dl_info found{};
    ASSERT_NE(dladdr(symbol, &found), 0);
    EXPECT_THAT(found.dli_fname, HasSubstr("libc.so"));
}
#endif

/// What the call throws.
struct Thrown {
    std::optional<Code> code;
    std::string message, parameter;
};
template <class Call>
Thrown thrown_by(Call call) {
    try {
        call();
    } catch (const Exception& error) {
        return {error.code(), error.what(), error.parameter()};
    }
    return {};
}

TEST(LanguageModel, AnswersAQuestionAndTellsHowItWent) {
    LanguageModel model = load();
    const Reply reply = model.generate("What is 2+3?");
    EXPECT_EQ(reply.text, "2+3=5");
    EXPECT_EQ(reply.content, "2+3=5");
    EXPECT_EQ(reply.stop_reason, StopReason::end_of_answer);
    EXPECT_GT(reply.prompt_tokens, 5);
    EXPECT_GT(reply.generated_tokens, 3);
    EXPECT_EQ(static_cast<std::int64_t>(reply.tokens.size()), reply.generated_tokens);
    EXPECT_GT(reply.timings.prompt_ms, 0);
    EXPECT_FALSE(reply.model.empty());
    EXPECT_TRUE(reply.warnings.empty());
    EXPECT_EQ(model.kind(), ModelKind::text);
}

TEST(LanguageModel, AnswersTheLastOfSomeMessages) {
    LanguageModel model = load();
    const std::vector<Message> messages = {{.role = "user", .content = "My name is Ada."},
                                           {.role = "assistant", .content = "Nice to meet you, Ada!"},
                                           {.role = "user", .content = "What is my name?"}};
    EXPECT_EQ(model.generate({.messages = messages}).text, "Your name is Ada.");
    const Thrown both = thrown_by([&] { model.generate({.prompt = "Hi", .messages = messages}); });
    EXPECT_EQ(both.code, Code::invalid_argument);
    EXPECT_THAT(both.message, HasSubstr("one of them"));
    const Thrown role = thrown_by([&] { model.generate({.messages = {{.role = "king", .content = "Hi"}}}); });
    EXPECT_THAT(role.message, HasSubstr("message 0 has the role 'king'"));
}

TEST(LanguageModel, TakesAndRefusesParametersOfARequest) {
    LanguageModel model = load();
    EXPECT_EQ(model.generate("What is 2+3?", {{"stop", std::vector<ParameterValue>{"=", "+"}}}).text, "2");
    EXPECT_THAT(model.generate("What is 2+3?", {{"tempp", 1}}).warnings, SizeIs(1));
    EXPECT_EQ(model.generate("What is 2+3?", {{"tempp", 1}}).warnings[0].parameter, "tempp");
    EXPECT_EQ(thrown_by([&] { model.generate("Hi", {{"temp", "cold"}}); }).code, Code::invalid_argument);
    const double none = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(thrown_by([&] {
                    model.generate("Hi", {{"dynatemp", Parameters{{"range", none}}}});
                }).message,
                HasSubstr("'dynatemp.range' is nan"));
    EXPECT_EQ(thrown_by([&] { model.generate(std::string(100000, 'x')); }).code, Code::prompt_too_long);
    const Reply likely = model.generate("What is 2+3?", {{"n_probs", 3}});
    ASSERT_EQ(likely.probabilities.size(), likely.tokens.size());
    EXPECT_EQ(likely.probabilities[0][0].token, likely.tokens[0]);
    EXPECT_EQ(likely.probabilities[0][0].text, "2");
    EXPECT_THAT(likely.prompt_token_probabilities, testing::IsEmpty());
    const Reply scored = model.generate("What is 2+3?", {{"n_probs", 1}, {"prompt_probs", true}});
    ASSERT_EQ(scored.prompt_token_probabilities.size(), scored.prompt.size() - 1);
    EXPECT_NE(scored.prompt_probabilities.back().at(0).text, "");
}

TEST(LanguageModel, StreamsPiecesOfWholeCharacters) {
    LanguageModel model = load();
    Generation answer = model.stream("Which month comes after May?");
    std::string text;
    while (const auto piece = answer.next()) text += piece->text;
    EXPECT_EQ(text, "June comes after May.");
    EXPECT_FALSE(answer.next()) << "it has ended";
    EXPECT_EQ(answer.reply().text, text);
    EXPECT_EQ(model.stream("What is 2+3?").reply().text, "2+3=5") << "unread";
}

TEST(LanguageModelThreads, CancelAnAnswerFromAnother) {
    LanguageModel model = load();
    Generation answer = model.stream("Tell me a story.", kEndless);
    ASSERT_TRUE(answer.next());
    std::thread other([&] { answer.cancel(); });
    const Thrown ended = thrown_by([&] {
        while (answer.next()) continue;
    });
    other.join();
    EXPECT_EQ(ended.code, Code::cancelled);
    const Reply reply = answer.reply();
    EXPECT_EQ(reply.stop_reason, StopReason::cancelled);
    EXPECT_FALSE(reply.text.empty());
}

TEST(LanguageModel, EndsAnAnswerThatNobodyHolds) {
    LanguageModel model = load();
    { const Generation dropped = model.stream("Tell me a story.", kEndless); }
    while (model.statistics().cancelled == 0) std::this_thread::yield();
    Conversation conversation = model.conversation("ada");
    { const Generation dropped = conversation.stream("My name is Ada.", kEndless); }
    EXPECT_EQ(conversation.say("What is 2+3?").text, "2+3=5") << "its session is free";
    EXPECT_THAT(conversation.messages(), SizeIs(2)) << "and has forgotten it";
}

TEST(LanguageModel, KeepsConversationsApart) {
    LanguageModel model = load();
    Conversation ada = model.conversation("ada"), leo = model.conversation();
    EXPECT_EQ(ada.say("My name is Ada.").text, "Nice to meet you, Ada!");
    leo.say("My name is Leo.");
    EXPECT_EQ(model.conversation("ada").say("What is my name?").text, "Your name is Ada.");
    EXPECT_EQ(leo.stream("What is my name?").reply().text, "Your name is Leo.");
    ASSERT_THAT(ada.messages(), SizeIs(4));
    EXPECT_EQ(ada.messages()[0].role, "user");
    EXPECT_EQ(ada.messages()[3].content, "Your name is Ada.");
    EXPECT_EQ(model.statistics().named_sessions, 1u);
    EXPECT_EQ(model.statistics().anonymous_sessions, 1u);
}

TEST(LanguageModel, HasParametersOfAConversationUnderThoseOfItsRequests) {
    LanguageModel model = load();
    Conversation conversation = model.conversation("", {{"n_predict", 2}, {"max_history", 2}});
    EXPECT_EQ(conversation.say("What is 2+3?").stop_reason, StopReason::token_limit);
    EXPECT_EQ(conversation.say("What is 2+3?", {{"n_predict", 64}}).text, "2+3=5");
    EXPECT_THAT(conversation.messages(), SizeIs(2));
    EXPECT_EQ(thrown_by([&] { model.conversation("", {{"temp", "cold"}}); }).code, Code::invalid_argument);
    EXPECT_EQ(thrown_by([&] { model.conversation(std::string(300, 'x')); }).code, Code::invalid_argument);
}

TEST(LanguageModelThreads, WaitForTheirConversationUnlessItIsReadByPieces) {
    LanguageModel model = load();
    Conversation ada = model.conversation("ada");
    Generation answer = ada.stream("Tell me a story.", kEndless);
    EXPECT_EQ(thrown_by([&] { ada.say("Hi"); }).code, Code::busy);
    ada.cancel();
    EXPECT_EQ(answer.reply().stop_reason, StopReason::cancelled);

    std::optional<Code> running, waiting;
    std::thread first([&] { running = thrown_by([&] { ada.say("Tell me a story.", kEndless); }).code; });
    while (model.statistics().running == 0) std::this_thread::yield();
    std::thread second([&] { waiting = thrown_by([&] { ada.say("Hi"); }).code; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ada.cancel();
    first.join();
    second.join();
    EXPECT_EQ(running, Code::cancelled);
    EXPECT_EQ(waiting, Code::cancelled);
}

TEST(LanguageModel, EndsAllRequestsAtOnce) {
    LanguageModel model = load();
    Generation one = model.stream("Tell me a story.", kEndless);
    Generation two = model.conversation().stream("Tell me a story.", kEndless);
    model.cancel_all();
    EXPECT_EQ(one.reply().stop_reason, StopReason::cancelled);
    EXPECT_EQ(two.reply().stop_reason, StopReason::cancelled);
    EXPECT_EQ(model.generate("What is 2+3?").text, "2+3=5") << "later ones run";
}

TEST(LanguageModel, IsReplacedWhileAnAnswerIsWritten) {
    LanguageModel model = load();
    Generation answer = model.stream("Which month comes after May?");
    ASSERT_TRUE(answer.next());
    model.replace(tiny_model(), {.parameters = {{"n_predict", 2}, {"temp", 0}, {"n_ctx", 384}}});
    EXPECT_EQ(answer.reply().stop_reason, StopReason::end_of_answer) << "on the old one";
    EXPECT_EQ(model.generate("What is 2+3?").generated_tokens, 2);
    EXPECT_EQ(thrown_by([&] { model.replace("absent.gguf"); }).code, Code::not_found);
    EXPECT_EQ(model.generate("What is 2+3?").generated_tokens, 2) << "a failed load changes nothing";
}

TEST(LanguageModel, IsLoadedFromBytesAndRefusesWhatIsNone) {
    std::ifstream file(tiny_model(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(LanguageModel::load_bytes(bytes, {.parameters = {{"temp", 0}}}).generate("What is 2+3?").text,
              "2+3=5");
    EXPECT_EQ(thrown_by([&] { LanguageModel::load_bytes("GGUF"); }).code, Code::invalid_argument);
    const Thrown absent = thrown_by([&] { LanguageModel::load("absent.gguf"); });
    EXPECT_EQ(absent.code, Code::not_found);
    EXPECT_THAT(absent.message, HasSubstr("absent.gguf: there is no such file"));
    EXPECT_EQ(thrown_by([&] { load({{"n_ctx", "many"}}); }).code, Code::invalid_argument);
}

TEST(LanguageModel, TellsWhatOfALoadWasNotTakenAsItIs) {
    const LanguageModel model = load({{"min_p", 4}, {"tempp", 1}});
    std::vector<std::string> names;
    for (const Warning& warning : model.warnings()) names.push_back(warning.parameter);
    EXPECT_THAT(names, testing::UnorderedElementsAre("min_p", "tempp"));
}

TEST(LanguageModel, MakesVectorsOfManyTextsInOneRequest) {
    LanguageModel model = load({{"embeddings", true}, {"pooling", "mean"}});
    EXPECT_EQ(model.kind(), ModelKind::vectors);
    const Embeddings both = model.embed({"What is 2+3?", "My name is Ada."});
    ASSERT_THAT(both.vectors, SizeIs(2));
    // Up to what a product of more rows adds up in another order.
    EXPECT_THAT(both.vectors[1],
                testing::Pointwise(testing::FloatNear(1e-6F), model.embed({"My name is Ada."}).vectors[0]));
    EXPECT_NE(both.vectors[0], both.vectors[1]);
    EXPECT_EQ(both.tokens, model.embed({"What is 2+3?"}).tokens + model.embed({"My name is Ada."}).tokens);
    EXPECT_THAT(model.embed({}).vectors, SizeIs(0));
    const Thrown third = thrown_by([&] { model.embed({"a", "b", std::string(1 << 20, 'x')}); });
    EXPECT_EQ(third.code, Code::prompt_too_long);
    EXPECT_THAT(third.message, HasSubstr("text 2 "));
    EXPECT_EQ(thrown_by([&] { model.generate("Hi"); }).code, Code::unsupported);
    EXPECT_THAT(thrown_by([&] { model.embed_tokens("Hi"); }).message, HasSubstr("are pooled"));
    EXPECT_EQ(thrown_by([&] { model.embed({"a"}, {{"timeout_ms", 0}}); }).code, Code::timed_out);
}

TEST(LanguageModel, MakesAVectorOfEachToken) {
    LanguageModel model = load({{"embeddings", true}, {"pooling", "none"}});
    EXPECT_EQ(model.kind(), ModelKind::token_vectors);
    const Embeddings tokens = model.embed_tokens("My name is Ada.");
    EXPECT_EQ(static_cast<std::int64_t>(tokens.vectors.size()), tokens.tokens);
    EXPECT_THAT(thrown_by([&] { model.embed({"Hi"}); }).message, HasSubstr("a vector for each token"));
    LanguageModel writes = load();
    EXPECT_THAT(thrown_by([&] { writes.embed({"Hi"}); }).message, HasSubstr("for vectors"));
    EXPECT_EQ(thrown_by([&] { writes.rerank("Hi", {"a"}); }).code, Code::unsupported);
}

TEST(LanguageModel, CountsWhatItDid) {
    LanguageModel model = load({{"n_ctx", 448}});
    model.generate("What is 2+3?");
    model.generate("What is 2+3?");
    const LanguageModelStatistics statistics = model.statistics();
    EXPECT_EQ(statistics.name, tiny_model());
    EXPECT_GE(statistics.finished, 2u);
    EXPECT_GT(statistics.cached_tokens, 4u);
    EXPECT_GT(statistics.weight_bytes, 1u << 16);
    EXPECT_GE(statistics.process_models, 1u);
    EXPECT_GT(statistics.process_resident_bytes, 1u << 20);
}

TEST(Parameters, AreNamedValuesInTheOrderInWhichTheyWereSet) {
    Parameters parameters = {{"b", 1}, {"a", "text"}, {"b", 2.5}};
    EXPECT_EQ(parameters.to_json(), R"({"b":2.5,"a":"text"})");
    parameters.set("c", Parameters{{"d", nullptr}, {"e", std::vector<ParameterValue>{true, -7}}});
    EXPECT_EQ(parameters.to_json(), R"({"b":2.5,"a":"text","c":{"d":null,"e":[true,-7]}})");
    EXPECT_EQ(Parameters::from_json(parameters.to_json(2)), parameters);
    EXPECT_TRUE(parameters.erase("b"));
    EXPECT_FALSE(parameters.erase("b"));
    EXPECT_EQ(parameters.find("b"), nullptr);
    EXPECT_EQ(std::get<std::string>(*parameters.find("a")), "text");
    EXPECT_TRUE(Parameters().empty());
    EXPECT_TRUE(Parameters::from_json(" \n").empty());
    EXPECT_EQ(Parameters({{"x", "\xff"}}).to_json(), "{\"x\":\"\xef\xbf\xbd\"}");
    const Thrown wrong = thrown_by([] { Parameters::from_json("{\"a\": }"); });
    EXPECT_EQ(wrong.code, Code::invalid_argument);
    EXPECT_THAT(wrong.message, HasSubstr("line 1, column 7"));
    const auto whole = Parameters::from_json(R"({"least": -9223372036854775808, "large": 1e300})");
    EXPECT_EQ(std::get<std::int64_t>(*whole.find("least")), INT64_MIN);
    EXPECT_EQ(std::get<double>(*whole.find("large")), 1e300);
}

TEST(ParameterKind, IsToldOfEverySpelling) {
    EXPECT_EQ(kind_of_parameter("temperature"), ParameterKind::value);
    EXPECT_EQ(kind_of_parameter("sampling.Dynatemp-Range"), ParameterKind::value);
    EXPECT_EQ(kind_of_parameter("stop"), ParameterKind::value);
    EXPECT_EQ(kind_of_parameter("logit_bias"), ParameterKind::object);
    EXPECT_EQ(kind_of_parameter("response-format"), ParameterKind::object);
    EXPECT_EQ(kind_of_parameter("sampling"), ParameterKind::section);
    EXPECT_EQ(kind_of_parameter("model_alias"), ParameterKind::unknown);
    EXPECT_EQ(kind_of_parameter("tempp"), ParameterKind::unknown);
}

TEST(ParameterScope, IsThatOfTheSettingsInTheTable) {
    const std::pair<const char*, ParameterScope> scopes[] = {
        {"temperature", ParameterScope::answers},
        {"chat_template_kwargs", ParameterScope::answers},
        {"timeout_ms", ParameterScope::answers},
        {"max_sessions", ParameterScope::answers},
        {"log_level", ParameterScope::answers},
        {"threads", ParameterScope::engine},
        {"context.rope.scaling", ParameterScope::engine},
        {"cache-type-k", ParameterScope::engine},
        {"cache_dir", ParameterScope::engine},
        {"max_waiting", ParameterScope::engine},
        {"n_gpu_layers", ParameterScope::weights},
        {"mmproj", ParameterScope::weights},
        {"lora", ParameterScope::weights},
        {"draft_model", ParameterScope::weights},
        {"tempp", ParameterScope::weights}};
    for (const auto& [name, scope] : scopes) EXPECT_EQ(scope_of_parameter(name), scope) << name;
}

TEST(Exceptions, NameTheParameterThatIsWrong) {
    LanguageModel model = load();
    const auto parameter_of = [&](Parameters parameters) {
        parameters.set("ignore_eos", true);  // until something is wrong
        return thrown_by([&] { model.generate("What is 2+3?", parameters); }).parameter;
    };
    EXPECT_EQ(parameter_of({{"top_k", "many"}}), "top_k");
    EXPECT_EQ(parameter_of({{"sampling", Parameters{{"top-k", 1.5}}}}), "sampling.top-k");
    EXPECT_EQ(parameter_of({{"strict", true}, {"tempp", 1}}), "tempp");
    EXPECT_EQ(parameter_of({{"strict", true}, {"temperature", 5}}), "temperature");
    EXPECT_EQ(parameter_of({{"session_id", std::string(400, 'x')}}), "session_id");
    EXPECT_EQ(parameter_of({{"prefix", "\xff"}}), "prefix");
    EXPECT_EQ(parameter_of({{"grammar", "root ::= "}, {"json_schema", Parameters{{"type", "object"}}}}),
              "json_schema");
    EXPECT_EQ(parameter_of({{"grammar", "root ::= ("}}), "grammar");
    EXPECT_EQ(parameter_of({{"lora", std::vector<ParameterValue>{Parameters{{"id", 3}, {"scale", 1}}}}}),
              "lora");
    EXPECT_EQ(parameter_of({{"stop", std::vector<ParameterValue>{1}}}), "stop");
    EXPECT_EQ(thrown_by([&] { model.generate(""); }).parameter, "");
}

TEST(ParameterValue, IsReadFromAnyJsonText) {
    EXPECT_EQ(ParameterValue::from_json(" 7 "), ParameterValue(7));
    EXPECT_EQ(ParameterValue::from_json("\"a\""), ParameterValue("a"));
    EXPECT_EQ(ParameterValue::from_json("null"), ParameterValue(nullptr));
    EXPECT_EQ(ParameterValue::from_json(R"({"a": [true]})"),
              ParameterValue(Parameters{{"a", std::vector<ParameterValue>{true}}}));
    for (const char* text : {"", "low", "1, \"other\": 2", "1}", "\"\xff\""}) {
        const Thrown wrong = thrown_by([&] { ParameterValue::from_json(text); });
        EXPECT_EQ(wrong.code, Code::invalid_argument) << text;
        EXPECT_THAT(wrong.message, HasSubstr("the value is not valid JSON: line 1")) << text;
    }
}

}  // namespace
}  // namespace headrace
