#pragma once
#include <algorithm>
#include <cstdint>

namespace headrace {

/// One thread's part of a kernel: thread `ith` of `nth`, as ggml hands them out.
struct Share {
    int ith = 0;
    int nth = 1;

    struct Range {
        std::int64_t begin, end;
    };

    bool first() const { return ith == 0; }

    /// This thread's contiguous part of 0..count, cut at multiples of `grain`.
    Range of(std::int64_t count, std::int64_t grain = 1) const {
        const std::int64_t chunks = (count + grain - 1) / grain;
        return {std::min(count, chunks * ith / nth * grain),
                std::min(count, chunks * (ith + 1) / nth * grain)};
    }
};

}  // namespace headrace
