#include "timeline.h"

#include <chrono>

namespace headrace::node {
namespace {

using Clock = std::chrono::steady_clock;
/// Promises are settled when the thread pauses. It pauses soon after the first that waits for that, and from
/// time to time so that a worker that was told to end does so although much is queued.
constexpr auto kPromisePause = std::chrono::microseconds(100);
constexpr auto kPause = std::chrono::milliseconds(50);

bool runs_javascript(napi_env env) {
    napi_value global;
    bool found = false;
    return napi_get_global(env, &global) == napi_ok &&
           napi_has_named_property(env, global, "Object", &found) == napi_ok;
}

}  // namespace

Timeline::Timeline(napi_env env, napi_value on_failure) : env_(env) {
    check(napi_create_reference(env, on_failure, 1, &on_failure_));
}

Timeline::~Timeline() { napi_delete_reference(env_, on_failure_); }

void Timeline::add(napi_env env, Operation operation) {
    bool idle = false;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) throw Exception(Code::invalid_state, "the context is lost");
        waiting_.push_back(std::move(operation));
        idle = !running_;
        running_ = true;
    }
    if (idle) schedule(env);
}

void Timeline::schedule(napi_env env) {
    auto drain = std::make_unique<Drain>();
    drain->timeline = shared_from_this();
    const auto execute = [](napi_env, void* data) { static_cast<Drain*>(data)->timeline->run_some(); };
    const auto complete = [](napi_env where, napi_status, void* data) {
        const std::unique_ptr<Drain> self(static_cast<Drain*>(data));
        self->timeline->settle_done(where);
        napi_delete_async_work(where, self->work);
    };
    queue_work(env, execute, complete, drain.get(), drain->work);
    drain.release();
}

void Timeline::run_some() {
    const auto begin = Clock::now();
    std::optional<Clock::time_point> first_done;
    std::unique_lock lock(mutex_);
    while (!waiting_.empty()) {
        const auto now = Clock::now();
        if (now - begin > kPause || (first_done && now - *first_done > kPromisePause)) break;
        Operation operation = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        operation.failure = failure_of(operation.run);
        operation.run = nullptr;  // what it held is freed here, not on the environment's thread
        lock.lock();
        if (!operation.deferred && !operation.failure) continue;
        if (!first_done) first_done = Clock::now();
        done_.push_back(std::move(operation));
    }
    running_ = false;
}

void Timeline::drop(napi_env env, std::deque<Operation> operations, const Failure& why) {
    for (Operation& operation : operations) {
        if (operation.kept) napi_delete_reference(env, operation.kept);
        if (operation.deferred) settle(env, operation.deferred, why, {});
    }
}

void Timeline::close(napi_env env, const Failure& why) {
    std::deque<Operation> left;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        left.swap(waiting_);
    }
    drop(env, std::move(left), why);
}

void Timeline::settle_done(napi_env env) {
    std::vector<Operation> done;
    {
        const std::lock_guard lock(mutex_);
        done.swap(done_);
    }
    if (!runs_javascript(env)) return close(env, {Code::invalid_state, "the environment has ended"});
    for (Operation& operation : done) {
        if (operation.kept) napi_delete_reference(env, operation.kept);
        if (operation.deferred) {
            settle(env, operation.deferred, operation.failure, [&] { return undefined(env); });
        } else {
            close(env, *operation.failure);
            napi_value function, receiver, result;
            if (napi_get_reference_value(env, on_failure_, &function) != napi_ok ||
                napi_get_undefined(env, &receiver) != napi_ok)
                continue;
            const napi_value message = text(env, operation.failure->message);
            napi_call_function(env, receiver, function, 1, &message, &result);
        }
    }
    {
        const std::lock_guard lock(mutex_);
        if (running_ || waiting_.empty()) return;
        running_ = true;
    }
    schedule(env);
}

}  // namespace headrace::node
