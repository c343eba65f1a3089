#include "calls.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "../task.h"

namespace headrace::node::llm {
namespace {

/// As many as calls that wait at once: a thread that is idle takes the next call.
class Threads {
public:
    /// Never destroyed: threads may use it until the process is gone.
    static Threads& all() {
        static Threads* const only = new Threads;
        return *only;
    }

    void run(std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        if (has_ended_) return;
        waiting_.push_back(std::move(work));
        if (waiting_.size() > idle_) threads_.emplace_back([this] { serve(); });
        changed_.notify_one();
    }

    bool have_ended() const { return has_ended_; }

    void end() {
        std::vector<std::thread> threads;
        {
            const std::lock_guard lock(mutex_);
            has_ended_ = true;
            waiting_.clear();
            threads.swap(threads_);
        }
        changed_.notify_all();
        for (std::thread& thread : threads) thread.join();
    }

private:
    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            ++idle_;
            changed_.wait(lock, [&] { return has_ended_ || !waiting_.empty(); });
            --idle_;
            if (waiting_.empty()) return;
            auto work = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            work();
            work = nullptr;
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    std::atomic<bool> has_ended_ = false;
};

}  // namespace

/// What threads share with the environment, which may end before they do.
struct Calls::Shared {
    std::mutex mutex;
    bool is_closed = false;
    napi_threadsafe_function wake = nullptr;
    std::size_t pending = 0;  ///< of the environment's thread alone
};

struct Calls::Outcome {
    std::shared_ptr<Shared> shared;
    napi_deferred deferred = nullptr;
    std::optional<Failure> failure;
    MakeValue value;
};

Calls::Calls(napi_env env) : env_(env), shared_(std::make_shared<Shared>()) {
    check(napi_create_threadsafe_function(env, nullptr, nullptr, text(env, "headrace"), 0, 1, nullptr,
                                          nullptr, nullptr, settle_outcome, &shared_->wake));
    check(napi_unref_threadsafe_function(env, shared_->wake));
    // Hooks run in reverse: this one before the one that ends `wake`.
    check(napi_add_env_cleanup_hook(env, close, this));
}

void Calls::create(napi_env env) {
    auto* calls = new Calls(env);
    const auto release = [](napi_env, void* data, void*) { delete static_cast<Calls*>(data); };
    check(napi_set_instance_data(env, calls, release, nullptr));
}

Calls& Calls::of(napi_env env) {
    void* data = nullptr;
    check(napi_get_instance_data(env, &data));
    return *static_cast<Calls*>(data);
}

void Calls::close(void* calls) {
    Shared& shared = *static_cast<Calls*>(calls)->shared_;
    const std::lock_guard lock(shared.mutex);
    shared.is_closed = true;
}

napi_value Calls::start(std::function<MakeValue()> work) {
    auto outcome = std::make_shared<std::unique_ptr<Outcome>>(std::make_unique<Outcome>());
    napi_value promise;
    check(napi_create_promise(env_, &(*outcome)->deferred, &promise));
    (*outcome)->shared = shared_;
    // The loop goes on while promises are open, and only then.
    if (shared_->pending++ == 0) check(napi_ref_threadsafe_function(env_, shared_->wake));
    Threads::all().run([outcome, work = std::move(work)]() mutable {
        (*outcome)->failure = failure_of([&] { (*outcome)->value = work(); });
        work = nullptr;
        const auto shared = (*outcome)->shared;
        const std::lock_guard lock(shared->mutex);
        if (shared->is_closed || Threads::all().have_ended()) return;
        Outcome* const sent = outcome->release();
        if (napi_call_threadsafe_function(shared->wake, sent, napi_tsfn_nonblocking) != napi_ok) delete sent;
    });
    return promise;
}

void Calls::settle_outcome(napi_env env, napi_value, void*, void* data) {
    const std::unique_ptr<Outcome> outcome(static_cast<Outcome*>(data));
    if (!env) return;  // it has ended
    settle(env, outcome->deferred, outcome->failure, [&] { return outcome->value(env); });
    if (--outcome->shared->pending == 0) napi_unref_threadsafe_function(env, outcome->shared->wake);
}

void end_threads() { Threads::all().end(); }

}  // namespace headrace::node::llm
