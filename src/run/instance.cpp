#include "run/instance.h"

#include <algorithm>

#include "ggml-backend.h"
#include "ggml.h"
#include "ir/kernel_error.h"
#include "run/host_memory.h"

namespace headrace {

namespace {

Status status_of(const std::exception_ptr& thrown, const std::string& title) {
    try {
        std::rethrow_exception(thrown);
    } catch (const KernelError& error) {
        return invalid("{}: {}", title, error.what());
    } catch (...) {
        return failure(Code::out_of_memory, "{}: a kernel could not allocate its scratch memory", title);
    }
}

const std::byte* place_of(const Plan& plan, const Constant& constant) {
    const auto copy = plan.aligned.find(&constant);
    return copy == plan.aligned.end() ? constant.bytes.data() : copy->second.get();
}

}  // namespace

void Instance::place_leaves(const States& states) {
    states_ = states;
    is_written_.assign(states.size(), false);
    for (const ValueId state : written_states(plan_->graph))
        if (const auto at = std::ranges::find(plan_->graph.states, state); at != plan_->graph.states.end())
            is_written_[static_cast<std::size_t>(at - plan_->graph.states.begin())] = true;
    for (std::size_t i = 0; i < states.size(); ++i)
        if (!is_on_device(i)) place_on_host(lowered_.states[i], states[i]->host());
    for (const ConstantTensor& c : lowered_.constants)
        if (!c.on_device) place_on_host(c.tensor, const_cast<std::byte*>(place_of(*plan_, *c.constant)));
}

Status Instance::bring_states(const Device* device) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        HR_ASSIGN(const bool copied,
                  is_on_device(i) ? states_[i]->bring_to(*device) : states_[i]->bring_to_host());
        if (copied) note_copy(states_[i]->bytes());
    }
    return success();
}

void Instance::note_written_states(const Device* device) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (!is_written_[i]) continue;
        if (is_on_device(i))
            states_[i]->written_on(*device);
        else
            states_[i]->written_on_host();
    }
}

std::size_t Instance::own_bytes() const {
    std::size_t total = sizeof(Instance);
    for (const GgmlContext& context : lowered_.contexts) total += ggml_get_mem_size(context.get());
    return total + lowered_.custom_nodes.size() * sizeof(CustomNode);
}

std::string Instance::largest_result() const {
    std::size_t largest = 0, owner = 0;
    for (std::size_t node = 0; node < lowered_.node_ranges.size(); ++node)
        for (int i = lowered_.node_ranges[node].first; i < lowered_.node_ranges[node].second; ++i) {
            const ggml_tensor* t = ggml_graph_node(lowered_.graph, i);
            if (t->view_src || ggml_nbytes(t) <= largest) continue;
            largest = ggml_nbytes(t);
            owner = node;
        }
    if (largest == 0) return "none of them has any";
    return fmt::format("the largest is that of {}, of {} bytes", plan_->graph.nodes[owner].title(), largest);
}

Status Instance::take_failures() {
    for (std::size_t i = 0; i < lowered_.custom_nodes.size(); ++i)
        if (const std::exception_ptr thrown = lowered_.custom_nodes[i]->take_failure())
            return status_of(thrown, lowered_.custom_nodes[i]->title());
    return success();
}

}  // namespace headrace
