#include "llm/engine/loop_thread.h"

#include <utility>

namespace headrace::llm {

Status LoopThread::start(std::function<std::chrono::milliseconds()> pass) {
    return thread_.start([&bell = *bell_, pass = std::move(pass)] {
        while (!bell.stopping) {
            const std::chrono::milliseconds rest = pass();
            std::unique_lock lock(bell.mutex);
            if (rest.count() > 0) bell.rings.wait_for(lock, rest, [&] { return bell.rung; });
            bell.rung = false;
        }
    });
}

void LoopThread::wake(Bell& bell) {
    {
        const std::lock_guard lock(bell.mutex);
        bell.rung = true;
    }
    bell.rings.notify_all();
}

std::function<void()> LoopThread::waker() const {
    return [weak = std::weak_ptr(bell_)] {
        if (const auto bell = weak.lock()) wake(*bell);
    };
}

void LoopThread::stop() {
    bell_->stopping = true;
    wake();
    thread_.join();
}

}  // namespace headrace::llm
