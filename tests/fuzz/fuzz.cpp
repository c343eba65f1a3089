#include "fuzz/fuzz.h"

#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "fuzz/mutate.h"

namespace headrace::fuzz {
namespace {

/// The most seconds of one iteration: of the processor's time, and of the clock's.
constexpr unsigned kMostSeconds = 30, kMostSecondsInAll = 600;

/// For signal handlers, which may call next to nothing.
char g_iteration[160];
std::size_t g_iteration_size = 0;

extern "C" void report_iteration() {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, g_iteration, g_iteration_size);
}
void on_signal(int signal) {
    report_iteration();
    std::signal(signal, SIG_DFL);
    std::raise(signal == SIGALRM || signal == SIGPROF ? SIGABRT : signal);
}
/// The sanitizers end the process themselves.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*)());

void install_handlers() {
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(report_iteration);
    else
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
    for (const int signal : {SIGABRT, SIGALRM, SIGPROF}) std::signal(signal, on_signal);
}

void limit_time(unsigned busy, unsigned in_all) {
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = busy, .tv_usec = 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr);
    ::alarm(in_all);
}

}  // namespace

Parts mutated(const Target& target, std::uint64_t seed, std::uint64_t iteration) {
    Mutator mutator(seed, iteration);
    Parts parts = target.corpus[mutator.below(target.corpus.size())];
    if (target.mutate) return target.mutate(parts, mutator);
    const Parts& other = target.corpus[mutator.below(target.corpus.size())];
    const std::size_t which =
        parts.size() > 1 && mutator.below(3) == 0 ? 1 + mutator.below(parts.size() - 1) : 0;
    parts[which] = mutator.mutate(std::move(parts[which]), other[which], target.words);
    return parts;
}

bool fuzz_once(const Target& target, std::uint64_t seed, std::uint64_t iteration) {
    g_iteration_size = static_cast<std::size_t>(
        std::snprintf(g_iteration, sizeof(g_iteration), "fuzz: --target %s --seed %llu --iteration %llu\n",
                      target.name.c_str(), static_cast<unsigned long long>(seed),
                      static_cast<unsigned long long>(iteration)));
    limit_time(kMostSeconds, kMostSecondsInAll);
    bool accepted = false;
    try {
        accepted = target.load(mutated(target, seed, iteration));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", target.name.c_str(), e.what());
        std::abort();
    }
    limit_time(0, 0);
    return accepted;
}

Outcome fuzz_for(const Target& target, std::uint64_t seed, double seconds) {
    install_handlers();
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
        outcome.accepted += fuzz_once(target, seed, outcome.iterations++);
    return outcome;
}

}  // namespace headrace::fuzz
