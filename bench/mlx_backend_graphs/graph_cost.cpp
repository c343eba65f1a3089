// What a graph costs on the MLX backend besides its arithmetic, and products against ggml's CPU. Part of
// bench/mlx_backend.py.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "backends/mlx/ggml_graph.h"

namespace {

using namespace headrace::mlx;
using Clock = std::chrono::steady_clock;

double milliseconds(const std::function<void()>& work) {
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Times {
    double least, median;
};
Times measure(int runs, const std::function<void()>& work) {
    std::vector<double> times(runs);
    for (double& t : times) t = milliseconds(work);
    std::sort(times.begin(), times.end());
    return {times.front(), times[times.size() / 2]};
}

/// One step of a llama of 4 layers as llama.cpp builds it, views included: 129 nodes. The tensors are so
/// small that only the nodes count.
class Decoder {
public:
    explicit Decoder(Workbench& bench) : c_(bench.c()), graph_(bench.graph) {
        ggml_tensor* x = ggml_new_tensor_2d(c_, GGML_TYPE_F32, kWidth, 1);
        position_ = ggml_new_tensor_1d(c_, GGML_TYPE_I32, 1);
        row_ = ggml_new_tensor_1d(c_, GGML_TYPE_I64, 1);
        mask_ = ggml_new_tensor_2d(c_, GGML_TYPE_F16, kContext, 1);
        for (int layer = 0; layer < 4; ++layer) x = feed_forward(attention(x));
        bench.output(ggml_mul_mat(c_, matrix(kWidth, 512), norm(x)));
    }

private:
    static constexpr int kWidth = 64, kHeads = 4, kHead = 16, kContext = 32;

    ggml_tensor* matrix(int columns, int rows) {
        return ggml_new_tensor_2d(c_, GGML_TYPE_F32, columns, rows);
    }
    ggml_tensor* norm(ggml_tensor* x) {
        return ggml_mul(c_, ggml_rms_norm(c_, x, 1e-5f), ggml_new_tensor_1d(c_, GGML_TYPE_F32, kWidth));
    }
    ggml_tensor* heads(ggml_tensor* x) {
        return ggml_reshape_3d(c_, ggml_mul_mat(c_, matrix(kWidth, kWidth), x), kHead, kHeads, 1);
    }
    ggml_tensor* rotated(ggml_tensor* x) { return ggml_rope(c_, x, position_, kHead, GGML_ROPE_TYPE_NORMAL); }

    /// The whole cache as attention reads it, after this step's row was written.
    ggml_tensor* cached(ggml_tensor* values) {
        ggml_tensor* cache = ggml_new_tensor_2d(c_, GGML_TYPE_F16, kWidth, kContext);
        ggml_tensor* rows = ggml_view_2d(c_, values, kWidth, 1, values->nb[2], 0);
        ggml_build_forward_expand(graph_, ggml_set_rows(c_, cache, rows, row_));
        ggml_tensor* all = ggml_view_3d(c_, cache, kHead, kHeads, kContext, kHead * 2, kWidth * 2, 0);
        return ggml_permute(c_, all, 0, 2, 1, 3);
    }

    ggml_tensor* attention(ggml_tensor* x) {
        ggml_tensor* input = norm(x);
        ggml_tensor* q = ggml_permute(c_, rotated(heads(input)), 0, 2, 1, 3);
        ggml_tensor* k = cached(rotated(heads(input)));
        ggml_tensor* v = cached(heads(input));
        ggml_tensor* mixed = ggml_flash_attn_ext(c_, q, k, v, mask_, 0.25f, 0, 0);
        ggml_tensor* together = ggml_reshape_2d(c_, mixed, kWidth, 1);
        return ggml_add(c_, ggml_mul_mat(c_, matrix(kWidth, kWidth), together), x);
    }
    ggml_tensor* feed_forward(ggml_tensor* x) {
        ggml_tensor* input = norm(x);
        ggml_tensor* gate = ggml_mul_mat(c_, matrix(kWidth, 128), input);
        ggml_tensor* up = ggml_mul_mat(c_, matrix(kWidth, 128), input);
        return ggml_add(c_, ggml_mul_mat(c_, matrix(128, kWidth), ggml_swiglu_split(c_, gate, up)), x);
    }

    ggml_context* c_;
    ggml_cgraph* graph_;
    ggml_tensor *position_, *row_, *mask_;
};

void measure_overhead() {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    const Decoder decoder(bench);
    bench.allocate();
    ggml_backend_buffer_clear(bench.memory.get(), 0);
    const double first = milliseconds([&] { bench.compute(); });
    const RunCounts before = run_counts(backend.get());
    const Times later = measure(500, [&] { bench.compute(); });
    const RunCounts after = run_counts(backend.get());
    const double build = static_cast<double>(after.build_ns - before.build_ns) / 500e6;
    std::printf(
        "graph of %d nodes: first run %.2f ms, later %.3f ms (least %.3f), of which translation %.3f ms; "
        "%lld "
        "primitives\n",
        ggml_graph_n_nodes(bench.graph), first, later.median, later.least, build,
        static_cast<long long>((after.primitives - before.primitives) / 500));
}

/// 1024 x 1024 x 1024.
double product(ggml_backend_t backend, ggml_type type, std::int64_t rows, int runs) {
    constexpr std::int64_t n = 1024;
    Workbench bench(backend);
    ggml_tensor* w = ggml_new_tensor_2d(bench.c(), type, n, n);
    ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, n, rows);
    bench.output(ggml_mul_mat(bench.c(), w, x));
    bench.allocate();
    ggml_backend_buffer_set_usage(bench.memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    const std::vector<float> values = random_values(n * n);
    if (type == GGML_TYPE_F32) {
        set(w, values);
    } else {
        const auto blocks = quantized(type, values, n);
        ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());
    }
    set(x, random_values(n * rows, 2));
    bench.compute();
    return measure(runs, [&] { bench.compute(); }).median;
}

void measure_products() {
    const BackendHandle mlx = mlx_backend(), cpu = cpu_backend();
    ggml_backend_cpu_set_n_threads(cpu.get(), 2);
    for (const std::int64_t rows : {1024, 1})
        for (const ggml_type type :
             {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K}) {
            const int runs = rows == 1 ? 100 : 10;
            std::printf("1024 x 1024 %-5s times %4lld rows: MLX %8.3f ms, ggml CPU %8.3f ms\n",
                        ggml_type_name(type), static_cast<long long>(rows),
                        product(mlx.get(), type, rows, runs), product(cpu.get(), type, rows, runs));
        }
}

}  // namespace

int main() {
    measure_overhead();
    measure_products();
}
