// What the kernels' tests need of Highway's library, where a single instruction set is compiled in: Highway's
// own build for the other system is not at hand. For tools/test_arm.py.
#include "kernels/simd/targets.h"

#include "hwy/highway.h"

static_assert((HWY_TARGETS & (HWY_TARGETS - 1)) == 0, "Highway's own library chooses among several");

namespace hwy {

int64_t SupportedTargets() { return HWY_TARGETS; }

void SetSupportedTargetsForTest(int64_t) {}

ChosenTarget& GetChosenTarget() {
    static ChosenTarget chosen;
    return chosen;
}

}  // namespace hwy
