// What the calls do when they are made as they should be.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class WasiNnCalls : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnCalls);

TEST_P(WasiNnCalls, ComputeAnswersTheInput) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    ASSERT_EQ(library->compute(host.ctx(), context), 0);
    EXPECT_THAT(library->get_output(host.ctx(), context, 0).text(), StartsWith(kAnswer));
    EXPECT_EQ(library->close_execution_context(host.ctx(), context), 0);
}

TEST_P(WasiNnCalls, OutputOneCountsTheTokens) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    EXPECT_THAT(host.ask(context, kQuestion, R"({"n_predict": 3})"), StartsWith("2+"));
    const std::string metadata = library->get_output(host.ctx(), context, 1).text();
    EXPECT_THAT(metadata, HasSubstr(R"("input_tokens":)"));
    EXPECT_THAT(metadata, HasSubstr(R"("output_tokens":3)"));
    EXPECT_THAT(metadata, HasSubstr(R"("stop_reason":)"));
}

TEST_P(WasiNnCalls, InputOneHoldsTheParameters) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    ASSERT_EQ(library->set_input(host.ctx(), context, 1, R"({"grammar": "root ::= \"seven\""})"), 0);
    ASSERT_EQ(library->compute(host.ctx(), context), 0);
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).text(), "seven");
}

TEST_P(WasiNnCalls, RunInferenceIsInputComputeAndOutput) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    EXPECT_THAT(host.ask(context, kQuestion), StartsWith(kAnswer));
    EXPECT_THAT(library->get_output(host.ctx(), context, 0).text(), StartsWith(kAnswer));
    EXPECT_EQ(host.ask(context, kQuestion, R"({"grammar": "root ::= \"seven\""})"), "seven");
}

/// Callers of libwasi_nn_backend.so were written for one that takes them so.
TEST_P(WasiNnCalls, OptionsThatAreNoJsonAreRefusedOrWhereHostsExpectItGiveTheDefaultsAndAWarning) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    const std::string told = host.ask(context, kQuestion, "{temp");
    const std::string metadata = library->get_output(host.ctx(), context, 1).text();
    if (GetParam() == Abi::backend) {
        EXPECT_THAT(told, StartsWith(kAnswer));
        EXPECT_THAT(metadata, HasSubstr(R"("warnings":[{)"));
    } else {
        EXPECT_EQ(told, "error 1");
        EXPECT_THAT(metadata, AllOf(HasSubstr(R"("code":"invalid_argument")"), HasSubstr("parameters")));
    }
}

TEST_P(WasiNnCalls, PiecesJoinedAreTheAnswer) {
    const Host host(*library);
    const std::uint32_t graph = host.load();
    const std::string whole = host.ask(host.open(graph), kQuestion);
    const std::uint32_t context = host.open(graph);
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    std::string joined;
    int code = 0, pieces = 0;
    while ((code = library->compute_single(host.ctx(), context)) == 0) {
        const Output piece = library->get_output_single(host.ctx(), context, 0);
        ASSERT_EQ(piece.code, 0);
        joined += piece.text();
        ++pieces;
    }
    EXPECT_EQ(code, 100);
    EXPECT_GE(pieces, 1);  // of one token or more: a piece is all there is
    EXPECT_EQ(joined, whole);
    EXPECT_THAT(library->get_output_single(host.ctx(), context, 1).text(), HasSubstr(R"("output_tokens":)"));
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).text(), whole);
    EXPECT_EQ(library->fini_single(host.ctx(), context), 0);
}

TEST_P(WasiNnCalls, OutputOneIsThePiecesMetadataThoughAnotherCallFailedBetweenThem) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    ASSERT_EQ(library->compute_single(host.ctx(), context), 0);
    EXPECT_NE(library->compute(host.ctx(), context), 0) << "the answer is being read";
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(),
                HasSubstr("the conversation has an answer"));
    while (library->compute_single(host.ctx(), context) == 0) continue;
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr(R"("output_tokens":)"));
}

TEST_P(WasiNnCalls, FiniSingleGivesUpTheRestAndTheContextGoesOn) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, "Tell me a story."), 0);
    ASSERT_EQ(library->compute_single(host.ctx(), context), 0);
    EXPECT_EQ(library->fini_single(host.ctx(), context), 0);
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr(R"("cancelled")"));
    EXPECT_EQ(host.ask(context, kQuestion, R"({"grammar": "root ::= \"on\""})"), "on");
}

TEST_P(WasiNnCalls, ASessionRemembersAndAnotherDoesNot) {
    const Host host(*library);
    host.load();
    constexpr std::string_view remember = R"({"history": true, "n_predict": 8})";
    const auto tokens_read = [&](const char* session) {
        const std::uint32_t context = host.open_session(session);
        EXPECT_THAT(host.ask(context, kQuestion, remember), testing::Not(StartsWith("error")));
        const std::string metadata = library->get_output(host.ctx(), context, 1).text();
        EXPECT_EQ(library->close_execution_context(host.ctx(), context), 0);
        const std::string key = R"("input_tokens":)";
        return std::stoi(metadata.substr(metadata.find(key) + key.size()));
    };
    const int first = tokens_read("anna");
    EXPECT_GT(tokens_read("anna"), first) << "the second prompt holds the first turn";
    EXPECT_EQ(tokens_read("berta"), first);
}

TEST_P(WasiNnCalls, AModelInMemoryAnswersUnderBothEncodings) {
    std::ifstream file(model_path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    SizedBytes builder{reinterpret_cast<std::uint8_t*>(bytes.data()),
                       static_cast<std::uint32_t>(bytes.size())};
    struct {
        SizedBytes* buf;
        std::uint32_t size;
    } builders{&builder, 1};
    const Host host(*library, kModelConfig);
    for (const std::uint32_t encoding : {5u, 6u}) {
        std::uint32_t graph = 77;
        ASSERT_EQ(library->load(host.ctx(), &builders, encoding, 0, &graph), 0);
        EXPECT_THAT(host.ask(host.open(graph), kQuestion), StartsWith(kAnswer));
    }
    std::uint32_t graph = 77;
    EXPECT_EQ(library->load(host.ctx(), &builders, 0, 0, &graph), 2) << "OpenVINO's encoding";
    builder.size /= 2;
    EXPECT_EQ(library->load(host.ctx(), &builders, 5, 0, &graph), 1) << "half a model";
    EXPECT_EQ(graph, 77u);
}

TEST_P(WasiNnCalls, StatisticsCountWhatRan) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    host.ask(context, kQuestion);
    const std::string statistics = library->statistics(host.ctx());
    EXPECT_THAT(statistics, HasSubstr(R"("contexts":1)"));
    EXPECT_THAT(statistics, HasSubstr(R"("finished":1)"));
}

TEST_P(WasiNnCalls, UnloadEndsAGraphForNewRequests) {
    const Host host(*library);
    const std::uint32_t graph = host.load();
    const std::uint32_t context = host.open(graph);
    EXPECT_EQ(library->unload(host.ctx(), graph), 0);
    EXPECT_EQ(library->unload(host.ctx(), graph), library->numbers.not_found);
    EXPECT_EQ(host.ask(context, kQuestion), "error " + std::to_string(library->numbers.not_found));
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), StartsWith(R"({"error":)"));
}

}  // namespace
}  // namespace headrace::wasi_nn_test
