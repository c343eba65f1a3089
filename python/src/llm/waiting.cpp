#include "waiting.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace headrace::python {
namespace {

/// Counts of threads; none of them outlives a fork but the one that forks.
struct Calls {
    std::atomic<unsigned long> main_thread, closing_thread = 0;
    std::atomic<bool> closing = false;
    std::atomic<int> running = 0;    ///< without the lock, or in the background
    std::atomic<int> returning = 0;  ///< ask for the lock

    Calls() {
        const nb::object main = nb::module_::import_("threading").attr("main_thread")();
        main_thread = PyLong_AsUnsignedLong(nb::object(main.attr("ident")).ptr());
        pthread_atfork(nullptr, nullptr, [] {
            calls().main_thread = PyThread_get_thread_ident();
            calls().running = 0;
            calls().returning = 0;
        });
    }
    bool stops_here() const { return closing && PyThread_get_thread_ident() != closing_thread; }

    static Calls& calls() {
        static Calls* const only = new Calls;  // threads that have stopped may look at it until the end
        return *only;
    }
};

Calls& calls() { return Calls::calls(); }

[[noreturn]] void stop_for_good() {
    while (true) pause();
}

}  // namespace

bool is_main_thread() { return PyThread_get_thread_ident() == calls().main_thread; }

WithoutGil::WithoutGil() : state_((calls(), PyEval_SaveThread())) {
    ++calls().running;
    if (!calls().stops_here()) return;
    --calls().running;
    stop_for_good();
}

WithoutGil::~WithoutGil() {
    --calls().running;
    ++calls().returning;
    if (calls().stops_here()) {
        --calls().returning;
        stop_for_good();
    }
    PyEval_RestoreThread(state_);
    --calls().returning;
}

BackgroundWork::BackgroundWork() { ++calls().running; }
BackgroundWork::~BackgroundWork() { --calls().running; }

void stop_calls_at_exit(void (*cancel)()) {
    calls();  // imports a module, and so not later, where threads might wait for it and the lock crosswise
    const nb::object stop = nb::cpp_function([cancel] {
        calls().closing_thread = PyThread_get_thread_ident();
        calls().closing = true;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        PyThreadState* const state = PyEval_SaveThread();
        cancel();
        while (calls().returning > 0 || (calls().running > 0 && std::chrono::steady_clock::now() < until))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        PyEval_RestoreThread(state);
    });
    nb::module_::import_("atexit").attr("register")(stop);
}

}  // namespace headrace::python
