#include "fuzz/fuzz_main.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <random>

namespace headrace::fuzz {

int fuzz_main(int argc, char** argv, const std::string& about, const std::vector<Target>& targets) {
    CLI::App app{about};
    std::string names;
    for (const Target& target : targets) names += (names.empty() ? "" : ", ") + target.name;
    double seconds = 60;
    std::uint64_t seed = std::random_device()();
    std::string wanted;
    bool print = false;
    long long iteration = -1;
    app.add_option("--seconds", seconds, "for each loader");
    app.add_option("--seed", seed);
    app.add_option("--target", wanted, names + "; all unless given");
    app.add_option("--iteration", iteration, "repeat this one only");
    app.add_flag("--print", print, "print the repeated iteration's input");
    CLI11_PARSE(app, argc, argv);
    for (const Target& target : targets) {
        if (!wanted.empty() && wanted != target.name) continue;
        if (iteration >= 0) {
            if (print)
                for (const std::string& part : mutated(target, seed, static_cast<std::uint64_t>(iteration)))
                    std::cout << part << "\n----\n" << std::flush;
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
    return 0;
}

}  // namespace headrace::fuzz
