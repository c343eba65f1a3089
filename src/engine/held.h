#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer_pool.h"
#include "ir/tensor_type.h"

namespace headrace {

/// A value between stages or iterations.
struct Held {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    PooledBuffer memory;        ///< may be larger
    void* elsewhere = nullptr;  ///< the caller's memory of an output, in place of `memory`

    const std::byte* data() const {
        return elsewhere ? static_cast<const std::byte*>(elsewhere) : memory.data();
    }
    ConstView view() const { return {dtype, shape, data()}; }
    std::size_t bytes() const { return bytes_of(dtype, view().elements()); }

    /// Memory for another shape.
    Status become(const BufferPool& pool, DType type, std::vector<std::int64_t> extents, bool reuse) {
        dtype = type;
        shape = std::move(extents);
        if (memory && memory.bytes() == bytes()) return success();
        memory.release();
        HR_ASSIGN(memory, PooledBuffer::take(pool, bytes(), "a value between stages", reuse));
        return success();
    }
};

}  // namespace headrace
