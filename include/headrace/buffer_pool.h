#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/export.h"

namespace headrace {

/// What a BufferPool did since it was made, and what it holds now.
struct BufferStats {
    std::int64_t requests = 0;
    std::int64_t allocations = 0;     ///< requests that went to the system
    std::int64_t reuses = 0;          ///< requests that an idle buffer served
    std::size_t allocated_bytes = 0;  ///< of all allocations together
    std::int64_t idle_buffers = 0;    ///< held for reuse now
    std::size_t idle_bytes = 0;
    std::size_t live_bytes = 0;  ///< handed out now
    std::size_t peak_bytes = 0;  ///< the most that was handed out and idle at one time
};

/// Keeps freed buffers for the next request of their size (rounded up to 64 bytes), or, from 64 KiB on, of at
/// least half their size. Activations, states and tensors of executables and contexts come from one;
/// thread-safe.
class HEADRACE_API BufferPool {
public:
    /// At most `per_size` idle buffers of one size and `max_idle_bytes` together are kept; what a new one
    /// exceeds is freed, the longest idle first. No more is idle than twice what was handed out at one
    /// time before, or 8 MiB where that is more. per_size 0 keeps none. A request that
    /// would bring what is handed out above `max_live_bytes` fails with Code::out_of_memory; idle buffers are
    /// freed first.
    explicit BufferPool(int per_size = 16, std::size_t max_idle_bytes = std::size_t{256} << 20,
                        std::size_t max_live_bytes = SIZE_MAX);

    BufferStats stats() const;
    /// Frees what is idle.
    void reset();

    struct Impl;
    const std::shared_ptr<Impl>& impl() const { return impl_; }

private:
    std::shared_ptr<Impl> impl_;
};

}  // namespace headrace
