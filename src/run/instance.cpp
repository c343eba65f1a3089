#include "run/instance.h"

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

void Instance::place_leaves(const StateBuffers& states) {
    for (std::size_t i = 0; i < states.size(); ++i) place_on_host(lowered_.states[i], states[i]->data());
    for (const ConstantTensor& c : lowered_.constants)
        if (!c.on_device) place_on_host(c.tensor, const_cast<std::byte*>(place_of(*plan_, *c.constant)));
}

std::size_t Instance::own_bytes() const {
    std::size_t total = sizeof(Instance);
    for (const GgmlContext& context : lowered_.contexts) total += ggml_get_mem_size(context.get());
    return total + lowered_.custom_nodes.size() * sizeof(CustomNode);
}

Status Instance::take_failures() {
    for (std::size_t i = 0; i < lowered_.custom_nodes.size(); ++i)
        if (const std::exception_ptr thrown = lowered_.custom_nodes[i]->take_failure())
            return status_of(thrown, lowered_.custom_nodes[i]->title());
    return success();
}

}  // namespace headrace
