#include "cli/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/peer.h"
#include "cli/prepared.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "cli/tune.h"

namespace headrace::cli {
namespace {

/// An option that only runs without a peer know; "" if none is given.
std::string_view option_without_peer(const BenchOptions& options) {
    const BenchOptions defaults;
    if (options.runs != defaults.runs) return "--runs";
    if (options.warmup != defaults.warmup) return "--warmup";
    if (!options.compile.packed_cache.empty()) return "--packed-cache";
    if (!options.compile.tuning.empty()) return "--tuning";
    return options.compile.disabled_passes.empty() ? "" : "--without-pass";
}

Status time_alone(const BenchOptions& options) {
    HR_ASSIGN(auto prepared, Prepared::make(options));
    for (int i = 0; i < options.warmup; ++i) prepared->run();
    std::vector<double> ms;
    Progress progress("timing");
    for (int i = 0; i < options.runs; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        prepared->run();
        ms.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
        progress.show(ms.size(), static_cast<std::size_t>(options.runs));
    }
    const double typical = median(ms), least = *std::min_element(ms.begin(), ms.end()),
                 most = *std::max_element(ms.begin(), ms.end());
    const RunStats stats = prepared->session().stats();
    const double flops = std::accumulate(stats.nodes.begin(), stats.nodes.end(), 0.0,
                                         [](double sum, const NodeStats& n) { return sum + n.flops; });
    return report(
        fmt::format("median {:.4f} ms  min {:.4f}  max {:.4f}  ({} runs, {})  {:.2f} GFLOP/s\n", typical,
                    least, most, options.runs, threads_text(stats.threads), flops / typical / 1e6),
        {{"graph", options.graph},
         {"median_ms", typical},
         {"min_ms", least},
         {"max_ms", most},
         {"runs", options.runs},
         {"threads", stats.threads},
         {"gflops_per_second", flops / typical / 1e6}},
        options.json);
}

Status check(const BenchOptions& options) {
    if (options.tune && options.profile)
        return invalid("--tune and --profile measure in two ways; choose one");
    return success();
}

Status bench_graph(const BenchOptions& options) {
    check_usage(check(options));
    if (options.tune) return tune_graph(options);
    if (options.profile) return profile_graph(options);
    const std::string_view alone = option_without_peer(options);
    if (!alone.empty() && options.peer == "onnxruntime")
        return invalid("{} is for runs without a peer; give it with --peer none", alone);
    if (!alone.empty() && options.peer == "auto")
        tell_user(fmt::format("no comparison: {} is for runs without a peer", alone));
    if (options.peer != "none" && alone.empty()) {
        HR_ASSIGN(const bool is_compared, compare_with_peer(options));
        if (is_compared) return success();
        if (options.peer == "onnxruntime") return unsupported("there is nothing to compare with");
    }
    return time_alone(options);
}

}  // namespace

void add_bench(CLI::App& app, Status& status) {
    auto* command =
        app.add_subcommand("bench", "time a graph or an ONNX model, beside ONNX Runtime where Python has it")
            ->group(kGraphs);
    auto options = std::make_shared<BenchOptions>();
    add_graph_options(*command, *options);
    constexpr const char* kMeasuring = "Measuring";
    const auto add = [&](const char* name, auto& value, const char* help) {
        return command->add_option(name, value, help)->group(kMeasuring)->type_name("N");
    };
    command
        ->add_flag("--profile", options->profile,
                   "time each node, beside the machine's limits of computing and reading")
        ->group(kMeasuring);
    command
        ->add_flag("--tune", options->tune,
                   "time every way to run each node, and keep what is faster here for later starts")
        ->group(kMeasuring);
    add("--peer", options->peer, "what to compare with; default: auto, ONNX Runtime if Python has it")
        ->check(CLI::IsMember({"auto", "onnxruntime", "none"}))
        ->type_name("");
    add("--rounds", options->rounds, "rounds in alternation with the peer; default: 10")->check(at_least(1));
    add("--seconds", options->seconds, "length of a round of each; default: 0.2");
    add("--runs", options->runs, "timed runs without a peer; default: 50")->check(at_least(1));
    add("--warmup", options->warmup, "runs before those; default: 5");
    add_json_option(*command, options->json);
    command->get_option("--json")->group(kMeasuring);
    command->footer(
        "Examples:\n"
        "    headrace bench model.onnx --threads 2\n"
        "    headrace bench model.onnx --profile\n"
        "    headrace bench model.hrg --peer none --json result.json");
    command->final_callback([=, &status] { run_command(status, [&] { return bench_graph(*options); }); });
}

}  // namespace headrace::cli
