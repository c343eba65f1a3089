#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/buffer_pool.h"
#include "doors/wasi_nn/context.h"
#include "doors/wasi_nn/loaded_graph.h"

namespace headrace::wasi_nn {

/// The inputs and outputs of a graph of tensors, in the graph's order, and a session of it. Inputs stay until
/// they are set again; each is copied once, and an output once to its reader.
class GraphContext final : public Context {
public:
    GraphContext(std::shared_ptr<LoadedGraph> graph, std::chrono::milliseconds longest_run);

    Status set_input(std::uint32_t index, const GuestTensor& tensor) override;
    Status compute() override;
    Result<ContextInfo> info() override;
    Result<int> read_output(std::uint32_t index, const OutputReader& read) override;
    void cancel() override { is_cancelled_ = true; }
    bool is_orphan() const override { return graph_->is_unloaded; }
    bool holds_tensors() const override { return true; }
    void close() override { cancel(); }

private:
    struct Tensor {
        std::vector<std::int64_t> shape;
        PooledBuffer memory;
        std::size_t bytes = 0;
        bool is_set = false;

        Status become(const LoadedGraph& graph, const TensorInfo& info, std::vector<std::int64_t> made);
    };
    Result<std::vector<std::int64_t>> shape_of(std::uint32_t index, const GuestTensor& tensor) const;
    Status run();
    const std::string& description();

    const std::shared_ptr<LoadedGraph> graph_;
    const std::chrono::milliseconds longest_run_;  // 0: any
    std::atomic<bool> is_cancelled_ = false;
    std::mutex mutex_;  // of what follows
    Session session_;
    std::vector<Tensor> inputs_, outputs_;
    bool is_computed_ = false;
    std::string description_;                           // as it was told last
    std::vector<std::vector<std::int64_t>> described_;  // with these shapes of outputs
};

}  // namespace headrace::wasi_nn
