#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "lower/lower.h"

namespace headrace {

/// The IR node that is the first to read each of lowered.constants; the number of nodes where none does.
std::vector<std::size_t> first_readers(const LoweredGraph& lowered);
/// The bytes of constants on a device that each IR node is the first to read.
std::vector<std::uint64_t> first_read_bytes(const LoweredGraph& lowered,
                                            std::span<const std::size_t> readers);

/// A device for each node: the first is filled, then the next, and none is come back to, since each change is
/// a hop over the network. bytes: new weights of each node; rooms: bytes for weights on each device. Errors:
/// they do not fit, with the numbers.
Result<std::vector<std::size_t>> share_nodes(std::span<const std::uint64_t> bytes,
                                             std::span<const std::uint64_t> rooms);

}  // namespace headrace
