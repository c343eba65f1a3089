#include "doors/webnn/graph_files.h"
#include "doors/webnn/state.h"
#include "ir/print.h"

namespace headrace::webnn {
namespace {

/// A session for one dispatch: an idle one, or a new one while others are busy.
class SessionLease {
public:
    explicit SessionLease(MLGraph::State& state) : state_(state) {
        {
            const std::lock_guard lock(state_.mutex);
            if (state_.destroyed) fail(failure(Code::invalid_state, "the graph has been destroyed"));
            if (!state_.idle.empty()) {
                session_ = std::move(state_.idle.back());
                state_.idle.pop_back();
                return;
            }
        }
        session_ = std::make_unique<Session>(state_.executable);
    }
    ~SessionLease() {
        const std::lock_guard lock(state_.mutex);
        if (!state_.destroyed) state_.idle.push_back(std::move(session_));
    }
    SessionLease(const SessionLease&) = delete;
    SessionLease& operator=(const SessionLease&) = delete;
    Session& operator*() { return *session_; }
    Session* operator->() { return session_.get(); }

private:
    MLGraph::State& state_;
    std::unique_ptr<Session> session_;
};

}  // namespace

MLGraph make_graph(std::shared_ptr<const Graph> graph, const CompileOptions& options) {
    Executable executable = compile(*graph, options);
    auto inputs = executable.inputs();
    auto outputs = executable.outputs();
    return MLGraph(std::shared_ptr<MLGraph::State>(new MLGraph::State{.graph = std::move(graph),
                                                                      .executable = std::move(executable),
                                                                      .inputs = std::move(inputs),
                                                                      .outputs = std::move(outputs)}));
}

const std::vector<TensorInfo>& MLGraph::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& MLGraph::outputs() const { return state_->outputs; }

void MLGraph::run(std::span<const InputView> inputs, std::span<const OutputView> outputs) const {
    SessionLease session(*state_);
    session->run(inputs, outputs);
}

std::vector<std::vector<std::int64_t>> MLGraph::outputShapes(
    std::span<const std::vector<std::int64_t>> inputs) const {
    SessionLease session(*state_);
    return session->output_shapes(inputs);
}

std::size_t MLGraph::operandCount() const { return state_->graph->values.size(); }
std::size_t MLGraph::operationCount() const { return state_->graph->nodes.size(); }
const Executable& MLGraph::executable() const { return state_->executable; }
void MLGraph::save(const std::string& path) const { value_or_throw(write_graph_file(*state_->graph, path)); }
std::string MLGraph::print() const { return headrace::print(state_->executable.graph()); }

void MLGraph::destroy() {
    const std::lock_guard lock(state_->mutex);
    state_->destroyed = true;
    state_->idle.clear();
}

}  // namespace headrace::webnn
