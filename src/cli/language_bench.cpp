#include "cli/language_bench.h"

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include "cli/language.h"
#include "cli/language_scenarios.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "cli/table.h"
#include "llm/engine/registry.h"

namespace headrace::cli {

using llm::Engine;
using llm::Generation;

double seconds_since(llm::Clock::time_point start) {
    return std::chrono::duration<double>(llm::Clock::now() - start).count();
}

llm::Tokens random_prompt(const Engine& engine, int size, std::uint32_t seed) {
    std::mt19937 random(seed);
    llm::Tokens tokens;
    while (std::cmp_less(tokens.size(), size)) {
        const auto token =
            static_cast<llama_token>(random() % static_cast<std::uint32_t>(engine.model().vocabulary_size()));
        if (!engine.model().ends_answer(token)) tokens.push_back(token);
    }
    return tokens;
}

namespace {

/// The time in which all streams read a prompt of their own and generate that many tokens.
Result<double> run_streams(const Bench& bench, int streams, int prompt, int generate, std::uint32_t& seed) {
    std::vector<std::shared_ptr<Generation>> running;
    const auto start = llm::Clock::now();
    for (int i = 0; i < streams; ++i) {
        BenchRequest request{
            .prompt = random_prompt(bench.engine, prompt, seed++), .generate = generate, .reuse = false};
        HR_ASSIGN(std::shared_ptr<Generation> generation, submit(bench, request));
        running.push_back(std::move(generation));
    }
    for (auto& generation : running)
        if (const llm::Outcome& outcome = generation->wait(); outcome.failed()) return outcome.error();
    return seconds_since(start);
}

/// The traffic with all hosts that the model is on.
remote::Traffic traffic_of(const Engine& engine) {
    remote::Traffic sum;
    for (const auto& host : engine.model().hosts()) {
        const remote::Traffic one = host->traffic();
        sum.sent += one.sent;
        sum.received += one.received;
        sum.round_trips += one.round_trips;
    }
    return sum;
}

nlohmann::json per_token(const remote::Traffic& before, const remote::Traffic& after, double tokens) {
    const auto share = [&](std::uint64_t begin, std::uint64_t end) {
        return static_cast<double>(end - begin) / tokens;
    };
    return {{"sent_bytes", share(before.sent, after.sent)},
            {"received_bytes", share(before.received, after.received)},
            {"round_trips", share(before.round_trips, after.round_trips)}};
}

nlohmann::json hosts_of(const Engine& engine) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& host : engine.model().hosts())
        list.push_back({{"name", host->name()},
                        {"round_trip_ms", host->probe().round_trip_ms},
                        {"bytes_per_second", host->probe().bytes_per_second}});
    return list;
}

Result<Measured> bench_streams(const Bench& bench, const LanguageBenchOptions& options) {
    Progress progress("timing");
    std::size_t done = 0;
    const std::size_t all = options.streams.size() * static_cast<std::size_t>(options.rounds);
    std::uint32_t seed = 1;
    // Touches the weights and the memory of a step, as llama-bench's warm-up does.
    HR_TRY(run_streams(bench, 1, options.prompt, 4, seed));
    nlohmann::json results = nlohmann::json::array();
    Table table({{"streams", true}, {"prompt tokens/s", true}, {"generated/s", true}});
    for (const int streams : options.streams) {
        std::vector<double> prompt_rate, generate_rate;
        nlohmann::json traffic;
        for (int round = 0; round < options.rounds; ++round) {
            HR_ASSIGN(const double reading, run_streams(bench, streams, options.prompt, 0, seed));
            prompt_rate.push_back(streams * options.prompt / reading);
            HR_ASSIGN(const double one, run_streams(bench, streams, 1, 1, seed));
            const remote::Traffic before = traffic_of(bench.engine);
            HR_ASSIGN(const double together, run_streams(bench, streams, 1, options.generate + 1, seed));
            traffic = per_token(before, traffic_of(bench.engine), streams * (options.generate + 1));
            generate_rate.push_back(streams * options.generate / (together - one));
            progress.show(++done, all);
        }
        table.add({std::to_string(streams), fmt::format("{:.1f}", median(prompt_rate)),
                   fmt::format("{:.1f}", median(generate_rate))});
        results.push_back({{"streams", streams},
                           {"prompt_per_second", median(prompt_rate)},
                           {"generated_per_second", median(generate_rate)}});
        if (bench.engine.model().hosts().empty()) continue;
        results.back()["per_token"] = std::move(traffic);
        results.back()["hosts"] = hosts_of(bench.engine);
    }
    return Measured{table.text(), std::move(results)};
}

}  // namespace

Result<std::shared_ptr<Generation>> submit(const Bench& bench, const BenchRequest& request) {
    llm::RequestSettings settings = bench.defaults;
    settings.n_predict = request.generate;
    settings.sampling.temp = 0;
    settings.sampling.ignore_eos = true;
    settings.cache_prompt = request.reuse;
    settings.priority = request.priority;
    settings.speculation.enabled = request.speculate;
    return bench.engine.submit({.prompt = request.prompt, .settings = settings, .owner = request.owner});
}

Status bench_language_model(const LanguageBenchOptions& options) {
    HR_ASSIGN(llm::Settings settings, command_settings(options.parameters));
    const int most = *std::max_element(options.streams.begin(), options.streams.end());
    settings.context.n_parallel = std::max(most, 8);
    settings.context.n_ctx = std::max(4096, most * (options.prompt + options.generate + 16));
    if (options.threads > 0) settings.context.n_threads = options.threads;
    HR_ASSIGN(const llm::Runner runner, llm::open_runner(options.model, settings));
    if (!runner.engine) return unsupported("{} gives embeddings, and no text", options.model);
    const Bench bench{*runner.engine, settings.request};
    HR_ASSIGN(const Measured measured,
              options.scenario == "streams" ? bench_streams(bench, options) : bench_scenario(bench, options));
    return report(measured.text, measured.value, options.json);
}

}  // namespace headrace::cli
