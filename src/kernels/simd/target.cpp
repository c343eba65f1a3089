#include "kernels/simd/target.h"

#include "kernels/simd/targets.h"

#include "hwy/highway.h"

namespace headrace::kernels {

std::string_view simd_target() {
    const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
    return hwy::TargetName(targets & -targets);  // the lowest bit is the best
}

}  // namespace headrace::kernels
