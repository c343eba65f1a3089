#pragma once
#include <node_api.h>

#include <functional>
#include <memory>
#include <optional>

#include "values.h"

namespace headrace::node {

struct Failure {
    Code code;
    std::string message;
};

/// Runs the function; what it throws comes back.
std::optional<Failure> failure_of(const std::function<void()>& function);

/// Resolves with the value, or rejects. False when the environment runs no more JavaScript.
bool settle(napi_env env, napi_deferred deferred, const std::optional<Failure>& failure,
            const std::function<napi_value()>& value);

/// Work on a thread of Node's pool whose result settles a promise.
class Task {
public:
    virtual ~Task() = default;
    virtual void run() = 0;                       ///< on the pool's thread; may throw
    virtual napi_value result(napi_env env) = 0;  ///< on the environment's own thread

    /// The promise.
    static napi_value start(napi_env env, std::unique_ptr<Task> task);

private:
    napi_async_work work_ = nullptr;
    napi_deferred deferred_ = nullptr;
    std::optional<Failure> failure_;
};

/// Queues work for the pool; `complete` runs on the environment's thread and deletes the work, which it finds
/// through `slot`.
void queue_work(napi_env env, napi_async_execute_callback execute, napi_async_complete_callback complete,
                void* data, napi_async_work& slot);

}  // namespace headrace::node
