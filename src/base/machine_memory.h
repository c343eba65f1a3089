#pragma once
#include <cstdint>

namespace headrace {

/// The share of the machine's memory that is in use, 0 to 1; the control group's limit counts when there is
/// one.
double memory_share_in_use();

/// Bytes that can still be used, by the machine and by the control group's limit.
uint64_t available_memory();

}  // namespace headrace
