#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace {

/// What a device made of the samples of an op.
struct OpCheck {
    std::string op;
    int samples = 0;
    int on_device = 0;    ///< of those
    int wrong = 0;        ///< of those, not what the reference kernel gives
    std::string problem;  ///< of the first that is wrong
};

/// Runs every sample of every op on a device and by the reference kernels, and has the device not given what
/// it gets wrong, now and in later processes. Ops without a sample there are not among the results.
/// Errors: there is no such device, or it is the CPU or remote; the findings cannot be written.
Result<std::vector<OpCheck>> check_device(const std::string& device);

}  // namespace headrace
