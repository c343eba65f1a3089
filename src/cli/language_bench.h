#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/report.h"
#include "headrace/language_model.h"

namespace headrace::cli {

struct LanguageBenchOptions {
    std::string model, scenario = "streams";
    Parameters parameters;
    int prompt = 512, generate = 64, rounds = 3, threads = 0;
    std::vector<int> streams = {1, 8};
    JsonOption json;
};

/// Prompt tokens and generated tokens a second, for each number of streams: medians of the rounds.
Status bench_language_model(const LanguageBenchOptions& options);

}  // namespace headrace::cli
