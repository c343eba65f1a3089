// Prints GFLOP/s of the matrix products, in f32 and in 8-bit integers with quantised weights, beside the f32
// FMA peak of the same cores, measured in the same moments.
// kernels_bench [seconds per shape and thread count], or
// kernels_bench --limits: JSON lines of what one and two threads reach in multiply-adds and in reading a
// gibibyte.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/gemm/block_gemm_f32.h"
#include "kernels/gemm/block_gemm_int8.h"
#include "kernels/gemm/f16_gemm_f32.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/machine_limits.h"

namespace headrace::bench {
namespace {

using Work = std::function<void(int ith)>;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Threads that spin between jobs, as ggml's do.
class SpinningTeam {
public:
    explicit SpinningTeam(int size) : size_(size) {
        for (int i = 1; i < size; ++i) threads_.emplace_back([this, i] { loop(i); });
    }
    ~SpinningTeam() {
        work_ = nullptr;
        turn_.fetch_add(1);
        for (auto& thread : threads_) thread.join();
    }
    double time(const Work& work) {
        work_ = &work;
        done_ = 0;
        const double start = seconds();
        turn_.fetch_add(1);
        work(0);
        while (done_.load() + 1 < size_) {
        }
        return seconds() - start;
    }

private:
    void loop(int ith) {
        for (int seen = 0;; ++seen) {
            while (turn_.load() == seen) {
            }
            if (!work_) return;
            (*work_)(ith);
            done_.fetch_add(1);
        }
    }
    int size_;
    const Work* work_ = nullptr;
    std::atomic<int> turn_{0}, done_{0};
    std::vector<std::thread> threads_;
};

struct Rates {
    double work, peak;  // GFLOP/s
};

// Best of alternating runs of the work and of an FMA burst of about a millisecond, so
// that both see the same clock.
Rates measure(int threads, double flops, double budget, const Work& work) {
    SpinningTeam team(threads);
    double best = 1e9, best_burst = 1e9, burst_flops = 0;
    const Work burst = [&](int ith) {
        static float sinks[64][16];
        sinks[ith][0] = 0.999f, sinks[ith][1] = 1e-3f;
        const double done = kernels::fma_burst(100'000, sinks[ith]);
        if (ith == 0) burst_flops = done;
    };
    const double end = seconds() + budget;
    do {
        best_burst = std::min(best_burst, team.time(burst));
        for (double used = 0; used < 1e-3;) {
            const double t = team.time(work);
            best = std::min(best, t);
            used += t;
        }
    } while (seconds() < end);
    return {flops / best / 1e9, burst_flops * threads / best_burst / 1e9};
}

float* floats(std::size_t count) {
    float* data = static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64));
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
    return data;
}

void report(const char* name, double flops, double budget, const std::function<Work(int threads)>& work) {
    std::printf("%-28s", name);
    for (int threads : {1, 2}) {
        const Rates r = measure(threads, flops, budget, work(threads));
        std::printf("   %dT %7.1f of %6.1f GFLOP/s (%4.1f %%, %.1f us)", threads, r.work, r.peak,
                    100 * r.work / r.peak, flops / r.work / 1e3);
    }
    std::printf("\n");
    std::fflush(stdout);
}

void bench_gemm(std::size_t m, std::size_t n, std::size_t k, double budget,
                kernels::Activation activation = kernels::Activation::none) {
    float *a = floats(m * k), *b = floats(n * k), *c = floats(m * n), *bias = floats(n),
          *packed = floats(k * (n + 15));
    kernels::pack(b, static_cast<std::ptrdiff_t>(n), 1, k, n, packed);
    kernels::GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = static_cast<std::ptrdiff_t>(k);
    g.packed_b = packed, g.bias = bias, g.activation = activation;
    g.c = c, g.ldc = static_cast<std::ptrdiff_t>(n);
    char name[64];
    std::snprintf(name, sizeof(name), "%zu x %zu x %zu%s", m, n, k,
                  activation == kernels::Activation::none ? "" : " gelu");
    report(name, 2.0 * m * n * k, budget,
           [&](int nth) -> Work { return [&g, nth](int ith) { kernels::gemm_f32(g, ith, nth); }; });
    for (float* p : {a, b, c, bias, packed}) std::free(p);
}

void bench_blocks(BlockFormat format, std::size_t m, std::size_t n, std::size_t k, double budget) {
    float *a = floats(m * k), *c = floats(m * n), *row = floats(k);
    const std::size_t row_bytes = blocks_bytes(format, static_cast<std::int64_t>(k));
    std::vector<std::byte> blocks(n * row_bytes);
    for (std::size_t j = 0; j < n; ++j)
        quantize(format, row, static_cast<std::int64_t>(k), blocks.data() + j * row_bytes);
    kernels::GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = static_cast<std::ptrdiff_t>(k);
    g.c = c, g.ldc = static_cast<std::ptrdiff_t>(n);
    const double flops = 2.0 * static_cast<double>(m * n * k);
    const auto named = [&](const char* kind) {
        return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " " +
               std::string(name_of(format)) + " " + kind;
    };
    report(named("f32").c_str(), flops, budget, [&](int nth) -> Work {
        return [&, nth](int ith) { kernels::block_gemm_f32(g, format, blocks.data(), ith, nth); };
    });
    if (kernels::has_block_gemm_int8(format)) {
        std::vector<std::byte> packed(kernels::packed_blocks_bytes(format, k, n) + 64);
        auto* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) % 64;
        kernels::pack_blocks(format, blocks.data(), k, n, aligned);
        report(named("int8").c_str(), flops, budget, [&](int nth) -> Work {
            return [&, nth](int ith) { kernels::block_gemm_int8(g, format, aligned, ith, nth); };
        });
    }
    for (float* p : {a, c, row}) std::free(p);
}

void bench_half_floats(bool is_bf16, std::size_t m, std::size_t n, std::size_t k, double budget) {
    float *a = floats(m * k), *c = floats(m * n), *b = floats(k * (n + 15) / 2 + 1);
    kernels::GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = static_cast<std::ptrdiff_t>(k);
    g.c = c, g.ldc = static_cast<std::ptrdiff_t>(n);
    const auto* packed = reinterpret_cast<const std::uint16_t*>(b);  // any numbers take the same time
    const std::string name = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                             (is_bf16 ? " bf16" : " f16");
    report(name.c_str(), 2.0 * static_cast<double>(m * n * k), budget, [&](int nth) -> Work {
        return [&, nth](int ith) { kernels::f16_gemm_f32(g, packed, is_bf16, ith, nth); };
    });
    for (float* p : {a, b, c}) std::free(p);
}

void print_limits() {
    for (int threads : {1, 2}) {
        const kernels::MachineLimits limits = kernels::measure_limits(threads);
        std::printf("{\"threads\": %d, \"fma_gflops\": %.1f, \"read_gb_per_s\": %.2f}\n", threads,
                    limits.gflops, limits.read_gb_per_s);
    }
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--limits") {
        headrace::bench::print_limits();
        return 0;
    }
    using headrace::bench::bench_gemm;
    const double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
    for (std::size_t n : {512, 1024, 2048}) bench_gemm(n, n, n, budget);
    bench_gemm(128, 384, 384, budget);
    bench_gemm(128, 1536, 384, budget);
    bench_gemm(128, 1536, 384, budget, headrace::kernels::Activation::gelu_erf);
    bench_gemm(128, 384, 1536, budget);
    bench_gemm(1, 4096, 4096, budget);
    bench_gemm(4, 4096, 4096, budget);
    bench_gemm(16, 1024, 1024, budget);
    bench_gemm(3136, 64, 256, budget);
    bench_gemm(128, 1000, 512, budget);
    for (const bool is_bf16 : {false, true})
        for (const std::size_t m : {512, 32, 8, 1})
            headrace::bench::bench_half_floats(is_bf16, m, 4096, 1024, budget);
    using headrace::BlockFormat;
    for (BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_0}) {
        headrace::bench::bench_blocks(format, 512, 3072, 1024, budget);
        headrace::bench::bench_blocks(format, 128, 1536, 384, budget);
        headrace::bench::bench_blocks(format, 8, 3072, 1024, budget);
        headrace::bench::bench_blocks(format, 1, 4096, 4096, budget);
        headrace::bench::bench_blocks(format, 1, 65536, 2048, budget);
    }
}
