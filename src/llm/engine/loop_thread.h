#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "llm/engine/large_stack_thread.h"

namespace headrace::llm {

/// The thread of an engine or an embedder: it makes one pass after the other, rests while there is nothing to
/// do, and ends with its owner.
class LoopThread {
public:
    /// What a pass returns when there is nothing to do until a wake.
    static constexpr std::chrono::milliseconds kUntilWoken = std::chrono::hours(24);

    ~LoopThread() { stop(); }

    /// pass: what is done again and again; returns how long it may rest, unless woken. It does not throw.
    /// Errors: of LargeStackThread.
    Status start(std::function<std::chrono::milliseconds()> pass);
    /// Cuts the rest after the pass that runs short. From any thread.
    void wake() { wake(*bell_); }
    /// wake as a function, which may outlive this.
    std::function<void()> waker() const;
    /// Waits for the end of the pass that runs. No other begins.
    void stop();
    /// For a pass that takes long: whether it should end.
    bool is_stopping() const { return bell_->stopping; }

private:
    struct Bell {
        std::mutex mutex;
        std::condition_variable rings;
        bool rung = false;
        std::atomic<bool> stopping = false;
    };
    static void wake(Bell& bell);

    std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
    LargeStackThread thread_;
};

}  // namespace headrace::llm
