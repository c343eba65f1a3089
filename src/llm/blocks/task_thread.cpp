#include "llm/blocks/task_thread.h"

#include <new>
#include <utility>

namespace headrace::llm {

TaskThread::TaskThread() : thread_([this] { run(); }) {}

void TaskThread::post(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
}

void TaskThread::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void TaskThread::run() {
    for (;;) {
        std::function<void()> task;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
            if (stopping_) return;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        try {
            task();
        } catch (const std::bad_alloc&) {  // whoever waits for it gives up by the clock
        }
    }
}

}  // namespace headrace::llm
