#pragma once
#include <pthread.h>

#include <functional>

#include "base/result.h"

namespace headrace::llm {

/// A thread with a stack of 512 MB, of which only what is used takes memory: llama.cpp matches the triggers
/// of lazy grammars with std::regex, which calls itself for each character of the answer.
class LargeStackThread {
public:
    LargeStackThread() = default;
    ~LargeStackThread() { join(); }
    LargeStackThread(const LargeStackThread&) = delete;
    LargeStackThread& operator=(const LargeStackThread&) = delete;

    /// Errors: the system has no thread or no address space for it. `work` does not throw.
    Status start(std::function<void()> work);
    /// Waits for its end; nothing, if it never began.
    void join();

private:
    std::function<void()> work_;
    pthread_t thread_{};
    bool runs_ = false;
};

}  // namespace headrace::llm
