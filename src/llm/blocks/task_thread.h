#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace headrace::llm {

/// A thread that does what it is given, one after the other: what may take long, so that others need not
/// wait for it. Thread-safe.
class TaskThread {
public:
    /// Throws std::system_error where the system has no thread.
    TaskThread();
    ~TaskThread() { stop(); }
    TaskThread(const TaskThread&) = delete;
    TaskThread& operator=(const TaskThread&) = delete;

    /// The task throws nothing but std::bad_alloc, which ends it.
    void post(std::function<void()> task);
    /// Drops what has not begun, and waits for what has.
    void stop();

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace headrace::llm
