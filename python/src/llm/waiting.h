#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

/// How calls wait: without the interpreter's lock, ended by Ctrl-C, and safe when the interpreter goes down.
namespace headrace::python {

namespace nb = nanobind;

/// Other Python threads run while it lives. When the interpreter goes down, daemon threads stop here for
/// good: Python would end them where they ask for the lock, by an unwinding that C++ frames do not survive.
class WithoutGil {
public:
    WithoutGil();
    ~WithoutGil();
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

private:
    PyThreadState* state_;
};

/// Work that goes on in a thread of its own, when its caller has given it up, too.
class BackgroundWork {
public:
    BackgroundWork();
    ~BackgroundWork();
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;
};

/// Whether Python handles signals in this thread.
bool is_main_thread();

using Patience = std::chrono::milliseconds;

/// Repeats `step`, without the lock, until it gives a value: it waits no longer than the patience it is
/// given. Raises what a signal's handler raises.
template <class Step>
auto wait_in_steps(Step step) {
    const Patience patience = is_main_thread() ? Patience(50) : Patience(std::chrono::hours(24));
    while (true) {
        // Also where nothing is waited for: list() of a stream runs no Python code that would look for
        // signals.
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        const WithoutGil other_threads_run;
        if (auto value = step(patience)) return *std::move(value);
    }
}

/// Calls what cannot be waited for in steps. In the main thread a signal ends the wait, and what `call` still
/// does and gives is then nobody's: it must own all that it reads.
template <class Call>
auto interruptible(Call call) {
    using Result = std::invoke_result_t<Call>;
    if (!is_main_thread()) {
        const WithoutGil other_threads_run;
        return call();
    }
    std::packaged_task<Result()> task(std::move(call));
    std::future<Result> result = task.get_future();
    std::thread([work = std::make_unique<BackgroundWork>(), task = std::move(task)]() mutable {
        task();
        task = {};
    }).detach();
    wait_in_steps([&](Patience patience) -> std::optional<bool> {
        if (result.wait_for(patience) == std::future_status::ready) return true;
        return std::nullopt;
    });
    return result.get();
}

/// Lets go of what may have to wait for an engine's step.
template <class T>
void release(T& held) {
    if (!held) return;
    const WithoutGil other_threads_run;
    held.reset();
}

/// Has calls stop when the interpreter ends: `cancel` ends what can be ended, what runs is waited for, a
/// while, and no thread but the last begins a call or comes back from one. Once, before any call.
void stop_calls_at_exit(void (*cancel)());

}  // namespace headrace::python
