#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace headrace {

/// Whether a run that is alone takes all cores or one: whichever has been faster by the token, since cores
/// that other processes hold let threads wait for each other at every node. The slower one is tried again now
/// and then, more rarely each time that it is slower still.
class WidthChoice {
public:
    bool is_wide() {
        if (us_[1] == 0 || us_[0] == 0) return us_[1] == 0;
        const bool faster = us_[1] < us_[0];
        return --left_ > 0 ? faster : !faster;
    }

    /// tokens: of the run, what a run costs besides included.
    void record(bool wide, std::int64_t tokens, double us) {
        const bool before = us_[1] < us_[0];
        const bool is_known = us_[0] != 0 && us_[1] != 0;
        double& mean = us_[wide];
        const double each = us / static_cast<double>(tokens);
        const bool is_trial = is_known && wide != before;
        mean = mean == 0 || is_trial ? each : mean + (each - mean) * 0.1;
        if (!is_known || wide == before) return;
        interval_ = (us_[1] < us_[0]) == before ? std::min(2 * interval_, kLargest) : kSmallest;
        left_ = interval_;
    }

private:
    static constexpr int kSmallest = 16, kLargest = 512;
    std::array<double, 2> us_ = {};  ///< by the token, on one core and on all; 0: not known
    int interval_ = kSmallest, left_ = kSmallest;
};

}  // namespace headrace
