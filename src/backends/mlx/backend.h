#pragma once
#include <mutex>

#include "backends/mlx/graph_runner.h"

struct ggml_backend;

namespace headrace::mlx {

/// One stream of work. Its graphs run one after the other, whichever thread asks.
struct Backend {
    Backend();

    std::mutex mutex;
    mx::Stream stream, host;
    GraphRunner runner;
};

/// What an expression is built and evaluated under: MLX keeps its default stream for each thread.
class StreamScope {
public:
    explicit StreamScope(mx::Stream stream);
    ~StreamScope();
    StreamScope(const StreamScope&) = delete;
    StreamScope& operator=(const StreamScope&) = delete;

private:
    mx::Device device_;
    mx::Stream stream_;
};

/// The counts of a backend made by this library.
RunCounts run_counts(ggml_backend* backend);

}  // namespace headrace::mlx
