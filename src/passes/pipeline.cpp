#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "ir/verify.h"
#include "passes/order.h"

#include "pass_includes.inc"

namespace headrace {
namespace {

std::vector<Pass> found_passes() {
    return {
#include "pass_rows.inc"
    };
}

Status check_name(const std::string& name) {
    if (find_pass(name)) return success();
    std::string known;
    for (const Pass& pass : all_passes()) known.append(known.empty() ? "" : ", ").append(pass.name);
    return invalid("no pass is called '{}'; the passes are {}", name, known);
}

Result<PassReport> run_pass(const Pass& pass, Graph& graph, const PassOptions& options) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto counts = pass.run(graph, options.context);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!counts.ok()) return counts.error().within(pass.name);
    if (options.verify) {
        if (auto status = verify(graph); !status.ok())
            return status.error().within(fmt::format("the graph that {} left", pass.name));
    }
    if (options.observe) options.observe(pass.name, graph);
    return PassReport{std::string(pass.name), std::move(counts).value(), ms, true};
}

}  // namespace

Result<std::vector<Pass>> in_order(std::vector<Pass> passes) { return ordered(std::move(passes), "pass"); }

std::span<const Pass> all_passes() {
    static const std::vector<Pass> passes = in_order(found_passes()).value();
    return passes;
}

const Pass* find_pass(std::string_view name) {
    const auto passes = all_passes();
    const auto found = std::ranges::find(passes, name, &Pass::name);
    return found == passes.end() ? nullptr : &*found;
}

Result<std::vector<PassReport>> run_passes(Graph& graph, const PassOptions& options) {
    for (const std::string& name : options.disabled) HR_TRY(check_name(name));
    if (!options.stop_after.empty()) HR_TRY(check_name(options.stop_after));
    std::vector<PassReport> reports;
    bool is_stopped = false;
    for (const Pass& pass : all_passes()) {
        if (is_stopped || options.disabled.contains(std::string(pass.name))) {
            reports.push_back({.name = std::string(pass.name)});
        } else {
            HR_ASSIGN(auto report, run_pass(pass, graph, options));
            reports.push_back(std::move(report));
        }
        is_stopped = is_stopped || pass.name == options.stop_after;
    }
    return reports;
}

}  // namespace headrace
