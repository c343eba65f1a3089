#include "encoder/encoder_threads.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

constexpr std::chrono::milliseconds kLook(50);  // whether the caller gave up

/// Texts of a call that have the same turn: a call of thousands lets others in between.
constexpr std::size_t kTextsOfATurn = 8;

/// A run of so many is over before a caller that gives up could tell.
constexpr std::size_t kCallersTokens = 256;

}  // namespace

EncoderThreads::EncoderThreads(const Executable& executable, const EncoderShape& shape, Options options)
    : options_(options) {
    for (int i = 0; i < options_.threads; ++i) runs_.emplace_back(executable, shape, options_.padding);
    for (EncoderRuns& runs : runs_) free_.push_back(&runs);
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

EncoderThreads::~EncoderThreads() {
    cancel_all();
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void EncoderThreads::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        arrived_.wait(lock, [this] {
            return ends_ ||
                   (waiting_.size() > 0 && !is_wide_ && std::cmp_less(counts_.running, options_.threads));
        });
        if (ends_) return;
        serve_next(lock);
    }
}

void EncoderThreads::serve_next(std::unique_lock<std::mutex>& lock) {
    EncoderRuns* const runs = free_.back();
    free_.pop_back();
    ++counts_.running;
    serve(*runs, waiting_.take(), lock);
    --counts_.running;
    free_.push_back(runs);
    if (waiting_.size() > 0) arrived_.notify_all();  // what came while no other might run
}

void EncoderThreads::serve(EncoderRuns& runs, std::vector<WaitingText> texts,
                           std::unique_lock<std::mutex>& lock) {
    const bool is_alone = counts_.running == 1 && waiting_.size() == 0 && options_.threads > 1;
    std::vector<const TokenizedText*> rows;
    std::int64_t longest = 0, tokens = 0;
    for (const WaitingText& text : texts) {
        rows.push_back(&text.call->texts[text.index]);
        const auto size = static_cast<std::int64_t>(rows.back()->ids.size());
        longest = std::max(longest, size);
        tokens += size;
    }
    const std::int64_t length = run_length(longest, options_.most_tokens);
    std::optional<Error> error;
    const auto cost = length * static_cast<std::int64_t>(rows.size()) + WaitingTexts::kRunTokens;
    const bool is_wide = is_alone && width_.is_wide(cost);
    is_wide_ = is_wide;
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    try {
        const std::span<const float> all = runs.run(rows, length, is_wide ? options_.threads : 1);
        const std::size_t width = all.size() / rows.size();
        // These rows are read by the caller alone, once the call has none left.
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const auto row = all.subspan(i * width, width);
            texts[i].call->rows[texts[i].index].assign(row.begin(), row.end());
        }
    } catch (const Exception& exception) {
        error = Error{exception.code(), exception.what()};
    } catch (const std::exception& exception) {
        error = Error{Code::backend_failure, exception.what()};
    }
    lock.lock();
    if (is_alone) {
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        width_.record(is_wide, cost, took.count());
    }
    is_wide_ = false;
    ++counts_.runs;
    counts_.texts += texts.size();
    counts_.tokens += static_cast<std::uint64_t>(tokens);
    counts_.padding += static_cast<std::uint64_t>(length * static_cast<std::int64_t>(rows.size()) - tokens);
    for (const WaitingText& text : texts) {
        TextCall& call = *text.call;
        if (call.left == 0) continue;
        if (error)
            end(call, error);
        else if (--call.left == 0)
            end(call, std::nullopt);
    }
    // The waiting texts of a failed call are dropped.
    if (error) waiting_.remove_if([](const WaitingText& text) { return text.call->left == 0; });
}

Status EncoderThreads::begin(const std::shared_ptr<TextCall>& call) {
    if (options_.most_calls > 0 && calls_ >= options_.most_calls)
        return failure(Code::busy, "{} calls wait or run, which is as many as may", calls_);
    ++calls_;
    ++counts_.calls;
    call->left = call->texts.size();
    call->rows.resize(call->texts.size());
    for (std::size_t i = 0; i < call->texts.size(); ++i)
        waiting_.add(static_cast<std::int64_t>(call->texts[i].ids.size()),
                     {call, i, waiting_.turn() + i / kTextsOfATurn});
    return success();
}

void EncoderThreads::end(TextCall& call, std::optional<Error> error) {
    call.left = 0;
    call.error = std::move(error);
    --calls_;
    ++(!call.error                           ? counts_.finished
       : call.error->code == Code::cancelled ? counts_.cancelled
                                             : counts_.failed);
    call.ended.notify_all();
}

Status EncoderThreads::wait(const std::shared_ptr<TextCall>& call, const EncodeCall& options,
                            std::unique_lock<std::mutex>& lock) {
    using Clock = std::chrono::steady_clock;
    const bool has_limit = options.timeout.count() > 0;
    const Clock::time_point until = has_limit ? Clock::now() + options.timeout : Clock::time_point::max();
    Clock::time_point look = Clock::now();  // at once: the caller may be gone already
    while (!call->ended.wait_until(lock, std::min(look, until), [&] { return call->left == 0; })) {
        lock.unlock();
        look = Clock::now() + kLook;
        std::optional<Error> error;
        if (options.is_cancelled && options.is_cancelled())
            error = failure(Code::cancelled, "the caller gave up");
        else if (has_limit && Clock::now() >= until)
            error = failure(Code::timed_out, "the texts were not read within {} ms", options.timeout.count());
        lock.lock();
        if (!error || call->left == 0) continue;
        end(*call, error);
        waiting_.remove_if([&](const WaitingText& text) { return text.call == call; });
    }
    if (call->error) return *call->error;
    return success();
}

bool EncoderThreads::is_callers_own(const TextCall& call) const {
    return call.texts.size() == 1 && call.texts.front().ids.size() <= kCallersTokens &&
           waiting_.size() == 1 && counts_.running == 0;
}

/// A short text that is alone is read by the caller's thread: the thread that hands it to another one is
/// still awake when that one wakes the rest, and two that share a core wait for each other for 10 ms and
/// more.
Status EncoderThreads::run(const std::shared_ptr<TextCall>& call, const EncodeCall& options) {
    if (call->texts.empty()) return success();
    const bool is_gone = options.is_cancelled && options.is_cancelled();
    std::unique_lock lock(mutex_);
    HR_TRY(begin(call));
    if (!is_gone && is_callers_own(*call))
        serve_next(lock);
    else
        arrived_.notify_all();
    return wait(call, options, lock);
}

void EncoderThreads::cancel_all() {
    const std::lock_guard lock(mutex_);
    waiting_.remove_if([this](const WaitingText& text) {
        if (text.call->left > 0) end(*text.call, failure(Code::cancelled, "all calls were cancelled"));
        return true;
    });
}

TextEncoderStatistics EncoderThreads::statistics() const {
    const std::lock_guard lock(mutex_);
    TextEncoderStatistics now = counts_;
    now.waiting = waiting_.size();
    return now;
}

}  // namespace headrace
