#pragma once
#include "plan/placement.h"
#include "run/devices.h"

namespace headrace {

/// How a device computes with f32: tried on small products when a device of this process is first asked
/// about. A remote device and the CPU are taken to be exact.
DeviceArithmetic arithmetic_of(const Device& device);

/// The same of a device that may multiply in its own way, which is ggml's.
DeviceArithmetic own_arithmetic(DeviceArithmetic exact);

/// Has a device not given these ops from now on, in this process and in later ones, which find them in the
/// user's cache; replaces what was found before. Errors: io.
Status distrust(const Device& device, std::vector<std::string> ops);

}  // namespace headrace
