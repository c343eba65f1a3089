#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/model/model.h"
#include "llm/settings.h"
#include "llm/stopping/stop_conditions.h"

namespace headrace::llm {

using Clock = std::chrono::steady_clock;

/// How a generation went.
struct Outcome {
    StopReason reason = StopReason::none;
    std::string detail;                 ///< the stop string, the repeated text, the error's message
    Code code = Code::backend_failure;  ///< of a failed, cancelled or timed out one
    std::string parameter = {};         ///< of a failed one: as Error has it
    std::string text;
    Tokens tokens;                ///< generated
    std::size_t text_tokens = 0;  ///< of these, the first ones: those that the text is of
    int prompt_tokens = 0, cached_tokens = 0;
    int drafted = 0, accepted = 0;
    int pauses = 0;       ///< times a higher priority went first
    int shifts = 0;       ///< times the context was shifted
    int read_tokens = 0;  ///< of the prompt, in steps of this request
    double queued_ms = 0, prompt_ms = 0, generate_ms = 0;
    std::vector<std::vector<TokenProbability>> probabilities;  ///< of each token, when asked for; no texts
    std::vector<float> token_probabilities;                    ///< of the tokens themselves
    /// Likewise of each token of the prompt but the first, with prompt_probs.
    std::vector<std::vector<TokenProbability>> prompt_probabilities;
    std::vector<float> prompt_token_probabilities;

    bool failed() const {
        return reason == StopReason::failed || reason == StopReason::cancelled ||
               reason == StopReason::timed_out;
    }
    /// Why it failed.
    Error error() const { return {code, detail, parameter}; }
};

/// What an engine is asked for.
struct GenerationRequest {
    Tokens prompt;
    std::vector<ImagePiece> images;  ///< that the prompt's negative tokens stand for
    RequestSettings settings;
    std::string owner;                         ///< requests of one owner take turns with those of others
    std::string session;                       ///< for the log
    bool add_special_pieces = false;           ///< control tokens show in the text
    Clock::time_point arrival = Clock::now();  ///< from which its timeouts count
};

/// A generation that an engine works on: its caller reads pieces here and may cancel; the engine writes.
class Generation {
public:
    Generation(std::uint64_t id, GenerationRequest request);

    std::uint64_t id() const { return id_; }

    struct Piece : headrace::Piece {
        bool done = false;  ///< the rest is then what remained
    };
    /// Blocks until there is more text or the end. Code::timed_out when nothing came in that time.
    Result<Piece> next(std::chrono::milliseconds patience = std::chrono::hours(24));
    /// Blocks no longer than that; whether `next` has an answer now.
    bool wait_for(std::chrono::milliseconds patience);
    /// Blocks until the end, or until timeout_ms is over: a step that waits for a remote host may take
    /// longer, and its request does not.
    const Outcome& wait();
    bool done() const;
    /// From any thread; takes effect within a step of the engine.
    void cancel() {
        cancelled_ = true;
        wake_();
    }

    // For the engine.
    const GenerationRequest& request() const { return request_; }
    bool is_cancelled() const { return cancelled_; }
    Clock::time_point arrival() const { return request_.arrival; }
    void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
    void push(headrace::Piece piece);
    void finish(Outcome outcome);

private:
    Clock::time_point deadline() const;
    bool wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience);
    void give_up();

    const std::uint64_t id_;
    const GenerationRequest request_;
    std::atomic<bool> cancelled_ = false;
    std::function<void()> wake_ = [] {};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<headrace::Piece> unread_;  // one, unless each token is wanted for itself
    std::string text_;
    std::int64_t tokens_ = 0;
    bool done_ = false;
    Outcome outcome_;
};

}  // namespace headrace::llm
