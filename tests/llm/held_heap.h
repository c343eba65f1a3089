#pragma once
#include <malloc.h>

#include <cstddef>

/// The sanitizers' function, whose heap is their own: mallinfo2 tells zeros there.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace headrace::llm {

inline bool heap_is_a_sanitizers() { return __sanitizer_get_current_allocated_bytes != nullptr; }

/// Bytes of the heap that somebody holds.
inline std::size_t held_heap() {
    if (heap_is_a_sanitizers()) return __sanitizer_get_current_allocated_bytes();
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

}  // namespace headrace::llm
