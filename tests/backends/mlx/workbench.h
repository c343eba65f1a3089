#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "ggml.h"

namespace headrace::mlx {

struct BackendFree {
    void operator()(ggml_backend* b) const { ggml_backend_free(b); }
};
struct ContextFree {
    void operator()(ggml_context* c) const { ggml_free(c); }
};
struct BufferFree {
    void operator()(ggml_backend_buffer* b) const { ggml_backend_buffer_free(b); }
};
using BackendHandle = std::unique_ptr<ggml_backend, BackendFree>;
using ContextHandle = std::unique_ptr<ggml_context, ContextFree>;
using BufferHandle = std::unique_ptr<ggml_backend_buffer, BufferFree>;

inline BackendHandle cpu_backend() { return BackendHandle(ggml_backend_cpu_init()); }

inline std::vector<float> random_values(std::int64_t count, unsigned seed = 1) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = normal(engine);
    return values;
}

/// A context for tensors, a graph, and memory for them on one backend.
struct Workbench {
    explicit Workbench(ggml_backend_t backend) : backend(backend) {
        context.reset(ggml_init({ggml_tensor_overhead() * 256 + ggml_graph_overhead() * 2, nullptr, true}));
        graph = ggml_new_graph(context.get());
    }

    ggml_context* c() const { return context.get(); }
    void output(ggml_tensor* t) {
        ggml_set_output(t);
        ggml_build_forward_expand(graph, t);
    }
    /// Every tensor gets memory of its own.
    void allocate() { memory.reset(ggml_backend_alloc_ctx_tensors(c(), backend)); }
    ggml_status compute() { return ggml_backend_graph_compute(backend, graph); }

    ggml_backend_t backend;
    ContextHandle context;
    ggml_cgraph* graph;
    BufferHandle memory;
};

inline void set(ggml_tensor* t, const std::vector<float>& values) {
    ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(float));
}
template <class T = float>
std::vector<T> get(const ggml_tensor* t) {
    std::vector<T> values(static_cast<std::size_t>(ggml_nelements(t)));
    ggml_backend_tensor_get(t, values.data(), 0, values.size() * sizeof(T));
    return values;
}

inline std::vector<std::uint8_t> quantized(ggml_type type, const std::vector<float>& values,
                                           std::int64_t columns) {
    const auto rows = static_cast<std::int64_t>(values.size()) / columns;
    std::vector<std::uint8_t> blocks(ggml_row_size(type, columns) * static_cast<std::size_t>(rows));
    const std::vector<float> importance(static_cast<std::size_t>(columns), 1.0f);
    ggml_quantize_chunk(type, values.data(), blocks.data(), 0, rows, columns, importance.data());
    return blocks;
}
inline std::vector<float> dequantized(ggml_type type, const std::vector<std::uint8_t>& blocks,
                                      std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    ggml_get_type_traits(type)->to_float(blocks.data(), values.data(), count);
    return values;
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - b[i]));
    return largest;
}

}  // namespace headrace::mlx
