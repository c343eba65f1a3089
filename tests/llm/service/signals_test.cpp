#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "headrace/language_model.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGPIPE};
std::atomic<int> g_signals = 0;

using Handlers = std::array<struct sigaction, 32>;
Handlers current_handlers() {
    Handlers handlers{};
    for (int signal = 1; signal < 32; ++signal)
        sigaction(signal, nullptr, &handlers[static_cast<std::size_t>(signal)]);
    return handlers;
}
bool same(const Handlers& a, const Handlers& b) {
    for (std::size_t i = 1; i < a.size(); ++i)
        if (a[i].sa_handler != b[i].sa_handler || a[i].sa_flags != b[i].sa_flags) return false;
    return true;
}

/// A host: it handles signals itself, without SA_RESTART, so that system calls are broken off. Returns what
/// went wrong.
const char* serve_under_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++g_signals; };
    for (const int signal : kSignals) sigaction(signal, &action, nullptr);
    const Handlers before = current_handlers();
    std::atomic<bool> over = false;
    std::thread sender([&] {
        for (std::size_t i = 0; !over; ++i) {
            kill(getpid(), kSignals[i % kSignals.size()]);
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
    });
    const char* wrong = nullptr;
    const ModelOptions options{
        .parameters = {
            {"temp", 0}, {"n_predict", 24}, {"threads", 1}, {"n_ctx", 384}, {"log_level", "none"}}};
    try {
        LanguageModel model = LanguageModel::load(tiny_model(), options);
        for (int i = 0; i < 6 && !wrong; ++i) {
            if (model.conversation().say("What is 2+3?").text != "2+3=5") wrong = "a wrong answer";
            model.replace(tiny_model(), options);
        }
    } catch (const Exception&) {
        wrong = "the model cannot be loaded, used or swapped";
    }
    over = true;
    sender.join();
    if (!same(before, current_handlers())) return "a handler was replaced";
    if (g_signals < 10) return "too few signals arrived";
    return wrong;
}

// In a process of its own: the handlers are its.
TEST(SignalsThread, LeaveLoadsAnswersAndSwapsAndTheHostsHandlersAlone) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const char* wrong = serve_under_signals();
            if (wrong) std::fprintf(stderr, "%s\n", wrong);
            std::_Exit(wrong ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace headrace::llm
