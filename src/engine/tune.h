#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/headrace.h"

namespace headrace {

/// What measuring found for nodes that are alike.
struct TunedKind {
    std::string title;                   ///< of the first
    std::int64_t nodes = 0;              ///< in the graph
    std::string before, after;           ///< implementations by rule and by time
    double before_us = 0, after_us = 0;  ///< of all those nodes together
};

struct TuneReport {
    std::vector<TunedKind> changed;
    std::int64_t measured = 0;                   ///< kinds of nodes that can run in several ways
    double before_us = 0, after_us = 0;          ///< medians of whole runs, in alternation
    std::int64_t rounds = 0, faster_rounds = 0;  ///< of those runs
    std::string file;                            ///< where the choices are kept; empty: runs were not faster
};

/// Times every way to run each node of the graph (kernels, ggml's ops, references of little work; all threads
/// or one), for these operands and the options' number of threads. What is faster than the rules' choice, in
/// whole runs, too, is kept for this machine: later compilations use it. Takes seconds, and the memory of two
/// executables. Throws as compile and run do; Code::io where the choices cannot be written, and
/// Code::invalid_argument for another device than the CPU and where options.tuning is off. `progress` hears
/// the share that is done, 0 to 1.
TuneReport tune(const Graph& graph, const CompileOptions& options, std::span<const InputView> inputs,
                std::span<const OutputView> outputs, const std::function<void(double)>& progress = {});

}  // namespace headrace
