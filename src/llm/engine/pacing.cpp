#include "llm/engine/pacing.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace headrace::llm {
namespace {

constexpr double kWeight = 0.2;  // of the latest step in an average
constexpr int kLeastSize = 16, least_prompt = 8;
constexpr double kFullSize = 0.9;      // of a size's tokens: a step with less says nothing of it
constexpr double kFirstGuessMs = 2.0;  // a token
constexpr double kHope = 0.85;
constexpr double kClearlyFaster = 1.1;  // less than hope promises: each size is tried
constexpr double kGotCores = 0.85;      // of the time: below that a neighbour has the cores
constexpr double kIdleCore = 0.8;
constexpr double kJudgedMs = 60;
constexpr double kLeastIdleMs = 50;  // the system counts idle time in steps of 10
constexpr double kLeastPatienceMs = 500, most_patience_ms = 8000;  // before another thread is tried again

double blend(double average, double value) {
    return average == 0 ? value : average + kWeight * (value - average);
}

}  // namespace

PromptPacing::PromptPacing(double target_ms, int most) : target_ms_(target_ms), most_(most) {
    for (int tokens = kLeastSize; tokens < most; tokens += std::max(kLeastSize, tokens / 64 * 32))
        sizes_.push_back({tokens});
    sizes_.push_back({most});
}

/// A size that was not seen yet takes its share of the next larger one seen, or else grows from a smaller
/// one: a hopeful guess, so that it is tried.
double PromptPacing::expected_ms(std::size_t index) const {
    const Size& size = sizes_[index];
    if (size.ms > 0) return size.ms;
    const auto seen = [](const Size& other) { return other.ms > 0; };
    const auto here = sizes_.begin() + static_cast<std::ptrdiff_t>(index);
    auto known = std::find_if(here, sizes_.end(), seen);
    if (known == sizes_.end()) {
        const auto before = std::find_if(std::make_reverse_iterator(here), sizes_.rend(), seen);
        if (before == sizes_.rend()) return kFirstGuessMs * size.tokens;
        known = before.base() - 1;
    }
    return kHope * known->ms * size.tokens / known->tokens;
}

int PromptPacing::budget(int decoding) const {
    if (decoding == 0) return budget_alone();
    int best = least_prompt;
    double best_worth = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const int prompt = sizes_[i].tokens - decoding;
        if (prompt < least_prompt) continue;
        const double ms = expected_ms(i);
        const double late = std::max(1.0, ms / target_ms_);
        const double worth = prompt / ms / (late * late);
        if (worth < best_worth) continue;
        best = prompt;
        best_worth = worth;
    }
    return best;
}

int PromptPacing::budget_alone() const {
    int best = 0;
    double best_rate = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const double ms = expected_ms(i), rate = sizes_[i].tokens / ms;
        if (rate < best_rate * (ms > target_ms_ ? kClearlyFaster : 1)) continue;
        best = sizes_[i].tokens;
        best_rate = rate;
    }
    return best;
}

void PromptPacing::observe(int decoding, int prompt, double ms) {
    if (prompt == 0) return;
    const int tokens = decoding + prompt;
    const auto size = std::find_if(sizes_.begin(), sizes_.end(),
                                   [&](const Size& candidate) { return tokens <= candidate.tokens; });
    if (size == sizes_.end() || tokens < kFullSize * size->tokens) return;
    const double before = size->ms;
    size->ms = blend(before, ms);
    if (before == 0) return;
    for (Size& other : sizes_)
        if (&other != &*size) other.ms *= size->ms / before;
}

void ThreadPacing::take_idle_core() {
    waited_ms_ = 0;
    if (idle_cores_() >= kIdleCore) ++threads_;
    wall_ms_ = running_ms_ = 0;
    was_crowded_ = false;
}

void ThreadPacing::expect_prompt() {
    if (threads_ < most_ && waited_ms_ >= kLeastIdleMs) take_idle_core();
}

void ThreadPacing::observe(double wall_ms, double running_ms) {
    if (!adapt_) return;
    wall_ms_ += wall_ms;
    running_ms_ += running_ms;
    if (threads_ < most_) {
        waited_ms_ += wall_ms;
        if (waited_ms_ >= patience_ms_) take_idle_core();
        return;
    }
    if (wall_ms_ < kJudgedMs) return;
    const bool is_crowded = running_ms_ < kGotCores * wall_ms_ * threads_;
    patience_ms_ = is_crowded ? std::min(2 * patience_ms_, most_patience_ms)
                              : std::max(kLeastPatienceMs, patience_ms_ / 2);
    // A visitor of one look is gone before fewer threads are worth it.
    if (is_crowded && was_crowded_ && threads_ > 1) {
        threads_ = std::clamp(static_cast<int>(running_ms_ / wall_ms_), 1, threads_ - 1);
        waited_ms_ = 0;
        idle_cores_();  // counts from here
    }
    was_crowded_ = is_crowded;
    wall_ms_ = running_ms_ = 0;
}

double IdleCores::operator()() {
    std::ifstream file("/proc/stat");
    std::string cpu;
    std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    file >> cpu >> user >> nice >> system >> idle >> waiting;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    const std::uint64_t total = idle + waiting;
    const double ticks = total >= idle_ ? static_cast<double>(total - idle_) : 0;
    idle_ = total;
    last_ = now;
    return file && seconds > 0 ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds : 0;
}

}  // namespace headrace::llm
