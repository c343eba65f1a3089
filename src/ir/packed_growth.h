#pragma once
#include "ir/op_def.h"

namespace headrace {

/// Whether a kernel's packed form of its weights takes more than these and whole panels do, as transformed
/// filters take. MemoryUse::low has none where another kernel computes the node.
inline bool grows_weights(const KernelDef& kernel, const Operands& in, const void* attrs) {
    constexpr std::size_t kPanels = std::size_t{64} << 10;
    if (kernel.packed_operand < 0) return false;
    const std::size_t plain = in[kernel.packed_operand].bytes();
    return kernel.packed_bytes(in, attrs) > plain + plain / 2 + kPanels;
}

}  // namespace headrace
