#pragma once
#include <atomic>
#include <cstddef>
#include <functional>

namespace headrace {

/// What check_stop throws.
struct RunStopped {};

/// Whether a run is to end before its end. The thread that runs asks its caller; the others look at what it
/// got.
class RunStop {
public:
    /// ask: for the next run; null: nobody stops it.
    void begin(const std::function<bool()>* ask) {
        ask_ = ask;
        is_stopped_.store(false, std::memory_order_relaxed);
    }
    bool may_stop() const { return ask_ != nullptr; }
    bool is_stopped() const { return is_stopped_.load(std::memory_order_relaxed); }
    /// Called by the thread that runs.
    bool asked() {
        if (!is_stopped() && (*ask_)()) is_stopped_.store(true, std::memory_order_relaxed);
        return is_stopped();
    }

private:
    const std::function<bool()>* ask_ = nullptr;
    std::atomic<bool> is_stopped_ = false;
};

/// The run that this thread computes a part of while an object of this lives.
class PartOfRun {
public:
    /// asks: it is the thread that runs.
    PartOfRun(RunStop& stop, bool asks) : before_(current()) { current() = {&stop, asks}; }
    ~PartOfRun() { current() = before_; }
    PartOfRun(const PartOfRun&) = delete;
    PartOfRun& operator=(const PartOfRun&) = delete;

    static bool is_stopped() {
        const Current& now = current();
        return now.stop && (now.asks ? now.stop->asked() : now.stop->is_stopped());
    }

private:
    struct Current {
        RunStop* stop = nullptr;
        bool asks = false;
    };
    static Current& current() {
        thread_local Current now;
        return now;
    }

    const Current before_;
};

/// For work of a kernel that no share bounds, now and then: throws RunStopped where its run is to end.
inline void check_stop() {
    if (PartOfRun::is_stopped()) throw RunStopped{};
}

/// The same after so many steps of some nanoseconds each.
class StopCheck {
public:
    void operator()(std::size_t steps = 1) {
        constexpr std::size_t kSteps = 4096;
        steps_ += steps;
        if (steps_ < kSteps) return;
        steps_ = 0;
        check_stop();
    }

private:
    std::size_t steps_ = 0;
};

}  // namespace headrace
