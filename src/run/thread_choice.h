#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {

/// Whether the next run wakes other threads. ggml's threads spin at a barrier after every node; when another
/// process holds one of their cores, each barrier lasts a time slice and a run takes many times as long as on
/// one thread. A run that was far too slow, as may happen by chance, is therefore followed by one on one
/// thread, and by more of them each time the trial with all threads is slow again, or slower than those on
/// one thread were; but no more than it takes for the trial to have cost a twentieth of the time, since
/// others may stop at any time. A trial, which the first run is, too, waits while others leave too few CPUs
/// anyway.
class ThreadChoice {
public:
    /// expected_us: a generous estimate of a run on one thread. are_taken: whether others leave too few CPUs
    /// for so many threads just now.
    explicit ThreadChoice(
        double expected_us = std::numeric_limits<double>::infinity(),
        bool (*are_taken)(int wanted) = [](int) { return false; })
        : best_us_(expected_us), are_taken_(are_taken) {}

    /// The next run is on one thread.
    void start_alone() {
        alone_ = 1;
        is_trial_next_ = true;
    }

    /// The next runs have so many times the work of those before.
    void scale(double factor) {
        best_us_ *= factor;
        alone_us_ *= factor;
    }

    int choose(int wanted) {
        if (alone_ == 0 && wanted > 1 && is_trial_next_) {
            // After nothing slow it asks soon again, but asking takes time, too.
            const int soon = penalty_ > 0 ? kLongestPutOff : std::clamp(put_off_ * 2, 1, kLongestPutOff);
            alone_ = put_off_ = are_taken_(wanted) ? soon : 0;
        }
        if (alone_ == 0) return wanted;
        --alone_;
        return 1;
    }

    void record(int threads, double us) {
        if (threads > 1 && (us > kSlow * best_us_ + kNoiseUs || us > kSlower * alone_us_ + kNoiseUs)) {
            penalty_ = std::clamp(penalty_ * 2, 1, kLastPenalty);
            const double alone = std::isinf(alone_us_) ? best_us_ : alone_us_;
            const double repaid = std::min((us - alone) / (kCostOfTrials * alone), double{kLastPenalty});
            alone_ = std::clamp(static_cast<int>(repaid), 1, penalty_);
            is_trial_next_ = true;
        } else if (threads > 1) {
            penalty_ = 0;
            is_trial_next_ = false;
        }
        best_us_ = std::min(best_us_, us);
        if (threads == 1) alone_us_ = std::min(alone_us_, us);
    }

private:
    static constexpr double kSlow = 3, kSlower = 1.25, kNoiseUs = 1000, kCostOfTrials = 0.05;
    static constexpr int kLongestPutOff = 4, kLastPenalty = 64;
    double best_us_;
    bool (*are_taken_)(int wanted);
    bool is_trial_next_ = true;  ///< the next run with all threads may be slow: the first, or as the last was
    double alone_us_ = std::numeric_limits<double>::infinity();  ///< the best run on one thread
    int penalty_ = 0;  ///< runs on one thread after the last slow one
    int alone_ = 0;    ///< of those, or while others leave too few CPUs, still to come
    int put_off_ = 0;  ///< runs by which the trial was last put off
};

}  // namespace headrace
