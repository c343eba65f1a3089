#include "llm/engine/thread_governor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace headrace::llm {
namespace {

constexpr double kGotCores = 0.85;  // of the time: below that a neighbour has the cores
constexpr double kIdleCore = 0.8;
constexpr double kJudgedMs = 60;
constexpr double kLeastIdleMs = 50;  // the system counts idle time in steps of 10
constexpr double kLeastPatienceMs = 500, kMostPatienceMs = 8000;  // before another thread is tried again

}  // namespace

void ThreadGovernor::take_idle_core() {
    waited_ms_ = 0;
    if (idle_cores_() >= kIdleCore) ++threads_;
    wall_ms_ = running_ms_ = 0;
    was_crowded_ = false;
}

void ThreadGovernor::expect_prompt() {
    if (threads_ < most_ && waited_ms_ >= kLeastIdleMs) take_idle_core();
}

void ThreadGovernor::observe(double wall_ms, double running_ms) {
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
    patience_ms_ = is_crowded ? std::min(2 * patience_ms_, kMostPatienceMs)
                              : std::max(kLeastPatienceMs, patience_ms_ / 2);
    // Only what two looks in turn find crowded takes threads away: a short visitor is gone by then.
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
