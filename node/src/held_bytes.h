#pragma once
#include <algorithm>

#include "headrace/headrace.h"

namespace headrace::node {

/// Memory that goes with a compiled graph, for the garbage collector: its weights, but for pages of a file.
inline std::size_t held_bytes(const Executable& executable) {
    const CompileStats stats = executable.stats();
    const auto own = [](std::size_t all, std::size_t mapped) { return all - std::min(mapped, all); };
    return own(stats.constant_bytes, stats.mapped_bytes) + own(stats.packed_bytes, stats.packed_mapped_bytes);
}

}  // namespace headrace::node
