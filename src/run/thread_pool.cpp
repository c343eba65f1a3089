#include "run/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <climits>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include "base/cpu_count.h"
#include "ggml-cpu.h"
#include "ggml.h"

namespace headrace {

namespace {

/// Workers look for the next run, natively for about 3 ms, then sleep. By ggml's default of 50 they would
/// keep their cores busy for 160 ms after the last one. WebAssembly has no pause between two looks: as many
/// as natively end before a page's next run comes.
#ifdef __wasm__
constexpr int kLooks = 16;
#else
constexpr int kLooks = 1;
#endif

/// Never destroyed: workers may outlive static destruction. After a fork the child has no workers, so it
/// starts over with a pool of its own.
struct Shared {
    std::mutex* mutex = new std::mutex;
    ggml_threadpool* pool = nullptr;
    int threads = 0;
};

Shared& shared() {
    static Shared* instance = [] {
        auto* fresh = new Shared;
#if defined(__unix__) || defined(__APPLE__)
        pthread_atfork(nullptr, nullptr, [] { shared() = Shared{}; });
#endif
        return fresh;
    }();
    return *instance;
}

std::atomic<int>& default_count() {
    static std::atomic<int> count{usable_threads(INT_MAX)};
    return count;
}

}  // namespace

void set_default_threads(int threads) { default_count() = usable_threads(threads); }
int default_threads() { return default_count(); }

int usable_threads(int wanted) {
    static const int cpus = usable_cpus();  // at every run a call would be too much
    return std::clamp(wanted, 1, std::min(cpus, GGML_MAX_N_THREADS));
}

ThreadPoolLease::ThreadPoolLease(int threads) : lock_(*shared().mutex) {
    Shared& s = shared();
    if (s.pool && s.threads != threads) {
        ggml_threadpool_free(s.pool);
        s.pool = nullptr;
    }
    if (!s.pool) {
        ggml_threadpool_params params = ggml_threadpool_params_default(threads);
        params.poll = kLooks;
        s.pool = ggml_threadpool_new(&params);
        s.threads = threads;
    }
    pool_ = s.pool;
}

}  // namespace headrace
