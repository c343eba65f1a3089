#include "doors/webnn/state.h"
#include "ir/print.h"

namespace headrace::webnn {
namespace {

/// A session for one dispatch: an idle one, or a new one while others are busy. A graph with states has one
/// session only, made with the graph, for which dispatches wait.
class SessionLease {
public:
    explicit SessionLease(MLGraph::State& state) : state_(state) {
        {
            std::unique_lock lock(state_.mutex);
            if (state_.has_states)
                state_.returned.wait(lock, [&] { return state_.destroyed || !state_.idle.empty(); });
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
        state_.returned.notify_one();
    }
    SessionLease(const SessionLease&) = delete;
    SessionLease& operator=(const SessionLease&) = delete;
    Session& operator*() { return *session_; }
    Session* operator->() { return session_.get(); }

private:
    MLGraph::State& state_;
    std::unique_ptr<Session> session_;
};

Result<std::vector<std::vector<std::int64_t>>> inferred_shapes(const Graph& graph,
                                                               const SymbolBindings& bindings) {
    HR_ASSIGN(const Graph concrete, specialize(graph, bindings));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, id] : concrete.outputs) shapes.push_back(concrete.value(id).type.sizes());
    return shapes;
}

/// Plans nothing and takes no session, which may be busy: callers ask where they must not wait.
Result<std::vector<std::vector<std::int64_t>>> shapes_of_outputs(
    const Graph& graph, std::span<const std::vector<std::int64_t>> inputs) {
    if (inputs.size() != graph.inputs.size())
        return invalid("{} input shapes given, the graph has {} inputs", inputs.size(), graph.inputs.size());
    HR_ASSIGN(const SymbolBindings bindings, bind_symbols(graph, inputs));
    for (const Condition& condition : graph.conditions) HR_TRY(condition.check(bindings));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, id] : graph.outputs) {
        auto& shape = shapes.emplace_back();
        for (const Dim& extent : graph.value(id).type.shape) {
            const Dim number = bound(extent, bindings);
            // An extent whose expression was too long is inferred from node to node.
            if (number.is_symbolic()) return inferred_shapes(graph, bindings);
            shape.push_back(number.size());
        }
    }
    return shapes;
}

}  // namespace

MLGraph make_graph(std::shared_ptr<const Graph> graph, const CompileOptions& options, const void* context) {
    Executable executable = compile(*graph, options);
    auto state = std::make_shared<MLGraph::State>(std::move(graph), std::move(executable),
                                                  options.weights == WeightFormat::as_given, context);
    if (state->has_states) state->idle.push_back(std::make_unique<Session>(state->executable));
    return MLGraph(std::move(state));
}

const std::vector<TensorInfo>& MLGraph::inputs() const { return state_->inputs; }
const std::vector<TensorInfo>& MLGraph::outputs() const { return state_->outputs; }
bool MLGraph::mayBeGiven(const std::string& name) const { return state_->unread.contains(name); }

void MLGraph::run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
                  const RunOptions& options) const {
    SessionLease session(*state_);
    session->run(inputs, outputs, options);
}

RunStats MLGraph::runStats() const { return SessionLease(*state_)->stats(); }

std::vector<std::vector<std::int64_t>> MLGraph::outputShapes(
    std::span<const std::vector<std::int64_t>> inputs) const {
    return value_or_throw(shapes_of_outputs(state_->executable.graph(), inputs));
}

std::vector<TensorInfo> MLGraph::states() const { return state_->executable.states(); }

void MLGraph::readState(const std::string& name, void* data, std::size_t bytes) const {
    SessionLease(*state_)->read_state(name, data, bytes);
}

void MLGraph::writeState(const std::string& name, const void* data, std::size_t bytes) const {
    SessionLease(*state_)->write_state(name, data, bytes);
}

void MLGraph::resetStates() const {
    if (state_->has_states) SessionLease(*state_)->reset_states();
}

std::size_t MLGraph::operandCount() const { return state_->operands; }
std::size_t MLGraph::operationCount() const { return state_->operations; }
const Executable& MLGraph::executable() const { return state_->executable; }
std::string MLGraph::print() const { return headrace::print(state_->executable.graph()); }

void MLGraph::destroy() {
    const std::lock_guard lock(state_->mutex);
    state_->destroyed = true;
    state_->idle.clear();
    state_->returned.notify_all();
}

}  // namespace headrace::webnn
