#include "doors/serve/http/connection_threads.h"

#include <system_error>

namespace headrace::serve {
namespace {

constexpr std::size_t kMostSurplus = 64;

thread_local bool surplus = false;

}  // namespace

bool ConnectionThreads::is_surplus() { return surplus; }

bool ConnectionThreads::enqueue(std::function<void()> connection) {
    const std::lock_guard lock(mutex_);
    if (ends_ || serving_ >= most_ + kMostSurplus) return false;
    if (free_ == 0) {
        try {
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            return false;  // the system has no more
        }
    } else {
        --free_;
    }
    ++serving_;
    tasks_.push_back({std::move(connection), serving_ > most_});
    arrived_.notify_one();
    return true;
}

void ConnectionThreads::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        arrived_.wait(lock, [&] { return !tasks_.empty() || ends_; });
        if (tasks_.empty()) return;
        Task task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        surplus = task.is_surplus;
        task.connection();
        task.connection = nullptr;
        lock.lock();
        --serving_;
        ++free_;
    }
}

void ConnectionThreads::shutdown() {
    std::vector<std::thread> threads;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        threads.swap(threads_);
    }
    arrived_.notify_all();
    for (std::thread& thread : threads) thread.join();
}

}  // namespace headrace::serve
