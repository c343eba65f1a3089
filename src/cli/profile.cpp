#include "cli/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "cli/statistics.h"

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

void print_profile(const std::vector<NodeProfile>& nodes, std::size_t rows) {
    std::printf("%10s %7s %10s %10s %10s %9s %8s  %-22s %s\n", "us", "share", "MFLOP", "MB", "GFLOP/s",
                "GB/s", "limit", "kernel", "node");
    std::map<std::string, double> by_implementation;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const NodeProfile& n = nodes[i];
        by_implementation[n.implementation] += n.share;
        if (i < rows)
            std::printf("%10.1f %6.1f%% %10.3f %10.3f %10.1f %9.1f %7.0f%%  %-22s %s\n", n.us, 100 * n.share,
                        n.mflop, n.mb, n.gflops, n.gb_per_s, 100 * n.limit, n.implementation.c_str(),
                        n.title.c_str());
    }
    if (nodes.size() > rows) std::printf("%10s  %zu more nodes\n", "...", nodes.size() - rows);
    for (const auto& [name, share] : by_implementation)
        std::printf("%9.1f %%  in %s\n", 100 * share, name.c_str());
}

}  // namespace headrace::cli
