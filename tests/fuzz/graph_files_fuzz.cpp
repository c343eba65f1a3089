/// Fuzzes the loaders of graph files: our own, `.webnn` text and JSON with its weights.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>

#include "fuzz/graph_file_targets.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    CLI::App app{"Fuzzes the loaders of graph files."};
    double seconds = 60;
    std::uint64_t seed = std::random_device()();
    std::string wanted;
    bool print = false;
    long long iteration = -1;
    app.add_option("--seconds", seconds, "for each loader");
    app.add_option("--seed", seed);
    app.add_option("--target", wanted, "graph, text or json; all unless given");
    app.add_option("--iteration", iteration, "repeat this one only");
    app.add_flag("--print", print, "print the repeated iteration's input");
    CLI11_PARSE(app, argc, argv);
    for (const Target& target : graph_file_targets()) {
        if (!wanted.empty() && wanted != target.name) continue;
        if (iteration >= 0) {
            if (print)
                for (const std::string& part : mutated(target, seed, static_cast<std::uint64_t>(iteration)))
                    std::printf("%s\n----\n", part.c_str());
            std::fflush(stdout);
            std::printf("%s\n", fuzz_once(target, seed, static_cast<std::uint64_t>(iteration)) ? "loaded"
                                                                                               : "refused");
            continue;
        }
        const Outcome outcome = fuzz_for(target, seed, seconds);
        std::printf("%-6s %9llu inputs, %llu loaded, seed %llu\n", target.name.c_str(),
                    static_cast<unsigned long long>(outcome.iterations),
                    static_cast<unsigned long long>(outcome.accepted), static_cast<unsigned long long>(seed));
        std::fflush(stdout);
    }
}
