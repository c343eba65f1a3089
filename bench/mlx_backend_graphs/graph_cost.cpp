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

/// On tiny tensors, so that only the nodes count.
void measure_overhead() {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_context* c = bench.c();
    ggml_tensor* x = ggml_new_tensor_1d(c, GGML_TYPE_F32, 32);
    ggml_tensor* y = x;
    for (int i = 0; i < 129; ++i)
        y = i % 3 == 0 ? ggml_rms_norm(c, y, 1e-5f) : i % 3 == 1 ? ggml_mul(c, y, x) : ggml_add(c, y, x);
    bench.output(y);
    bench.allocate();
    set(x, random_values(32));
    const double first = milliseconds([&] { bench.compute(); });
    const RunCounts before = run_counts(backend.get());
    const Times later = measure(500, [&] { bench.compute(); });
    const RunCounts after = run_counts(backend.get());
    const double build = static_cast<double>(after.build_ns - before.build_ns) / 500e6;
    std::printf(
        "graph of 129 nodes: first run %.2f ms, later %.3f ms (least %.3f), of which translation %.3f ms\n",
        first, later.median, later.least, build);
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
        const auto blocks = quantised(type, values, n);
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
