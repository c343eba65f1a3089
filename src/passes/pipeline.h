#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace headrace {

struct PassOptions {
    std::set<std::string> disabled;  ///< names of passes to leave out
    std::string stop_after;          ///< the last pass to run; empty: all run
#ifdef NDEBUG
    bool verify = false;  ///< verify the graph after every pass
#else
    bool verify = true;
#endif
    /// Called after every pass that ran.
    std::function<void(std::string_view pass, const Graph& graph)> observe;
    PassContext context;
};

/// Every pass of this folder, in the order in which they run.
std::span<const Pass> all_passes();
/// Null if no pass is called so.
const Pass* find_pass(std::string_view name);
/// Each behind those that it must follow; where several could be next, the first by name. Errors: a pass that
/// follows one that is not among them, or itself.
Result<std::vector<Pass>> in_order(std::vector<Pass> passes);

/// The one gate through which passes run: switches, times and verifies them. One report for each of
/// all_passes(). Errors: a name in the options that is no pass; what a pass or verify() reports, within the
/// pass's name. The graph is unusable after an error.
Result<std::vector<PassReport>> run_passes(Graph& graph, const PassOptions& options = {});

}  // namespace headrace
