#include "task.h"

namespace headrace::node {

std::optional<Failure> failure_of(const std::function<void()>& function) {
    try {
        function();
        return std::nullopt;
    } catch (const Exception& error) {
        return Failure{error.code(), error.what()};
    } catch (const std::bad_alloc&) {
        return Failure{Code::out_of_memory, "out of memory"};
    } catch (const std::exception& error) {
        return Failure{Code::backend_failure, error.what()};
    }
}

bool settle(napi_env env, napi_deferred deferred, const std::optional<Failure>& failure,
            const std::function<napi_value()>& value) {
    try {
        if (failure)
            check(napi_reject_deferred(env, deferred, error_value(env, failure->code, failure->message)));
        else
            check(napi_resolve_deferred(env, deferred, value()));
        return true;
    } catch (const PendingException&) {
        return false;
    }
}

void queue_work(napi_env env, napi_async_execute_callback execute, napi_async_complete_callback complete,
                void* data, napi_async_work& slot) {
    check(napi_create_async_work(env, nullptr, text(env, "headrace"), execute, complete, data, &slot));
    check(napi_queue_async_work(env, slot));
}

napi_value Task::start(napi_env env, std::unique_ptr<Task> task) {
    napi_value promise;
    check(napi_create_promise(env, &task->deferred_, &promise));
    const auto execute = [](napi_env, void* data) {
        auto* self = static_cast<Task*>(data);
        self->failure_ = failure_of([&] { self->run(); });
    };
    const auto complete = [](napi_env where, napi_status, void* data) {
        const std::unique_ptr<Task> self(static_cast<Task*>(data));
        settle(where, self->deferred_, self->failure_, [&] { return self->result(where); });
        napi_delete_async_work(where, self->work_);
    };
    queue_work(env, execute, complete, task.get(), task->work_);
    task.release();
    return promise;
}

}  // namespace headrace::node
