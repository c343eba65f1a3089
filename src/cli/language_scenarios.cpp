#include "cli/language_scenarios.h"

#include <algorithm>
#include <thread>

#include "cli/statistics.h"

namespace headrace::cli {
namespace {

using llm::Generation;

Result<double> time_of(const Bench& bench, const BenchRequest& request) {
    const auto start = llm::Clock::now();
    HR_ASSIGN(const std::shared_ptr<Generation> generation, submit(bench, request));
    generation->wait();
    return seconds_since(start);
}

/// The time to the first token.
Result<double> first_token(const Bench& bench, BenchRequest request) {
    request.generate = 1;
    return time_of(bench, request);
}

llm::Tokens joined(llm::Tokens start, const llm::Tokens& end) {
    start.insert(start.end(), end.begin(), end.end());
    return start;
}

/// Four sessions with 800 tokens in common, at once, against one; and a prompt of 1,000 that was read before.
Result<Measured> prefix(const Bench& bench, const LanguageBenchOptions& options) {
    std::vector<double> one, four, cold, warm;
    std::uint32_t seed = 1000;
    for (int round = 0; round < options.rounds; ++round) {
        bench.engine.clear_cache();
        llm::Tokens shared = random_prompt(bench.engine, 800, seed++);
        HR_ASSIGN(const double alone,
                  time_of(bench, {.prompt = joined(shared, random_prompt(bench.engine, 20, seed++))}));
        one.push_back(alone);
        bench.engine.clear_cache();
        shared = random_prompt(bench.engine, 800, seed++);
        std::vector<std::shared_ptr<Generation>> running;
        const auto start = llm::Clock::now();
        for (int i = 0; i < 4; ++i) {
            BenchRequest request{.prompt = joined(shared, random_prompt(bench.engine, 20, seed++)),
                                 .owner = std::to_string(i)};
            HR_ASSIGN(auto generation, submit(bench, request));
            running.push_back(std::move(generation));
        }
        for (auto& generation : running) generation->wait();
        four.push_back(seconds_since(start));
        bench.engine.clear_cache();
        const BenchRequest thousand{.prompt = random_prompt(bench.engine, 1000, seed++)};
        HR_ASSIGN(const double first, first_token(bench, thousand));
        HR_ASSIGN(const double again, first_token(bench, thousand));
        cold.push_back(first);
        warm.push_back(again);
    }
    const double a = median(one), b = median(four), first = median(cold), again = median(warm);
    return Measured{fmt::format("one session {:.3f} s, four that share 800 tokens {:.3f} s: {:.2f} times\n"
                                "first token of 1000: cold {:.3f} s, seen before {:.3f} s: 1/{:.0f}\n",
                                a, b, b / a, first, again, first / again),
                    {{"one_s", a}, {"four_s", b}, {"first_cold_s", first}, {"first_seen_s", again}}};
}

/// A prompt of 1,000 tokens arrives while another stream generates: that stream's longest pause.
Result<Measured> stall(const Bench& bench, const LanguageBenchOptions& options) {
    std::vector<double> pauses, firsts, alone;
    std::uint32_t seed = 2000;
    for (int round = 0; round < options.rounds; ++round) {
        HR_ASSIGN(const double quiet,
                  first_token(bench, {.prompt = random_prompt(bench.engine, 1000, seed++), .reuse = false}));
        alone.push_back(quiet);
        HR_ASSIGN(const auto stream, submit(bench, {.prompt = random_prompt(bench.engine, 16, seed++),
                                                    .generate = 1000,
                                                    .owner = "stream"}));
        for (int i = 0; i < 8; ++i) HR_TRY(stream->next());
        double first = 0;
        std::thread newcomer([&] {
            if (const auto time =
                    first_token(bench, {.prompt = random_prompt(bench.engine, 1000, seed++), .reuse = false});
                time.ok())
                first = time.value();
        });
        double longest = 0;
        auto last = llm::Clock::now();
        const auto start = last;
        while (seconds_since(start) < 1.2 * quiet) {
            HR_ASSIGN(const Generation::Piece piece, stream->next());
            longest = std::max(longest, seconds_since(last));
            last = llm::Clock::now();
            if (piece.done) break;
        }
        newcomer.join();
        stream->cancel();
        stream->wait();
        pauses.push_back(longest * 1000);
        firsts.push_back(first);
    }
    const double longest = *std::max_element(pauses.begin(), pauses.end());
    return Measured{
        fmt::format(
            "longest pause {:.0f} ms; first token of 1000 beside the stream {:.2f} s, alone {:.2f} s\n",
            longest, median(firsts), median(alone)),
        {{"longest_pause_ms", longest}, {"first_s", median(firsts)}, {"first_alone_s", median(alone)}}};
}

/// High-priority requests, one after the other, on an idle engine and under a full load of low priority.
Result<Measured> priority(const Bench& bench, const LanguageBenchOptions& options) {
    std::uint32_t seed = 3000;
    const auto measure = [&](std::vector<double>& times) -> Status {
        for (int i = 0; i < 8 * options.rounds; ++i) {
            BenchRequest request{.prompt = random_prompt(bench.engine, 32, seed++),
                                 .generate = 16,
                                 .reuse = false,
                                 .priority = llm::Priority::high};
            HR_ASSIGN(const double time, time_of(bench, request));
            times.push_back(time * 1000);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        return success();
    };
    std::vector<double> idle, loaded;
    HR_TRY(measure(idle));
    std::vector<std::shared_ptr<Generation>> low;
    for (int i = 0; i < 32; ++i) {
        BenchRequest request{.prompt = random_prompt(bench.engine, 64, seed++),
                             .generate = 400,
                             .reuse = false,
                             .priority = llm::Priority::low,
                             .owner = std::to_string(i)};
        HR_ASSIGN(auto generation, submit(bench, request));
        low.push_back(std::move(generation));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    HR_TRY(measure(loaded));
    for (auto& generation : low) generation->cancel();
    for (auto& generation : low) generation->wait();
    const double before = percentile(idle, 0.95), under = percentile(loaded, 0.95);
    return Measured{fmt::format("high priority p95: idle {:.0f} ms, under load {:.0f} ms: {:.2f} times\n",
                                before, under, under / before),
                    {{"idle_p95_ms", before}, {"loaded_p95_ms", under}}};
}

/// The same prompt, which repeats itself, with and without drafts.
Result<Measured> speculation(const Bench& bench, const LanguageBenchOptions& options) {
    llm::Tokens prompt;
    const llm::Tokens phrase = random_prompt(bench.engine, 24, 4000);
    for (int i = 0; i < 16; ++i) prompt = joined(std::move(prompt), phrase);
    std::vector<double> plain, drafted;
    double acceptance = 0;
    for (int round = 0; round < options.rounds; ++round)
        for (const bool speculate : {false, true}) {
            HR_ASSIGN(
                const auto generation,
                submit(bench, {.prompt = prompt, .generate = options.generate, .speculate = speculate}));
            const llm::Outcome& outcome = generation->wait();
            (speculate ? drafted : plain)
                .push_back(static_cast<double>(outcome.tokens.size()) * 1000 / outcome.generate_ms);
            if (outcome.drafted) acceptance = static_cast<double>(outcome.accepted) / outcome.drafted;
        }
    return Measured{
        fmt::format("repetitive text: {:.1f} tokens/s, with drafts {:.1f}: {:.2f} times, {:.0f} % "
                    "accepted\n",
                    median(plain), median(drafted), median(drafted) / median(plain), 100 * acceptance),
        {{"plain_per_second", median(plain)},
         {"drafted_per_second", median(drafted)},
         {"acceptance", acceptance}}};
}

}  // namespace

Result<Measured> bench_scenario(const Bench& bench, const LanguageBenchOptions& options) {
    HR_TRY(first_token(
        bench, {.prompt = random_prompt(bench.engine, 32, 1), .reuse = false}));  // touches the weights
    if (options.scenario == "prefix") return prefix(bench, options);
    if (options.scenario == "stall") return stall(bench, options);
    if (options.scenario == "priority") return priority(bench, options);
    return speculation(bench, options);
}

}  // namespace headrace::cli
