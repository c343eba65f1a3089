#pragma once
#include <memory>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "remote/host.h"

namespace headrace::testing {

/// What ggml computes of 3 · x on the host; empty when the host has no memory.
inline std::vector<float> tripled(remote::Host& host, const std::vector<float>& x) {
    const std::lock_guard turn(host.turn());
    const ggml_init_params params{.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true};
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> context(ggml_init(params), &ggml_free);
    const std::unique_ptr<ggml_backend, decltype(&ggml_backend_free)> backend(
        ggml_backend_dev_init(host.devices().front(), nullptr), &ggml_backend_free);
    ggml_tensor* input =
        ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, static_cast<std::int64_t>(x.size()));
    ggml_tensor* output = ggml_scale(context.get(), input, 3.0f);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, output);
    const std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> buffer(
        ggml_backend_alloc_ctx_tensors(context.get(), backend.get()), &ggml_backend_buffer_free);
    if (!buffer) return {};
    std::vector<float> y(x.size());
    ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    ggml_backend_graph_compute(backend.get(), graph);
    ggml_backend_tensor_get(output, y.data(), 0, y.size() * sizeof(float));
    return y;
}

}  // namespace headrace::testing
