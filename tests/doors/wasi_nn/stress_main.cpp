/// Stresses a service of language models and prints what came of it; fails when anything went wrong.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "context_stress.h"

int main(int argc, char** argv) {
    using namespace headrace::wasi_nn;
    StressOptions options;
    double growth = 2;
    bool no_swaps = false;
    CLI::App app{"Many sessions, cancels, swaps and bad inputs at once; every answer is checked."};
    app.add_option("--requests", options.requests);
    app.add_option("--sessions", options.sessions)->check(CLI::Range(1, 400));
    app.add_option("--threads", options.threads)->check(CLI::Range(1, 256));
    app.add_option("--seconds", options.seconds, "ends then, in place of --requests");
    app.add_option("--seed", options.seed);
    app.add_option(
        "--growth", growth,
        "per cent that the resident memory, and what is held of the heap, may grow in the second half");
    app.add_flag("--no-swaps", no_swaps);
    CLI11_PARSE(app, argc, argv);
    options.swaps = !no_swaps;
    const StressReport report = run_stress(options);
    const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    const auto growth_of = [&](std::size_t StressReport::Memory::*kind) {
        const double middle = mib(report.memory[1].*kind), end = mib(report.memory[3].*kind);
        return middle > 0 ? 100 * (end - middle) / middle : 0;
    };
    const auto print_memory = [&](const char* name, std::size_t StressReport::Memory::*kind) {
        if (report.memory[3].*kind == 0) return std::printf("%s: not measured under a sanitizer\n", name);
        std::printf("%s after each quarter:", name);
        for (const StressReport::Memory& memory : report.memory) std::printf(" %.2f", mib(memory.*kind));
        return std::printf(" MiB, %+.2f %% in the second half\n", growth_of(kind));
    };
    std::printf(
        "%d requests of %d sessions in %.1f s: %d answers, %d cancelled, %d timed out, %d refused, %d swaps\n"
        "%d near ties (%.3f %% of the answers)\n"
        "%d faults, seed %llu\n",
        report.requests, options.sessions, report.seconds, report.answers, report.cancelled, report.timed_out,
        report.refused, report.swaps, report.near_ties,
        100.0 * report.near_ties / std::max(report.answers, 1), report.fault_count,
        static_cast<unsigned long long>(options.seed));
    print_memory("resident", &StressReport::Memory::resident);
    print_memory("held of the heap", &StressReport::Memory::allocated);
    for (const std::string& fault : report.faults) std::printf("  %s\n", fault.c_str());
    return report.fault_count > 0 || !report.has_few_near_ties() ||
           growth_of(&StressReport::Memory::resident) > growth ||
           growth_of(&StressReport::Memory::allocated) > growth;
}
