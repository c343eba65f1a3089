#include "llm/engine/generation.h"

namespace headrace::llm {
namespace {

constexpr auto kGrace = std::chrono::milliseconds(250);

void append(headrace::Piece& piece, const headrace::Piece& next) {
    piece.text += next.text;
    piece.tokens = next.tokens;
    piece.new_tokens.insert(piece.new_tokens.end(), next.new_tokens.begin(), next.new_tokens.end());
}

}  // namespace

Generation::Generation(std::uint64_t id, GenerationRequest request) : id_(id), request_(std::move(request)) {}

/// With time for the engine, which says more.
Clock::time_point Generation::deadline() const {
    const std::int64_t limit = request_.settings.timeout_ms;
    if (limit < 0) return Clock::now() + std::chrono::hours(24);
    return request_.arrival + std::chrono::milliseconds(limit) + kGrace;
}

/// The engine's step goes on; what it gives comes too late.
void Generation::give_up() {
    if (request_.settings.timeout_ms < 0) return;
    cancelled_ = true;
    outcome_ = {.reason = StopReason::timed_out,
                .detail = fmt::format("not done within timeout_ms {}, and the step that runs has not ended",
                                      request_.settings.timeout_ms),
                .code = Code::timed_out,
                .text = text_,
                .prompt_tokens = static_cast<int>(request_.prompt.size())};
    done_ = true;
}

Result<Generation::Piece> Generation::next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!wait_for_news(lock, patience))
        return failure(Code::timed_out, "no token within {} ms", patience.count());
    Piece piece;
    if (!unread_.empty()) {
        static_cast<headrace::Piece&>(piece) = std::move(unread_.front());
        unread_.pop_front();
    }
    piece.tokens = unread_.empty() ? tokens_ : piece.tokens;
    piece.done = done_ && unread_.empty();
    return piece;
}

bool Generation::wait_for(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return wait_for_news(lock, patience);
}

bool Generation::wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience) {
    const auto until = Clock::now() + patience;
    const auto is_news = [&] { return done_ || !unread_.empty(); };
    if (changed_.wait_until(lock, std::min(until, deadline()), is_news)) return true;
    if (until < deadline()) return false;
    give_up();
    return true;
}

const Outcome& Generation::wait() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_until(lock, deadline(), [&] { return done_; })) give_up();
    return outcome_;
}

bool Generation::done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

void Generation::push(headrace::Piece piece) {
    {
        const std::lock_guard lock(mutex_);
        if (done_) return;
        text_ += piece.text;
        tokens_ = piece.tokens;
        const bool is_apart = piece.progress || request_.settings.sampling.n_probs > 0;
        if (is_apart || unread_.empty() || unread_.back().progress)
            unread_.push_back(std::move(piece));
        else
            append(unread_.back(), piece);
    }
    changed_.notify_all();
}

void Generation::finish(Outcome outcome) {
    {
        const std::lock_guard lock(mutex_);
        if (done_) return;
        outcome_ = std::move(outcome);
        done_ = true;
    }
    changed_.notify_all();
}

}  // namespace headrace::llm
