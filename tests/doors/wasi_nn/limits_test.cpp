// Models that are replaced, sessions that are full, and requests that are cancelled.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WasiNnLimits : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnLimits);

constexpr std::string_view kEndlessRequest = R"({"ignore_eos": true, "n_predict": -1})";

std::string context_tokens(const Library& library, void* ctx) {
    const std::string statistics = library.statistics(ctx), key = R"("context_tokens":)";
    const std::size_t start = statistics.find(key) + key.size();
    return statistics.substr(start, statistics.find_first_not_of("0123456789", start) - start);
}

TEST_P(WasiNnLimits, ModelsAreReplacedUnderConcurrentRequestsAndNoneFails) {
    const Host host(*library);
    constexpr std::string_view configs[] = {
        R"({"replace": "true", "n_threads": 1, "temperature": 0, "n_ctx": 1024})",
        R"({"replace": "true", "n_threads": 1, "temperature": 0, "n_ctx": 512})"};
    const std::uint32_t graph = host.load(configs[0]);
    std::atomic<bool> stop{false};
    std::atomic<int> answers{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            const std::uint32_t context = host.open(graph);
            while (!stop) {
                EXPECT_THAT(host.ask(context, kQuestion, R"({"history": false})"), StartsWith(kAnswer));
                ++answers;
            }
        });
    std::uint32_t same = 77;
    for (int swap = 1; swap <= 4; ++swap) {
        for (const int before = answers; answers < before + 3 && !HasFailure();)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_EQ(host.try_load(model_path(), configs[swap % 2], &same), 0);
        EXPECT_EQ(same, graph);
        EXPECT_EQ(context_tokens(*library, host.ctx()), swap % 2 ? "512" : "1024");
        EXPECT_EQ(host.try_load("/nowhere.gguf", configs[0], &same), 103);
        EXPECT_EQ(host.try_load(checkout_path("README.md"), configs[0], &same), 1);
        EXPECT_EQ(context_tokens(*library, host.ctx()), swap % 2 ? "512" : "1024")
            << "a failed load changes nothing";
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(answers, 12);
}

TEST_P(WasiNnLimits, ASecondLoadReplacesOrAddsAsTheInterfaceSays) {
    const Host host(*library);
    EXPECT_EQ(host.load(), 0u);
    EXPECT_EQ(host.load(), GetParam() == Abi::backend ? 0u : 1u);
    EXPECT_EQ(host.load(R"({"n_threads": 1, "model": {"replace": true}})"), 0u);
    EXPECT_GT(host.load(R"({"n_threads": 1, "model": {"replace": false}})"), 0u);
}

TEST_P(WasiNnLimits, TheThirdAnonymousContextOfTwoIsRefused) {
    const Host host(*library, R"({"max_concurrent": 2})");
    const std::uint32_t graph = host.load(), first = host.open(graph);
    host.open(graph);
    std::uint32_t third = 0;
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &third), 4);
    EXPECT_EQ(library->close_execution_context(host.ctx(), first), 0);
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &third), 0);
}

TEST_P(WasiNnLimits, ContextsOfUnloadedGraphsGiveWayToNewOnesAsGuestsCannotCloseThem) {
    const Host host(*library, R"({"max_concurrent": 2})");
    for (int round = 0; round < 5; ++round) {
        const std::uint32_t graph = host.load(), context = host.open(graph);
        EXPECT_THAT(host.ask(context, kQuestion), StartsWith(kAnswer));
        EXPECT_EQ(library->unload(host.ctx(), graph), 0);
        EXPECT_THAT(library->get_output(host.ctx(), context, 0).text(), StartsWith(kAnswer)) << "not yet";
    }
    EXPECT_THAT(library->statistics(host.ctx()), HasSubstr(R"("contexts":1)"));
}

TEST_P(WasiNnLimits, AModelsConfigurationLimitsContextsToo) {
    const Host host(*library);
    const std::uint32_t graph = host.load(R"({"n_threads": 1, "max_concurrent": 2})");
    host.open(graph);
    host.open(graph);
    std::uint32_t third = 0;
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &third), 4);
}

TEST_P(WasiNnLimits, AFullSetOfRunningSessionsRefusesAnother) {
    const Host host(*library, R"({"max_sessions": 1})");
    host.load();
    const std::uint32_t running = host.open_session("anna");
    ASSERT_EQ(library->set_input(host.ctx(), running, 0, "Tell me a story."), 0);
    ASSERT_EQ(library->compute_single(host.ctx(), running), 0);
    std::uint32_t context = 0;
    EXPECT_EQ(library->init_execution_context_with_session_id(host.ctx(), "berta", &context), 4);
    ASSERT_EQ(library->fini_single(host.ctx(), running), 0);
    EXPECT_EQ(library->init_execution_context_with_session_id(host.ctx(), "berta", &context), 0)
        << "an idle session makes room";
    EXPECT_EQ(host.ask(running, kQuestion), "error " + std::to_string(library->numbers.not_found));
}

/// Runs a request without an end in another thread, and does something once it generates.
template <class Act>
int end_of_endless_request(const Library& library, const Host& host, std::uint32_t context, Act act) {
    std::atomic<int> code{-1};
    std::thread request(
        [&] { code = library.run_inference(host.ctx(), context, "Tell me a story.", kEndlessRequest).code; });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (library.statistics(host.ctx()).find(R"("running":1)") == std::string::npos && code == -1 &&
           std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    act();
    request.join();
    return code;
}

constexpr std::string_view kShifting = R"({"n_threads": 1, "n_ctx": 512, "context_shift": true})";

TEST_P(WasiNnLimits, AnotherThreadCancelsARequest) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load(kShifting));
    const int code = end_of_endless_request(
        *library, host, context, [&] { EXPECT_EQ(library->cancel_inference(host.ctx(), context), 0); });
    EXPECT_EQ(code, library->numbers.cancelled);
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr(R"("cancelled")"));
    EXPECT_EQ(host.ask(context, kQuestion, R"({"grammar": "root ::= \"on\""})"), "on");
}

TEST_P(WasiNnLimits, AGuestDoesNotPutOffTheEndThatItsHostSetsARequest) {
    const Host host(*library, R"({"max_compute_ms": 100})");
    const std::uint32_t context = host.open(
        host.load(R"({"n_threads": 1, "n_ctx": 512, "context_shift": true, "timeout_ms": 600000})"));
    for (const char* own : {"", R"(, "timeout_ms": 600000, "max_time_ms": 600000)", R"(, "timeout_ms": -1)"})
        EXPECT_EQ(
            host.ask(context, kQuestion, R"({"ignore_eos": true, "n_predict": -1)" + std::string(own) + "}"),
            "error " + std::to_string(library->numbers.timed_out));
    const Output sooner = library->run_inference(host.ctx(), context, kQuestion,
                                                 R"({"ignore_eos": true, "n_predict": -1, "timeout_ms": 1})");
    EXPECT_EQ(sooner.code, library->numbers.timed_out);
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr("timeout_ms 1"));
}

TEST_P(WasiNnLimits, AGuestTakesNoMoreMemoryThanItsHostSays) {
    const Host host(*library, R"({"max_memory_bytes": 100000000})");
    std::uint32_t graph = 77;
    EXPECT_EQ(
        host.try_load(model_path(), R"({"n_threads": 1, "n_ctx": 10000000, "max_memory_bytes": 0})", &graph),
        library->numbers.too_large);
    EXPECT_THAT(library->get_output(host.ctx(), 0, 1).text(),
                HasSubstr("of 100000000, the host's max_memory_bytes, are in use"));
    EXPECT_EQ(graph, 77u);
    const std::uint32_t loaded = host.load(R"({"n_threads": 1, "n_ctx": 512})"), context = host.open(loaded);
    EXPECT_THAT(host.ask(context, kQuestion), StartsWith(kAnswer));
    EXPECT_EQ(library->set_input(host.ctx(), context, 0, std::string(100'000'000, 'x')),
              library->numbers.no_memory);
    EXPECT_THAT(library->get_output(host.ctx(), context, 0).text(), StartsWith(kAnswer)) << "nothing changes";
    int held = 0;
    std::uint32_t filled = 0;
    for (int code = 0; code == 0 && held < 100; ++held) {
        filled = host.open(loaded);
        code = library->set_input(host.ctx(), filled, held % 2, std::string(4'000'000, 'x'));
    }
    EXPECT_LT(held, 30);
    EXPECT_EQ(library->close_execution_context(host.ctx(), filled - 1), 0);
    EXPECT_EQ(library->set_input(host.ctx(), filled, 0, std::string(4'000'000, 'x')), 0)
        << "a closed context gives its texts' memory back";
}

TEST_P(WasiNnLimits, AGuestsParametersCountAsWhatIsReadOfThem) {
    const Host host(*library, R"({"max_memory_bytes": 100000000})");
    const std::uint32_t context = host.open(host.load(R"({"n_threads": 1, "n_ctx": 512})"));
    std::string biases = R"({"logit_bias": [[1, 1])";
    for (int i = 0; i < 1'000'000; ++i) biases += ",[1,1]";
    biases += "]}";
    EXPECT_EQ(library->set_input(host.ctx(), context, 1, biases), library->numbers.no_memory);
    EXPECT_THAT(library->get_output(host.ctx(), 0, 1).text(),
                HasSubstr("what the parameters are read as takes"));
    EXPECT_EQ(library->run_inference(host.ctx(), context, "Hi", biases).code, library->numbers.no_memory);
    EXPECT_EQ(library->run_inference(host.ctx(), context, "Hi", R"({"n_predict": 1})").code, 0);
    const std::string text = R"({"stop": [")" + std::string(1'000'000, ',') + R"(", "\",[[[{{{"]})";
    EXPECT_EQ(library->set_input(host.ctx(), context, 1, text), 0) << "a text's commas are no values";
}

TEST_P(WasiNnLimits, ALoadsParametersHaveAMost) {
    const Host host(*library);
    std::uint32_t graph = 77;
    const std::string long_one = R"({"n_ctx": 512)" + std::string(1 << 20, ' ') + "}";
    EXPECT_EQ(host.try_load(model_path(), long_one, &graph), 1) << "invalid_argument";
    EXPECT_THAT(library->get_output(host.ctx(), 0, 1).text(),
                HasSubstr("the load's parameters have 1048590 bytes, and 1048576 are the most"));
    EXPECT_EQ(graph, 77u);
}

TEST_P(WasiNnLimits, ClosingAContextEndsItsRequest) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load(kShifting));
    const int code = end_of_endless_request(*library, host, context, [&] {
        EXPECT_EQ(library->close_execution_context(host.ctx(), context), 0);
    });
    EXPECT_NE(code, 0);
}

TEST_P(WasiNnLimits, ClosingTheBackendEndsItsRequests) {
    Host host(*library);
    const std::uint32_t context = host.open(host.load(kShifting));
    void* ctx = host.ctx();
    const int code =
        end_of_endless_request(*library, host, context, [&] { EXPECT_EQ(library->deinit_backend(ctx), 0); });
    EXPECT_NE(code, 0);
    host.release();
}

}  // namespace
}  // namespace headrace::wasi_nn_test
