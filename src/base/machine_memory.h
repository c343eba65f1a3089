#pragma once
#include <cstdint>
#include <string>

namespace headrace {

/// Bytes of the machine's memory or, where that is less, of what the control groups of this process allow.
struct MachineMemory {
    std::uint64_t total = 0;  ///< 0: not known
    /// What the kernel gives without swapping, without files' pages that it has to keep; no more than total.
    std::uint64_t available = 0;
};

/// As /proc/meminfo and the control groups (version 2, or the memory controller of version 1) say; those
/// above the process's own count, too. root: the folder in which /proc and /sys are looked for.
MachineMemory machine_memory(const std::string& root = "");

/// The share of the machine's memory that is in use, 0 to 1; a control group's limit counts when there is
/// one.
double memory_share_in_use(const std::string& root = "");

/// Bytes that can still be used, by the machine and by the control groups' limits; UINT64_MAX when not known.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace headrace
