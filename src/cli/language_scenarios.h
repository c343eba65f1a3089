#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/language_bench.h"
#include "llm/engine/engine.h"

namespace headrace::cli {

/// What is timed, and what its requests choose besides what a scenario says.
struct Bench {
    llm::Engine& engine;
    llm::RequestSettings defaults;
};

struct BenchRequest {
    llm::Tokens prompt;
    int generate = 16;
    bool reuse = true;
    bool speculate = false;
    llm::Priority priority = llm::Priority::normal;
    std::string owner = "bench";
};
Result<std::shared_ptr<llm::Generation>> submit(const Bench& bench, const BenchRequest& request);

double seconds_since(llm::Clock::time_point start);
llm::Tokens random_prompt(const llm::Engine& engine, int size, std::uint32_t seed);

struct Measured {
    std::string text;  ///< lines
    nlohmann::json value;
};

/// One of the scenarios besides "streams".
Result<Measured> bench_scenario(const Bench& bench, const LanguageBenchOptions& options);

}  // namespace headrace::cli
