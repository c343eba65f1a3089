// The numbers of docs/errors.md that language models give; those of graphs are in graphs_test.cpp and
// graph_limits_test.cpp, those of handles and tables in misuse_test.cpp.
#include <gmock/gmock.h>

#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WasiNnCodes : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnCodes);

std::string words(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += " word";
    return text;
}

TEST_P(WasiNnCodes, APromptBeyondTheContextIsPromptTooLong) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    EXPECT_EQ(host.ask(context, words(4000)), "error 102");
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr(R"("code":"prompt_too_long")"));
    EXPECT_EQ(host.ask(context, kQuestion).substr(0, kAnswer.size()), kAnswer) << "the context goes on";
}

TEST_P(WasiNnCodes, AConversationThatMayLeaveNothingOutIsContextFullAtItsEnd) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load(
        R"({"n_threads": 1, "n_ctx": 256, "temperature": 0, "history": true, "drop_oldest": false})"));
    std::string told;
    for (int turn = 0; turn < 40 && !told.starts_with("error"); ++turn) told = host.ask(context, kQuestion);
    EXPECT_EQ(told, "error 101");
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(),
                AllOf(HasSubstr(R"("code":"context_full")"), HasSubstr("drop_oldest")));
    EXPECT_EQ(host.ask(context, words(4000)), "error 102") << "which would not fit in any conversation";
    EXPECT_EQ(host.ask(context, kQuestion, R"({"drop_oldest": true})").substr(0, kAnswer.size()), kAnswer);
}

TEST_P(WasiNnCodes, AnAnswerThatFillsTheContextIsNoErrorAndSaysSo) {
    const Host host(*library);
    const std::uint32_t context =
        host.open(host.load(R"({"n_threads": 1, "n_ctx": 256, "temperature": 0, "context_shift": false})"));
    const Output output = library->run_inference(host.ctx(), context, kQuestion,
                                                 R"({"n_predict": 100000, "ignore_eos": true})");
    EXPECT_EQ(output.code, 0);
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(),
                HasSubstr(R"("stop_reason":"context_full")"));
}

TEST_P(WasiNnCodes, AnAnswerThatTakesLongerThanItsTimeoutIsTimedOut) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    const std::string told =
        host.ask(context, kQuestion, R"({"timeout_ms": 1, "n_predict": 900, "ignore_eos": true})");
    EXPECT_EQ(told, "error " + std::to_string(library->numbers.timed_out));
}

TEST_P(WasiNnCodes, AModelOfVectorsWritesNoText) {
    const Host host(*library);
    const std::uint32_t context =
        host.open(host.load(R"({"n_threads": 1, "n_ctx": 256, "embeddings": true, "pooling": "mean"})"));
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    EXPECT_EQ(library->compute_single(host.ctx(), context), library->numbers.unsupported);
}

TEST_P(WasiNnCodes, AWrongParameterOfALoadIsAnInvalidArgumentAndAMissingFileModelNotFound) {
    const Host host(*library, R"({"strict": true})");
    std::uint32_t graph = 77;
    EXPECT_EQ(host.try_load(model_path(), R"({"split_mode": "diagonal"})", &graph), 1);
    EXPECT_EQ(host.try_load("/no/such/model.gguf", kModelConfig, &graph), 103);
    EXPECT_EQ(graph, 77u);
}

}  // namespace
}  // namespace headrace::wasi_nn_test
