#include "llm/pacing.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace headrace::llm {
namespace {

constexpr double weight = 0.2;      // of the latest step in an average
constexpr double got_cores = 0.85;  // of the time: below that a neighbour has the cores
constexpr double idle_core = 0.8;
constexpr double judged_ms = 60;
constexpr double least_patience_ms = 500, most_patience_ms = 8000;  // before another thread is tried again

double blend(double average, double value) {
    return average == 0 ? value : average + weight * (value - average);
}

}  // namespace

int PromptPacing::budget(int decoding) const {
    if (decoding == 0) return most_;
    double decode_ms = 0;
    const auto next = decode_ms_.lower_bound(decoding);
    if (next != decode_ms_.end())
        decode_ms = next->second;
    else if (!decode_ms_.empty())
        decode_ms = decode_ms_.rbegin()->second;
    return std::clamp(static_cast<int>((target_ms_ - decode_ms) / prompt_ms_), least_, most_);
}

void PromptPacing::observe(int decoding, int prompt, double ms) {
    if (prompt == 0) {
        double& average = decode_ms_[decoding];
        average = blend(average, ms);
        return;
    }
    double decode_ms = 0;
    if (const auto known = decode_ms_.find(decoding); known != decode_ms_.end()) decode_ms = known->second;
    // Tokens that are read together with others cost less than their share of a step that reads weights
    // anyway.
    const double per_token = std::max(0.001, (ms - decode_ms) / prompt);
    if (prompt >= least_) prompt_ms_ = blend(prompt_ms_, std::min(per_token, ms / prompt));
}

void ThreadPacing::observe(double wall_ms, double running_ms) {
    if (!adapt_) return;
    wall_ms_ += wall_ms;
    running_ms_ += running_ms;
    if (threads_ < most_) {
        waited_ms_ += wall_ms;
        if (waited_ms_ < patience_ms_) return;
        waited_ms_ = 0;
        if (idle_cores_() >= idle_core) ++threads_;
        wall_ms_ = running_ms_ = 0;
        return;
    }
    if (wall_ms_ < judged_ms) return;
    const bool crowded = running_ms_ < got_cores * wall_ms_ * threads_;
    patience_ms_ = crowded ? std::min(2 * patience_ms_, most_patience_ms)
                           : std::max(least_patience_ms, patience_ms_ / 2);
    if (crowded && threads_ > 1) {
        threads_ = std::clamp(static_cast<int>(running_ms_ / wall_ms_), 1, threads_ - 1);
        waited_ms_ = 0;
        idle_cores_();  // counts from here
    }
    wall_ms_ = running_ms_ = 0;
}

double IdleCores::operator()() {
    std::ifstream file("/proc/stat");
    std::string cpu;
    uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    file >> cpu >> user >> nice >> system >> idle >> waiting;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    const uint64_t total = idle + waiting;
    const double ticks = total >= idle_ ? static_cast<double>(total - idle_) : 0;
    idle_ = total;
    last_ = now;
    return file && seconds > 0 ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds : 0;
}

}  // namespace headrace::llm
