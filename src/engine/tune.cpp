#include "engine/tune.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <tuple>

#include "base/log.h"
#include "engine/executable.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Reference kernels with more operations are not worth a measurement.
constexpr double kMostReferenceFlops = 1e5;
/// A choice must gain as much for each node, and this part of its time.
constexpr double kLeastGainUs = 0.5, kLeastGain = 0.05;

struct Kind {
    TunedKind report;
    std::vector<NodeChoice> ways;  ///< the rules' first
    std::vector<double> us;        ///< of all nodes of this kind, the least of the runs
};

std::string text_of(const NodeChoice& choice) {
    return choice.implementation + (choice.one_thread ? ", one thread" : "");
}

class Tuner {
public:
    Tuner(const Graph& graph, const CompileOptions& options, std::span<const InputView> inputs,
          std::span<const OutputView> outputs)
        : graph_(graph), options_(options), inputs_(inputs), outputs_(outputs) {
        options_.tuning = "off";
        options_.packed_cache = "off";  // its file would grow by forms that lose
    }

    void find_ways();
    void measure(const std::function<void(double)>& progress);
    TuneReport report(Tuning& stored);

private:
    std::shared_ptr<Executable::Impl> compile_with(const Tuning& tuning) const {
        return value_or_throw(compile_graph(graph_, options_, std::make_shared<const Tuning>(tuning)));
    }
    std::shared_ptr<const Plan> plan_of(Executable::Impl& impl) const {
        ShapeKey shapes;
        for (const InputView& in : inputs_) shapes.emplace_back(in.shape.begin(), in.shape.end());
        return value_or_throw(impl.plan_for(shapes));
    }
    void add_ways(const Plan& plan, std::size_t node, int threads);
    void measure_ways(std::size_t turn);
    void compare(const Tuning& tuned, TuneReport& report) const;

    const Graph& graph_;
    CompileOptions options_;
    std::span<const InputView> inputs_;
    std::span<const OutputView> outputs_;
    std::map<std::string, Kind> kinds_;
    std::vector<std::string> kind_of_node_;  ///< empty: it runs in one way only
};

void Tuner::find_ways() {
    const auto impl = compile_with({});
    if (!impl->device.is_cpu)
        throw Exception(Code::invalid_argument,
                        fmt::format("choices are measured for the CPU; the device is '{}'", options_.device));
    if (!impl->stages.empty())
        throw Exception(
            Code::unsupported,
            "the graph runs in stages, by what it counts or by its branches and loops; choices are "
            "measured of graphs that run at once");
    const auto plan = plan_of(*impl);
    for (std::size_t i = 0; i < plan->nodes.size(); ++i) add_ways(*plan, i, impl->threads());
}

void Tuner::add_ways(const Plan& plan, std::size_t node, int threads) {
    const Node& n = plan.graph.nodes[node];
    const PlanOptions options{.packed_kernels = options_.packed_kernels,
                              .native_ops = options_.native_ops,
                              .low_memory = options_.memory == MemoryUse::low};
    const auto ways = candidates(plan.graph, n, options);
    const std::string kind = kind_of(plan.graph, n, threads);
    kind_of_node_.emplace_back();
    // Nodes without elements have no candidates but the plan's.
    if (name_of(ways.front()) != name_of(plan.nodes[node])) return;
    Kind found;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        const bool is_reference = ways[i].implementation == Implementation::reference;
        if (i > 0 && is_reference && plan.nodes[node].cost.flops > kMostReferenceFlops) continue;
        found.ways.push_back({.implementation = std::string(name_of(ways[i]))});
        if (threads > 1 && ways[i].implementation != Implementation::native)
            found.ways.push_back({.implementation = std::string(name_of(ways[i])), .one_thread = true});
    }
    if (found.ways.size() < 2) return;
    kind_of_node_.back() = kind;
    found.report.title = n.title();
    found.us.assign(found.ways.size(), std::numeric_limits<double>::infinity());
    ++kinds_.try_emplace(kind, std::move(found)).first->second.report.nodes;
}

void Tuner::measure(const std::function<void(double)>& progress) {
    std::size_t turns = 0;
    for (const auto& [kind, found] : kinds_) turns = std::max(turns, found.ways.size());
    // Twice, so that a disturbance spoils one way at most once.
    for (std::size_t turn = 0; turn < 2 * turns; ++turn) {
        if (progress) progress(static_cast<double>(turn) / static_cast<double>(2 * turns));
        measure_ways(turn % turns);
    }
}

/// Profiles runs in which every node takes its turn-th way.
void Tuner::measure_ways(std::size_t turn) {
    constexpr int kLeastRuns = 3, kMostRuns = 40;
    constexpr double kSeconds = 0.5;
    Tuning tuning;
    for (const auto& [kind, found] : kinds_) tuning.set(kind, found.ways[turn % found.ways.size()]);
    const Executable executable(compile_with(tuning));
    Session session(executable);
    session.run(inputs_, outputs_);
    std::vector<double> least(kind_of_node_.size(), std::numeric_limits<double>::infinity());
    const auto start = Clock::now();
    for (int run = 0; run < kLeastRuns || (run < kMostRuns && seconds_since(start) < kSeconds); ++run) {
        session.run(inputs_, outputs_, {.profile = true});
        const RunStats stats = session.stats();
        for (std::size_t i = 0; i < least.size(); ++i)
            least[i] = std::min(least[i], stats.nodes[i].duration_us);
    }
    std::map<std::string, double> totals;
    for (std::size_t i = 0; i < least.size(); ++i)
        if (!kind_of_node_[i].empty()) totals[kind_of_node_[i]] += least[i];
    for (const auto& [kind, us] : totals) {
        Kind& found = kinds_.at(kind);
        double& best = found.us[turn % found.ways.size()];
        best = std::min(best, us);
    }
}

TuneReport Tuner::report(Tuning& stored) {
    TuneReport report;
    report.measured = static_cast<std::int64_t>(kinds_.size());
    Tuning tuned;
    for (auto& [kind, found] : kinds_) {
        const auto best = std::min_element(found.us.begin(), found.us.end()) - found.us.begin();
        const NodeChoice& choice = found.ways[static_cast<std::size_t>(best)];
        const double before = found.us.front(), after = found.us[static_cast<std::size_t>(best)];
        stored.erase(kind);
        if (before - after <
            std::max(before * kLeastGain, kLeastGainUs * static_cast<double>(found.report.nodes)))
            continue;
        tuned.set(kind, choice);
        stored.set(kind, choice);
        found.report.before = text_of(found.ways.front());
        found.report.after = text_of(choice);
        found.report.before_us = before, found.report.after_us = after;
        report.changed.push_back(found.report);
    }
    std::sort(report.changed.begin(), report.changed.end(), [](const TunedKind& a, const TunedKind& b) {
        return a.before_us - a.after_us > b.before_us - b.after_us;
    });
    if (!tuned.empty()) compare(tuned, report);
    return report;
}

/// Nodes that are timed one by one find caches and threads in another state than within a run.
void Tuner::compare(const Tuning& tuned, TuneReport& report) const {
    constexpr std::size_t kRounds = 21;
    constexpr double kSecondsOfRound = 0.05;
    Session by_rule(Executable(compile_with({}))), by_time(Executable(compile_with(tuned)));
    std::vector<double> rule_us, time_us;
    for (std::size_t round = 0; round <= kRounds; ++round) {
        for (auto [session, us] : {std::tuple(&by_rule, &rule_us), std::tuple(&by_time, &time_us)}) {
            const auto start = Clock::now();
            int runs = 0;
            do {
                session->run(inputs_, outputs_);
                ++runs;
            } while (seconds_since(start) < kSecondsOfRound);
            if (round > 0) us->push_back(seconds_since(start) / runs * 1e6);
        }
    }
    report.rounds = static_cast<std::int64_t>(kRounds);
    for (std::size_t i = 0; i < kRounds; ++i) report.faster_rounds += time_us[i] < rule_us[i];
    const auto median = [](std::vector<double>& us) {
        std::nth_element(us.begin(), us.begin() + kRounds / 2, us.end());
        return us[kRounds / 2];
    };
    report.before_us = median(rule_us), report.after_us = median(time_us);
}

}  // namespace

TuneReport tune(const Graph& graph, const CompileOptions& options, std::span<const InputView> inputs,
                std::span<const OutputView> outputs, const std::function<void(double)>& progress) {
    const std::string folder = value_or_throw(tuning_folder(options));
    if (folder.empty())
        throw Exception(Code::invalid_argument, "tuning is off, so there is nowhere to keep choices");
    const std::string path = tuning_file(folder);
    auto known = read_tuning(path);
    if (!known.ok()) HR_LOG(warn, {}, "'{}' is written anew: {}", path, known.error().message);
    Tuning stored = known.ok() ? std::move(known).value() : Tuning();
    Tuner tuner(graph, options, inputs, outputs);
    tuner.find_ways();
    tuner.measure(progress);
    TuneReport report = tuner.report(stored);
    // Two of three rounds: on a busy machine a median alone may favour either by chance.
    const bool is_faster =
        report.after_us < report.before_us && 3 * report.faster_rounds >= 2 * report.rounds;
    if (report.changed.empty() || is_faster) {
        value_or_throw(write_tuning(path, stored));
        report.file = path;
    } else if (!known.ok()) {  // or every later start would report it again
        value_or_throw(write_tuning(path, Tuning()));
    }
    return report;
}

}  // namespace headrace
