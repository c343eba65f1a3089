#include "llm/engine/embedding.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace headrace::llm {
namespace {

Clock::time_point after(Clock::time_point start, std::int64_t ms) {
    return ms < 0 ? Clock::time_point::max() : start + std::chrono::milliseconds(ms);
}

}  // namespace

Embedding::Embedding(std::uint64_t id, std::vector<Tokens> texts, EmbeddingRequest request)
    : id_(id), texts_(std::move(texts)), request_(std::move(request)) {}

std::size_t Embedding::token_count() const {
    return std::accumulate(texts_.begin(), texts_.end(), std::size_t{0},
                           [](std::size_t sum, const Tokens& text) { return sum + text.size(); });
}

Clock::time_point Embedding::deadline() const {
    const RequestSettings& settings = request_.settings;
    const Clock::time_point end = after(request_.arrival, settings.timeout_ms);
    return begun_ ? end : std::min(end, after(request_.arrival, settings.queue_timeout_ms));
}

Result<std::vector<TextVectors>> Embedding::wait() {
    std::unique_lock lock(mutex_);
    while (!over_) {
        const Clock::time_point until = deadline();
        if (Clock::now() >= until) {
            const RequestSettings& settings = request_.settings;
            const bool whole = until == after(request_.arrival, settings.timeout_ms);
            error_ = failure(Code::timed_out, "not {} within {} {}", whole ? "done" : "begun",
                             whole ? "timeout_ms" : "queue_timeout_ms",
                             whole ? settings.timeout_ms : settings.queue_timeout_ms);
            over_ = true;
        } else if (until == Clock::time_point::max()) {  // what wait_until may not take
            changed_.wait(lock);
        } else {
            changed_.wait_until(lock, until);
        }
    }
    if (error_) return *error_;
    return std::move(vectors_);
}

void Embedding::cancel() { fail(failure(Code::cancelled, "cancelled by the caller")); }

void Embedding::fail(Error error) {
    {
        const std::lock_guard lock(mutex_);
        if (over_) return;
        error_ = std::move(error);
        over_ = true;
    }
    changed_.notify_all();
}

void Embedding::begin() {
    {
        const std::lock_guard lock(mutex_);
        begun_ = true;
    }
    changed_.notify_all();  // it may be waited for longer now
}

bool Embedding::add(std::vector<TextVectors> vectors) {
    {
        const std::lock_guard lock(mutex_);
        if (over_) return true;
        std::move(vectors.begin(), vectors.end(), std::back_inserter(vectors_));
        over_ = vectors_.size() == texts_.size();
        if (!over_) return false;
    }
    changed_.notify_all();
    return true;
}

}  // namespace headrace::llm
