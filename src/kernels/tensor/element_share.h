// How a list of elements is dealt out to threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/share.h"

namespace headrace::kernels {

// Calls run(begin, count) for a thread's share, cut at multiples of `grain`: of whole cache lines, two
// threads do not write to the same one.
template <class Run>
void for_share(size_t n, size_t grain, int ith, int nth, Run run) {
    const auto part = Share{ith, nth}.of(static_cast<int64_t>(n), static_cast<int64_t>(grain));
    if (part.begin < part.end)
        run(static_cast<size_t>(part.begin), static_cast<size_t>(part.end - part.begin));
}

}  // namespace headrace::kernels
