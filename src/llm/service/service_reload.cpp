// A service's models that lost a remote host: they are loaded again when somebody asks for them.
#include "llm/log/log.h"
#include "llm/service/service_state.h"

namespace headrace::llm {
namespace {

constexpr auto at_once = std::chrono::seconds(0);

bool is_ready(const std::shared_future<Status>& future) {
    return future.wait_for(at_once) == std::future_status::ready;
}

}  // namespace

/// The graph, loaded again first if it has to be. Requests wait for one load, none beyond its own time.
Result<Service::Graph> Service::usable_graph(GraphId id, Clock::time_point until) {
    HR_ASSIGN(const Graph graph, graph_of(id));
    const Status lost = graph.runner.model().check_hosts();
    if (lost.ok()) return graph;
    if (graph.path.empty()) return lost.error().within("load the model again, its bytes are gone");
    std::shared_future<Status> reload;
    {
        const std::lock_guard lock(mutex_);
        std::shared_future<Status>& running = reloads_[id];
        if (!running.valid() || is_ready(running))
            running = std::async(std::launch::async, [this, id, graph] { return load_again(id, graph); });
        reload = running;
    }
    if (until == Clock::time_point::max())
        reload.wait();
    else if (reload.wait_until(until) != std::future_status::ready)
        return failure(Code::timed_out, "{}; the model is still being loaded again", lost.error().message);
    if (const Status& status = reload.get(); !status.ok())
        return failure(Code::backend_failure, "{}; it cannot be loaded again: {}", lost.error().message,
                       status.error().message);
    return graph_of(id);
}

Status Service::load_again(GraphId id, const Graph& lost) {
    HR_LOG(warn, {}, "{} is loaded again: {}", lost.name, lost.runner.model().check_hosts().error().message);
    Result<Runner> opened = open_runner(lost.path, lost.settings);
    if (!opened.ok()) return lost.names.within(opened.error());
    Runner runner = std::move(opened).value();
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(id);
    if (found == graphs_.end()) return failure(Code::not_found, "graph {} was unloaded", id);
    Runner& current = found->second.runner;  // another model may have taken its place
    if (&current.model() == &lost.runner.model()) current = std::move(runner);
    return success();
}

}  // namespace headrace::llm
