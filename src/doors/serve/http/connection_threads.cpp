#include "doors/serve/http/connection_threads.h"

#include <chrono>
#include <system_error>

namespace headrace::serve {
namespace {

constexpr std::size_t kMostSurplus = 64;
constexpr std::chrono::seconds kRest(10);  // a thread without a connection for that long ends

thread_local bool surplus = false;

}  // namespace

bool ConnectionThreads::is_surplus() { return surplus; }

bool ConnectionThreads::enqueue(std::function<void()> connection) {
    const std::lock_guard lock(mutex_);
    if (ends_ || serving_ >= most_ + kMostSurplus) return false;
    join_ended();
    if (free_ == 0) {
        try {
            const std::size_t number = next_++;
            threads_.emplace(number, std::thread([this, number] { work(number); }));
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

void ConnectionThreads::work(std::size_t number) {
    std::unique_lock lock(mutex_);
    for (;;) {
        const bool woken = arrived_.wait_for(lock, kRest, [&] { return !tasks_.empty() || ends_; });
        if (!woken) {
            if (free_ == 0) continue;  // a task is on its way to it
            --free_;
            join_ended();  // until then a thread keeps its stack
            ++ended_count_;
            const auto own = threads_.find(number);
            ended_.push_back(std::move(own->second));
            threads_.erase(own);
            return;
        }
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

void ConnectionThreads::join_ended() {
    for (std::thread& thread : ended_) thread.join();
    ended_.clear();
}

void ConnectionThreads::shutdown() {
    std::map<std::size_t, std::thread> threads;
    std::vector<std::thread> ended;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        threads.swap(threads_);
        ended.swap(ended_);
    }
    arrived_.notify_all();
    for (auto& [number, thread] : threads) thread.join();
    for (std::thread& thread : ended) thread.join();
}

}  // namespace headrace::serve
