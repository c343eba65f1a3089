#pragma once
#include <cerrno>

#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
#define HEADRACE_WRITES_RAISE_SIGNALS
#include <pthread.h>
#include <signal.h>

#include <ctime>
#endif

namespace headrace {

/// Keeps the signals with which the kernel answers a write to a closed pipe (SIGPIPE) or beyond the limit of
/// a file's size (SIGXFSZ) from being delivered. The mask is the calling thread's own; handlers stay as they
/// are. Systems without such signals have nothing to keep.
#ifdef HEADRACE_WRITES_RAISE_SIGNALS
class WithoutWriteSignals {
public:
    WithoutWriteSignals() {
        sigset_t pending;
        sigemptyset(&pending);
        sigpending(&pending);
        sigemptyset(&ours_);
        for (const int signal : {SIGPIPE, SIGXFSZ})
            if (!sigismember(&pending, signal)) sigaddset(&ours_, signal);  // others' stay pending
        pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    }
    /// A signal that arose since then is taken back: without an error there was none, and another's is left
    /// alone.
    ~WithoutWriteSignals() {
        const int saved = errno;
        if (has_failed_) take_back();
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = saved;
    }
    /// What errno was after a write that failed.
    void note(int error) { has_failed_ = error == EPIPE || error == EFBIG; }

    WithoutWriteSignals(const WithoutWriteSignals&) = delete;
    WithoutWriteSignals& operator=(const WithoutWriteSignals&) = delete;

private:
    void take_back() {
#ifdef __APPLE__  // has no sigtimedwait
        sigset_t pending;
        sigpending(&pending);
        int taken = 0;
        for (const int signal : {SIGPIPE, SIGXFSZ})
            if (sigismember(&ours_, signal) && sigismember(&pending, signal)) sigwait(&ours_, &taken);
#else
        const timespec now{};
        sigtimedwait(&ours_, nullptr, &now);
#endif
    }

    sigset_t ours_, before_;
    bool has_failed_ = false;
};
#else
class WithoutWriteSignals {
public:
    void note(int) {}
};
#endif

}  // namespace headrace
