#pragma once
#include <cpp-httplib/httplib.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace headrace::serve {

/// A thread for each connection, as an answer may take minutes: nobody waits behind somebody else's. Beyond
/// `most` connections a few more are served by threads that say so (is_surplus), and others are closed.
class ConnectionThreads : public httplib::TaskQueue {
public:
    /// ended: counts threads that have ended.
    ConnectionThreads(std::size_t most, std::atomic<std::size_t>& ended) : most_(most), ended_count_(ended) {}

    bool enqueue(std::function<void()> connection) override;
    void shutdown() override;

    /// Whether this thread's connection is one too many.
    static bool is_surplus();

private:
    struct Task {
        std::function<void()> connection;
        bool is_surplus;
    };
    void work(std::size_t number);
    void join_ended();

    const std::size_t most_;
    std::atomic<std::size_t>& ended_count_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Task> tasks_;
    std::map<std::size_t, std::thread> threads_;
    std::vector<std::thread> ended_;  // to be joined
    std::size_t next_ = 0;
    std::size_t free_ = 0;     // threads that wait, less the tasks that wait for them
    std::size_t serving_ = 0;  // connections
    bool ends_ = false;
};

}  // namespace headrace::serve
