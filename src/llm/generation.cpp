#include "llm/generation.h"

namespace headrace::llm {

Generation::Generation(uint64_t id, GenerationRequest request) : id_(id), request_(std::move(request)) {}

Result<Generation::Piece> Generation::next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return done_ || !unread_.empty(); }))
        return failure(Code::timed_out, "no token within {} ms", patience.count());
    return Piece{std::exchange(unread_, {}), tokens_, done_};
}

const Outcome& Generation::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    return outcome_;
}

bool Generation::done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

void Generation::push(std::string_view text, int tokens) {
    {
        const std::lock_guard lock(mutex_);
        unread_ += text;
        tokens_ = tokens;
    }
    changed_.notify_all();
}

void Generation::finish(Outcome outcome) {
    {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
        done_ = true;
    }
    changed_.notify_all();
}

}  // namespace headrace::llm
