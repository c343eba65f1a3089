#pragma once
#include "headrace/headrace.h"
#include "plan/placement.h"
#include "run/devices.h"

namespace headrace {

/// How a device computes where it is asked for that precision.
DeviceArithmetic arithmetic_for(const Device& device, Precision precision);

/// Whether Precision::fast is asked for and the device has something faster for it. Where it has not, the
/// user is told so, once in a process.
bool is_faster(const Device& device, const CompileOptions& options);

}  // namespace headrace
