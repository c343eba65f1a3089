// Several backends, libraries and lives of a library in one process.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WasiNnSharing : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnSharing);

TEST_P(WasiNnSharing, TwoBackendsShareOneModel) {
    const Host first(*library);
    const std::uint32_t graph = first.load();
    {
        const Host second(*library);
        EXPECT_THAT(second.ask(second.open(second.load()), kQuestion), StartsWith(kAnswer));
        const std::string statistics = library->statistics(second.ctx());
        EXPECT_THAT(statistics, HasSubstr(R"("models":1)"));
        EXPECT_THAT(statistics, HasSubstr(R"("engines":1)"));
    }
    EXPECT_THAT(first.ask(first.open(graph), kQuestion), StartsWith(kAnswer)) << "after the other's end";
}

TEST_P(WasiNnSharing, ContextsOfOneBackendAreNoneOfAnother) {
    const Host first(*library), second(*library);
    const std::uint32_t context = first.open(first.load());
    second.load();
    EXPECT_EQ(second.ask(context, kQuestion), "error " + std::to_string(library->numbers.not_found));
}

TEST_P(WasiNnSharing, ALibraryCanBeClosedAndOpenedAgain) {
    for (int life = 0; life < 3; ++life) {
        library.emplace(GetParam());
        const Host host(*library);
        EXPECT_THAT(host.ask(host.open(host.load()), kQuestion), StartsWith(kAnswer));
    }
}

TEST_P(WasiNnSharing, ALibraryCanBeClosedWhileItsBackendLives) {
    void* ctx = nullptr;
    {
        Host host(*library);
        host.open(host.load());
        ctx = host.release();
    }
    library.emplace(GetParam());
    EXPECT_THAT(library->statistics(ctx), HasSubstr(R"("contexts":1)"));
    EXPECT_EQ(library->deinit_backend(ctx), 0);
}

TEST_P(WasiNnSharing, BothLibrariesServeOneProcessAndShareTheModel) {
    const Library other(GetParam() == Abi::backend ? Abi::llamacpp : Abi::backend);
    const Host here(*library), there(other);
    const std::uint32_t context = here.open(here.load()), across = there.open(there.load());
    EXPECT_THAT(here.ask(context, kQuestion), StartsWith(kAnswer));
    EXPECT_THAT(there.ask(across, kQuestion), StartsWith(kAnswer));
    EXPECT_THAT(other.statistics(there.ctx()), HasSubstr(R"("models":1)"));
}

TEST_P(WasiNnSharing, ConcurrentThreadsGetTheirOwnAnswers) {
    const Host host(*library);
    const std::uint32_t graph = host.load();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            const std::uint32_t context = host.open(graph);
            const std::string word = "word" + std::to_string(i);
            for (int round = 0; round < 3; ++round)
                EXPECT_EQ(host.ask(context, kQuestion, R"({"grammar": "root ::= \")" + word + R"(\""})"),
                          word);
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_P(WasiNnSharing, RunInferenceAnswersItsOwnPromptWhateverOtherThreadsSet) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) EXPECT_EQ(library->set_input(host.ctx(), context, 0, "What is 4+4?"), 0);
    });
    for (int round = 0; round < 50 && !HasFailure(); ++round)
        EXPECT_THAT(host.ask(context, kQuestion, R"({"history": false})"), testing::StartsWith(kAnswer));
    stop = true;
    other.join();
}

}  // namespace
}  // namespace headrace::wasi_nn_test
