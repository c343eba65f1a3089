#include "llm/engine/large_stack_thread.h"

#include <cstddef>
#include <cstring>

namespace headrace::llm {

Status LargeStackThread::start(std::function<void()> work) {
    constexpr std::size_t kStack = std::size_t{512} << 20;
    work_ = std::move(work);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    const int error = pthread_create(
        &thread_, &attributes,
        [](void* self) -> void* {
            static_cast<LargeStackThread*>(self)->work_();
            return nullptr;
        },
        this);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        return failure(Code::out_of_memory, "no thread with a stack of {} MiB: {}; is `ulimit -v` too small?",
                       kStack >> 20, std::strerror(error));
    runs_ = true;
    return success();
}

void LargeStackThread::join() {
    if (runs_) pthread_join(thread_, nullptr);
    runs_ = false;
}

}  // namespace headrace::llm
