#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/language_bench.h"
#include "llm/engine/engine.h"

namespace headrace::cli {

struct BenchRequest {
    llm::Tokens prompt;
    int generate = 16;
    bool reuse = true;
    bool speculate = false;
    llm::Priority priority = llm::Priority::normal;
    std::string owner = "bench";
};
Result<std::shared_ptr<llm::Generation>> submit(llm::Engine& engine, const BenchRequest& request);

double seconds_since(llm::Clock::time_point start);
llm::Tokens random_prompt(const llm::Engine& engine, int size, uint32_t seed);

/// One of the scenarios besides "streams": what it measured, printed and as JSON.
Result<nlohmann::json> bench_scenario(llm::Engine& engine, const LanguageBenchOptions& options);

}  // namespace headrace::cli
