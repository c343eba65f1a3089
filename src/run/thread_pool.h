#pragma once
#include <mutex>

struct ggml_threadpool;

namespace headrace {

/// Threads a run uses when its options do not say.
void set_default_threads(int threads);
int default_threads();
/// What a run gets of so many threads: never more than there are CPUs, since ggml's threads spin while they
/// wait and it aborts when one cannot be created.
int usable_threads(int wanted);

/// The process's one pool of worker threads, for the duration of a run. Runs that want several threads take
/// turns: two graphs whose spinning barriers compete for the same cores are slower than one after the other.
class ThreadPoolLease {
public:
    /// Waits for the pool; it has `threads` threads, the caller's included.
    explicit ThreadPoolLease(int threads);
    ggml_threadpool* pool() const { return pool_; }

private:
    std::unique_lock<std::mutex> lock_;
    ggml_threadpool* pool_;
};

}  // namespace headrace
