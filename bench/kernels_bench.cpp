// Prints GFLOP/s of the f32 matrix products beside the FMA peak of the same cores, measured in the same
// moments. Usage: kernels_bench [seconds per shape and thread count]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Independent multiply-adds in registers only; returns the floating-point operations done.
double fma_burst(long steps, float* sink) {
    const hn::ScalableTag<float> d;
    using V = hn::Vec<decltype(d)>;
    // Different starting values, or the compiler would see equal sums and keep one.
    const auto start = [&](int i) HWY_ATTR { return hn::Set(d, sink[4 + i]); };
    V s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5);
    V s6 = start(6), s7 = start(7), s8 = start(8), s9 = start(9), s10 = start(10), s11 = start(11);
    const V x = hn::Set(d, sink[0]), y = hn::Set(d, sink[1]);
    for (long i = 0; i < steps; ++i) {
        s0 = hn::MulAdd(s0, x, y), s1 = hn::MulAdd(s1, x, y), s2 = hn::MulAdd(s2, x, y),
        s3 = hn::MulAdd(s3, x, y);
        s4 = hn::MulAdd(s4, x, y), s5 = hn::MulAdd(s5, x, y), s6 = hn::MulAdd(s6, x, y),
        s7 = hn::MulAdd(s7, x, y);
        s8 = hn::MulAdd(s8, x, y), s9 = hn::MulAdd(s9, x, y), s10 = hn::MulAdd(s10, x, y),
        s11 = hn::MulAdd(s11, x, y);
    }
    const V a = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    const V sum = hn::Add(a, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
    sink[2] += hn::GetLane(sum);
    return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

}  // namespace headrace::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/gemm_f32.h"

namespace headrace::bench {
HWY_EXPORT(fma_burst);
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
        const double done = HWY_DYNAMIC_DISPATCH(fma_burst)(100'000, sinks[ith]);
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

float* floats(size_t count) {
    float* data = static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64));
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
    return data;
}

void report(const char* name, double flops, double budget, const std::function<Work(int threads)>& work) {
    std::printf("%-26s", name);
    for (int threads : {1, 2}) {
        const Rates r = measure(threads, flops, budget, work(threads));
        std::printf("   %dT %7.1f of %6.1f GFLOP/s (%4.1f %%, %.1f us)", threads, r.work, r.peak,
                    100 * r.work / r.peak, flops / r.work / 1e3);
    }
    std::printf("\n");
    std::fflush(stdout);
}

void bench_gemm(size_t m, size_t n, size_t k, double budget,
                kernels::Activation activation = kernels::Activation::none) {
    float *a = floats(m * k), *b = floats(n * k), *c = floats(m * n), *bias = floats(n),
          *packed = floats(k * (n + 15));
    kernels::pack(b, static_cast<ptrdiff_t>(n), 1, k, n, packed);
    kernels::GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = static_cast<ptrdiff_t>(k);
    g.packed_b = packed, g.bias = bias, g.activation = activation;
    g.c = c, g.ldc = static_cast<ptrdiff_t>(n);
    char name[64];
    std::snprintf(name, sizeof(name), "%zu x %zu x %zu%s", m, n, k,
                  activation == kernels::Activation::none ? "" : " gelu");
    report(name, 2.0 * m * n * k, budget,
           [&](int nth) -> Work { return [&g, nth](int ith) { kernels::gemm_f32(g, ith, nth); }; });
    for (float* p : {a, b, c, bias, packed}) std::free(p);
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
    using headrace::bench::bench_gemm;
    const double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
    for (size_t n : {512, 1024, 2048}) bench_gemm(n, n, n, budget);
    bench_gemm(128, 384, 384, budget);
    bench_gemm(128, 1536, 384, budget);
    bench_gemm(128, 1536, 384, budget, headrace::kernels::Activation::gelu_erf);
    bench_gemm(128, 384, 1536, budget);
    bench_gemm(1, 4096, 4096, budget);
    bench_gemm(4, 4096, 4096, budget);
    bench_gemm(16, 1024, 1024, budget);
    bench_gemm(3136, 64, 256, budget);
    bench_gemm(128, 1000, 512, budget);
}
#endif
