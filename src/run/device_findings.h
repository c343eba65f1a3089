#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

struct ggml_backend_device;

namespace headrace {

/// Ops that a check has found a device to compute wrongly, in a file of the user's cache: by the device's
/// description and ggml's version. None where there is no file, or one that cannot be read.
std::vector<std::string> read_findings(ggml_backend_device* device);
/// Errors: io.
Status write_findings(ggml_backend_device* device, std::span<const std::string> ops);

}  // namespace headrace
