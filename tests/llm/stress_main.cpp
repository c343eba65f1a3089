/// Stresses a service of language models and prints what came of it; fails when anything went wrong.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "stress.h"

int main(int argc, char** argv) {
    using namespace headrace::llm;
    StressOptions options;
    double growth = 2;
    bool no_swaps = false;
    CLI::App app{"Many sessions, cancels, swaps and bad inputs at once; every answer is checked."};
    app.add_option("--requests", options.requests);
    app.add_option("--sessions", options.sessions)->check(CLI::Range(1, 400));
    app.add_option("--threads", options.threads)->check(CLI::Range(1, 256));
    app.add_option("--seconds", options.seconds, "ends then, in place of --requests");
    app.add_option("--seed", options.seed);
    app.add_option("--growth", growth, "per cent that the resident memory may grow after the warm-up");
    app.add_flag("--no-swaps", no_swaps);
    CLI11_PARSE(app, argc, argv);
    options.swaps = !no_swaps;
    const StressReport report = run_stress(options);
    const double before = static_cast<double>(report.resident_before) / (1 << 20);
    const double after = static_cast<double>(report.resident_after) / (1 << 20);
    std::printf(
        "%d requests of %d sessions in %.1f s: %d answers, %d cancelled, %d timed out, %d refused, %d swaps\n"
        "resident: %.2f MiB after the warm-up, %.2f MiB at the end (%+.2f %%)\n%d faults, seed %llu\n",
        report.requests, options.sessions, report.seconds, report.answers, report.cancelled, report.timed_out,
        report.refused, report.swaps, before, after, 100 * (after - before) / before, report.fault_count,
        static_cast<unsigned long long>(options.seed));
    for (const std::string& fault : report.faults) std::printf("  %s\n", fault.c_str());
    return report.fault_count > 0 || after > before * (1 + growth / 100);
}
