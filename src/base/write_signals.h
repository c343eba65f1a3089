#pragma once
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace headrace::llm {

/// Keeps the signals with which the kernel answers a write to a closed pipe (SIGPIPE) or beyond the limit of
/// a file's size (SIGXFSZ) from being delivered. The mask is the calling thread's own; handlers stay as they
/// are.
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
        const timespec now{};
        if (has_failed_) sigtimedwait(&ours_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = saved;
    }
    /// What errno was after a write that failed.
    void note(int error) { has_failed_ = error == EPIPE || error == EFBIG; }

    WithoutWriteSignals(const WithoutWriteSignals&) = delete;
    WithoutWriteSignals& operator=(const WithoutWriteSignals&) = delete;

private:
    sigset_t ours_, before_;
    bool has_failed_ = false;
};

}  // namespace headrace::llm
