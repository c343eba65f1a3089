#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "encoder/encoder_graph.h"
#include "encoder/waiting_texts.h"
#include "encoder/width_choice.h"

namespace headrace {

/// Texts that one caller waits for.
struct TextCall {
    std::vector<TokenizedText> texts;
    std::vector<std::vector<float>> rows;  ///< what the graph gives for each

    // These members are guarded by the threads' lock.
    std::size_t left = 0;  ///< texts without a row
    std::optional<Error> error;
    std::condition_variable ended;
};

/// Threads that run a graph for the texts of all calls. A run has one core while others have runs of their
/// own, which needs no barriers between cores; when it is alone it may have all.
class EncoderThreads {
public:
    struct Options {
        std::int32_t padding = 0;
        std::int64_t most_tokens = 0;
        std::size_t most_calls = 0;  ///< 0: any number
        int threads = 1;
    };
    /// Throws headrace::Exception.
    EncoderThreads(const Executable& executable, const EncoderShape& shape, Options options);
    /// Calls that wait end with Code::cancelled.
    ~EncoderThreads();

    /// Waits until the texts have their rows.
    Status run(const std::shared_ptr<TextCall>& call, const EncodeCall& options);
    void cancel_all();
    TextEncoderStatistics statistics() const;

private:
    void work();
    // With the lock, as all that follow.
    bool is_callers_own(const TextCall& call) const;
    void serve_next(std::unique_lock<std::mutex>& lock);
    void serve(EncoderRuns& runs, std::vector<WaitingText> texts, std::unique_lock<std::mutex>& lock);
    Status begin(const std::shared_ptr<TextCall>& call);
    void end(TextCall& call, std::optional<Error> error);
    Status wait(const std::shared_ptr<TextCall>& call, const EncodeCall& options,
                std::unique_lock<std::mutex>& lock);

    const Options options_;
    std::vector<EncoderRuns> runs_;  // as many as threads
    mutable std::mutex mutex_;
    std::condition_variable arrived_;
    /// The last that ran is the next: calls that are alone find their plans and memory warm.
    std::vector<EncoderRuns*> free_;
    WaitingTexts waiting_;
    TextEncoderStatistics counts_;
    std::size_t calls_ = 0;  // that wait or run
    WidthChoice width_;
    bool is_wide_ = false;  // a run has all cores: barriers of others beside it would take time slices
    bool ends_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace headrace
