#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/graph/tape.h"

struct ggml_cgraph;
struct ggml_tensor;

namespace headrace::mlx {

/// What running graphs has cost so far, for tests and benchmarks.
struct RunCounts {
    std::int64_t graphs = 0;
    std::int64_t translations = 0;  ///< graphs that were not in the cache
    std::int64_t write_backs = 0;
    std::int64_t primitives = 0;  ///< of MLX's and ours that were evaluated
    std::int64_t build_ns = 0;    ///< until the expression, or the tape that replaces it, is there
    std::int64_t eval_ns = 0;     ///< from there to the results
};

/// Runs ggml graphs: each as one expression, evaluated once, of which only visible results reach ggml's
/// memory.
class GraphRunner {
public:
    explicit GraphRunner(mx::Stream stream, mx::Stream host) : stream_(stream), host_(host) {}

    /// Throws what MLX throws; ggml's memory then holds what the graph left there, as after any failure.
    void run(const ggml_cgraph* graph);

    const RunCounts& counts() const { return counts_; }

private:
    struct Translation {
        std::vector<std::uint64_t> signature;
        std::vector<const ggml_tensor*> written_back;  ///< the tape's first outputs, in node order
        std::unique_ptr<Tape> tape;
    };

    Translation* find(const std::vector<std::uint64_t>& signature);
    std::vector<array> translate(const ggml_cgraph* graph, Translation& translation);

    mx::Stream stream_, host_;
    std::list<Translation> cache_;  ///< the most recently used first
    RunCounts counts_;
};

}  // namespace headrace::mlx
