#include "backends/mlx/host/threads.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_count.h"

#ifdef HEADRACE_MLX_OPENBLAS
extern "C" void openblas_set_num_threads(int threads);
#endif

namespace headrace::mlx {
namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

/// How long a thread looks for the next product before it sleeps: within a step of a model they follow one
/// another sooner than a sleeping thread wakes up.
constexpr std::chrono::microseconds kLooksFor{50};

/// Parts for each thread, so that one that comes late delays nobody.
constexpr std::size_t kPartsEach = 4;

/// The threads that help, started when they are first needed.
class Crew {
public:
    ~Crew() {
        if (getpid() != owner_) {  // a forked child has none of them
            for (std::thread& helper : helpers_) helper.detach();
            return;
        }
        dismissed_ = true;
        call();
        for (std::thread& helper : helpers_) helper.join();
    }

    /// Those that are there and are not wanted sleep: llama.cpp changes the number between prompts and steps.
    void set_size(int helpers) { wanted_ = static_cast<std::size_t>(helpers); }

    /// False where the crew is another caller's, or there is none.
    bool share(std::size_t count, std::size_t grain, const Body& body) {
        const std::unique_lock lock(in_use_, std::try_to_lock);
        const std::size_t wanted = wanted_, parts = (wanted + 1) * kPartsEach;
        if (!lock || wanted == 0) return false;
        while (helpers_.size() < wanted)
            helpers_.emplace_back([this, number = helpers_.size()] { help(number); });
        {
            const std::lock_guard job(job_mutex_);
            body_ = &body;
            next_ = 0;
            count_ = count;
            step_ = ((count + parts - 1) / parts + grain - 1) / grain * grain;
            unfinished_ = (count + step_ - 1) / step_;
        }
        call();
        while (do_part()) continue;
        while (unfinished_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
        return true;
    }

private:
    bool do_part() {
        const Body* body;
        std::size_t begin, end;
        {
            const std::lock_guard lock(job_mutex_);
            if (next_ >= count_) return false;
            body = body_;
            begin = next_;
            end = next_ = std::min(next_ + step_, count_);
        }
        (*body)(begin, end);
        unfinished_.fetch_sub(1, std::memory_order_release);
        return true;
    }

    void help(std::size_t number) {
        for (unsigned seen = 0; !dismissed_; seen = calls_) {
            while (number < wanted_ && do_part()) continue;
            const auto until = std::chrono::steady_clock::now() + kLooksFor;
            while (calls_ == seen && std::chrono::steady_clock::now() < until) continue;
            calls_.wait(seen);
        }
    }

    void call() {
        ++calls_;
        calls_.notify_all();
    }

    const pid_t owner_ = getpid();
    std::mutex in_use_;  ///< by one caller at a time
    std::vector<std::thread> helpers_;
    std::atomic<std::size_t> wanted_{static_cast<std::size_t>(usable_cpus() - 1)};
    std::atomic<bool> dismissed_{false};
    std::atomic<unsigned> calls_{0};

    std::mutex job_mutex_;
    const Body* body_ = nullptr;
    std::size_t next_ = 0, count_ = 0, step_ = 0;
    std::atomic<std::size_t> unfinished_{0};
};

Crew& crew() {
    static Crew instance;
    return instance;
}

}  // namespace

void set_threads(int threads) {
    threads = std::max(1, threads);
    crew().set_size(threads - 1);
#ifdef HEADRACE_MLX_OPENBLAS
    openblas_set_num_threads(threads);
#endif
}

void in_parts(std::size_t count, std::size_t grain, const Body& body) {
    if (!crew().share(count, grain, body)) body(0, count);
}

}  // namespace headrace::mlx
