#pragma once
#include <cstdint>
#include <mutex>
#include <string>

namespace headrace::serve {

/// The error of a request whose client left before its answer ended.
inline constexpr const char* kClientIsGone = "the client went away";

/// What a request took, for the log: its handler writes it while the answer is made. Thread-safe.
class AnswerRecord {
public:
    struct Numbers {
        std::string model;  ///< empty where none was asked
        std::string error;  ///< of a request that was refused, failed, or was left by its client
        std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
        double queued_ms = 0, prompt_ms = 0, generate_ms = 0;  ///< of the answer that ended last
    };

    void set_model(const std::string& model) {
        const std::lock_guard lock(mutex_);
        numbers_.model = model;
    }
    void set_error(const std::string& message) {
        const std::lock_guard lock(mutex_);
        numbers_.error = message;
    }
    /// One more answer to the same request.
    void add(const Numbers& answer) {
        const std::lock_guard lock(mutex_);
        numbers_.prompt_tokens += answer.prompt_tokens;
        numbers_.cached_tokens += answer.cached_tokens;
        numbers_.generated_tokens += answer.generated_tokens;
        numbers_.queued_ms = answer.queued_ms;
        numbers_.prompt_ms = answer.prompt_ms;
        numbers_.generate_ms = answer.generate_ms;
    }
    Numbers numbers() const {
        const std::lock_guard lock(mutex_);
        return numbers_;
    }

private:
    mutable std::mutex mutex_;
    Numbers numbers_;
};

}  // namespace headrace::serve
