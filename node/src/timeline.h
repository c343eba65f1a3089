#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "task.h"

namespace headrace::node {

/// A context's operations on tensors, which run one after the other in the order of their calls, on a thread
/// of Node's pool. All but the running of operations belongs to the environment's thread.
class Timeline : public std::enable_shared_from_this<Timeline> {
public:
    struct Operation {
        std::function<void()> run;
        napi_deferred deferred = nullptr;  ///< settled once it has run
        napi_ref kept = nullptr;           ///< the memory that it writes to
        std::optional<Failure> failure = {};
    };
    /// `on_failure` is called with the message when an operation fails that has no promise.
    Timeline(napi_env env, napi_value on_failure);
    ~Timeline();

    void add(napi_env env, Operation operation);
    /// Rejects what has not begun, and takes no more.
    void close(napi_env env, const Failure& why);

private:
    struct Drain {
        std::shared_ptr<Timeline> timeline;
        napi_async_work work = nullptr;
    };
    void schedule(napi_env env);
    void run_some();
    void settle_done(napi_env env);
    void drop(napi_env env, std::deque<Operation> operations, const Failure& why);

    napi_env env_;
    napi_ref on_failure_ = nullptr;
    std::mutex mutex_;
    std::deque<Operation> waiting_;
    std::vector<Operation> done_;  ///< with a promise, or failed
    bool running_ = false;         ///< a thread takes from waiting_, or will
    bool closed_ = false;
};

}  // namespace headrace::node
