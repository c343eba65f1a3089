// Runs a piece of a test once for every instruction set that is compiled in and that this CPU has.
#pragma once

#include <gtest/gtest.h>

#include "kernels/simd/targets.h"

#include "hwy/highway.h"

namespace headrace::kernels::testing {

template <class Body>
void for_each_target(Body body) {
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(target);
        body();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
}

// The share counts that every kernel is tested with; each share is run in turn on this thread.
inline constexpr int kThreadCounts[] = {1, 2, 3, 7};

// One thread count per case keeps large sweeps short while all of them are met.
inline int thread_count(size_t turn) { return kThreadCounts[turn % 4]; }

}  // namespace headrace::kernels::testing
