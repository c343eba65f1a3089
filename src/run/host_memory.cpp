#include "run/host_memory.h"

#include "ggml-backend.h"
#include "ggml.h"
#include "lower/lower.h"

namespace headrace {
namespace {

alignas(64) char placeholder[64];

/// ggml wants every allocated tensor to name a buffer, from which it derives where the data lives. This one
/// stands for all host memory; ggml never looks at its range.
ggml_backend_buffer_t host_buffer() {
    static ggml_backend_buffer_t buffer = [] {
        ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
        ggml_backend_buffer_t b =
            ggml_backend_dev_buffer_from_host_ptr(cpu, placeholder, sizeof(placeholder), sizeof(placeholder));
        ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        return b;
    }();
    return buffer;
}

}  // namespace

void place_on_host(ggml_tensor* tensor, void* data) {
    tensor->buffer = host_buffer();
    tensor->data = data ? data : placeholder;
}

void place_empty_tensors(const LoweredGraph& lowered) {
    const auto place = [](ggml_tensor* t) {
        if (!t->view_src && !t->data && ggml_nbytes(t) == 0) place_on_host(t, nullptr);
    };
    for (ggml_tensor* t : lowered.inputs) place(t);
    for (int i = 0; i < ggml_graph_n_nodes(lowered.graph); ++i) place(ggml_graph_node(lowered.graph, i));
}

bool is_on_host(const ggml_tensor* tensor) { return tensor->buffer == host_buffer(); }

}  // namespace headrace
