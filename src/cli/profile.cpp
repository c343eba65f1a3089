#include "cli/profile.h"

#include <algorithm>
#include <map>
#include <string>

#include "cli/prepared.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "cli/table.h"

namespace headrace::cli {

std::vector<NodeProfile> profile_nodes(const std::vector<RunStats>& runs,
                                       const kernels::MachineLimits& limits) {
    std::vector<NodeProfile> nodes;
    if (runs.empty()) return nodes;
    double total = 0;
    for (std::size_t i = 0; i < runs.front().nodes.size(); ++i) {
        const NodeStats& node = runs.front().nodes[i];
        std::vector<double> times;
        for (const RunStats& run : runs) times.push_back(run.nodes[i].duration_us);
        NodeProfile profile{.title = node.title, .implementation = node.implementation};
        profile.us = median(std::move(times));
        total += profile.us;
        profile.mflop = node.flops / 1e6, profile.mb = node.bytes / 1e6;
        if (profile.us > 0) {
            profile.gflops = node.flops / profile.us / 1e3;
            profile.gb_per_s = node.bytes / profile.us / 1e3;
            profile.limit = std::max(profile.gflops / limits.gflops, profile.gb_per_s / limits.read_gb_per_s);
        }
        nodes.push_back(std::move(profile));
    }
    for (NodeProfile& node : nodes) node.share = total > 0 ? node.us / total : 0;
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const NodeProfile& a, const NodeProfile& b) { return a.us > b.us; });
    return nodes;
}

namespace {

std::string text_of(const std::vector<NodeProfile>& nodes, std::size_t rows) {
    Table table({{"us", true},
                 {"share", true},
                 {"MFLOP", true},
                 {"MB", true},
                 {"GFLOP/s", true},
                 {"GB/s", true},
                 {"limit", true},
                 {"kernel"},
                 {"node"}});
    std::map<std::string, double> by_implementation;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const NodeProfile& n = nodes[i];
        by_implementation[n.implementation] += n.share;
        if (i < rows)
            table.add({fmt::format("{:.1f}", n.us), fmt::format("{:.1f}%", 100 * n.share),
                       fmt::format("{:.3f}", n.mflop), fmt::format("{:.3f}", n.mb),
                       fmt::format("{:.1f}", n.gflops), fmt::format("{:.1f}", n.gb_per_s),
                       fmt::format("{:.0f}%", 100 * n.limit), n.implementation, n.title});
    }
    std::string text = table.text();
    if (nodes.size() > rows) text += fmt::format("... {} more nodes\n", nodes.size() - rows);
    if (std::ranges::any_of(nodes, [](const NodeProfile& n) { return n.limit > 1; }))
        text += "limit over 100%: the operands were in the processor's cache, which is faster than memory\n";
    for (const auto& [name, share] : by_implementation)
        text += fmt::format("{:9.1f} %  in {}\n", 100 * share, name);
    return text;
}

nlohmann::json json_of(const std::vector<NodeProfile>& nodes) {
    nlohmann::json list = nlohmann::json::array();
    for (const NodeProfile& n : nodes)
        list.push_back({{"title", n.title},
                        {"implementation", n.implementation},
                        {"us", n.us},
                        {"share", n.share},
                        {"mflop", n.mflop},
                        {"mb", n.mb},
                        {"gflops_per_second", n.gflops},
                        {"gb_per_second", n.gb_per_s},
                        {"share_of_limit", n.limit}});
    return list;
}

}  // namespace

Status profile_graph(const BenchOptions& options) {
    constexpr std::size_t kRows = 40;
    HR_ASSIGN(auto prepared, Prepared::make(options));
    for (int i = 0; i < options.warmup; ++i) prepared->run();
    std::vector<RunStats> runs;
    {
        Progress progress("timing each node");
        for (int i = 0; i < options.runs; ++i) {
            prepared->run({.profile = true});
            runs.push_back(prepared->session().stats());
            progress.show(runs.size(), static_cast<std::size_t>(options.runs));
        }
    }
    const int threads = runs.front().threads;
    const kernels::MachineLimits limits = kernels::measure_limits(threads);
    const std::vector<NodeProfile> nodes = profile_nodes(runs, limits);
    return report(
        fmt::format("limits of {}: {:.0f} GFLOP/s in f32, {:.1f} GB/s read; medians of {} "
                    "runs, node by node\n",
                    threads_text(threads), limits.gflops, limits.read_gb_per_s, options.runs) +
            text_of(nodes, kRows),
        {{"threads", threads},
         {"runs", options.runs},
         {"limits", {{"gflops_per_second", limits.gflops}, {"read_gb_per_second", limits.read_gb_per_s}}},
         {"nodes", json_of(nodes)}},
        options.json);
}

}  // namespace headrace::cli
