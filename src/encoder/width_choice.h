#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace {

/// Whether a run that is alone takes all cores or one: whichever has been faster by the token, since cores
/// that other processes hold let threads wait for each other at every node. Decided apart for runs of few and
/// of many tokens. The slower one is tried again now and then, more rarely each time that it is slower still.
class WidthChoice {
public:
    bool is_wide(std::int64_t tokens) const {
        const Runs& runs = runs_[index_of(tokens)];
        if (runs.sides[1].count < kTrial) return true;
        return runs.sides[0].count >= kTrial && runs.wide_is_faster();
    }

    /// tokens: of the run, what a run costs besides included.
    void record(bool wide, std::int64_t tokens, double us) {
        Runs& runs = runs_[index_of(tokens)];
        Side& side = runs.sides[wide];
        Side& other = runs.sides[!wide];
        const double each = us / static_cast<double>(tokens);
        if (side.count < kTrial) {
            // The first run of a length plans, which says nothing of the next.
            side.us = side.count == 0 ? each : std::min(side.us, each);
            if (++side.count == kTrial && other.count >= kTrial) runs.end_trial(side.us < other.us);
            return;
        }
        // One run that waited for the scheduler is no reason to change; one of three is.
        side.us += (std::min(each, kMost * side.us) - side.us) * kShare;
        if (other.count < kTrial) return;
        if (other.us < side.us)
            runs.wait_longer();
        else if (--runs.left <= 0)
            other.count = 0;
    }

private:
    static constexpr int kTrial = 3, kSmallest = 16, kLargest = 256;
    static constexpr double kMost = 3, kShare = 0.1;
    static constexpr std::array<std::int64_t, 4> kMostTokens = {24, 48, 96, 256};

    struct Side {
        double us = 0;  ///< by the token
        int count = 0;  ///< runs of a trial; kTrial: known
    };
    struct Runs {
        std::array<Side, 2> sides;                   ///< on one core, and on all
        int interval = kSmallest, left = kSmallest;  ///< runs from a trial to the next

        bool wide_is_faster() const { return sides[1].us < sides[0].us; }
        void wait_longer() { left = interval = std::min(2 * interval, kLargest); }
        void end_trial(bool won) {
            if (!won) return wait_longer();
            left = interval = std::max(interval / 2, kSmallest);
        }
    };

    static std::size_t index_of(std::int64_t tokens) {
        return static_cast<std::size_t>(std::ranges::lower_bound(kMostTokens, tokens) - kMostTokens.begin());
    }

    std::array<Runs, kMostTokens.size() + 1> runs_;
};

}  // namespace headrace
