#pragma once
#include <cstddef>
#include <memory>
#include <new>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "base/result.h"

namespace headrace {

/// Bytes on a 64-byte boundary, as every kernel and ggml like them. Uninitialised.
class AlignedBuffer {
public:
    static constexpr std::size_t kAlignment = 64;

    AlignedBuffer() = default;
    /// `purpose` completes the message "cannot allocate N bytes for ...".
    static Result<AlignedBuffer> allocate(std::size_t bytes, std::string_view purpose) {
        AlignedBuffer buffer;
        const std::align_val_t alignment{bytes < kHugePage ? kAlignment : kHugePage};
        auto* data = ::operator new(bytes ? bytes : 1, alignment, std::nothrow);
        if (!data) return failure(Code::out_of_memory, "cannot allocate {} bytes for {}", bytes, purpose);
        buffer.data_ = std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(data), Free{alignment});
        if (bytes >= kHugePage) prefer_huge_pages(data, bytes / kHugePage * kHugePage);
        buffer.bytes_ = bytes;
        return buffer;
    }

    std::byte* data() { return data_.get(); }
    const std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    struct Free {
        std::align_val_t alignment;
        Free() : Free(std::align_val_t{kAlignment}) {}
        explicit Free(std::align_val_t chosen) : alignment(chosen) {}
        void operator()(std::byte* p) const { ::operator delete(p, alignment); }
    };
    /// Weights are read from end to end in each run, in which small pages miss the TLB thousands of times.
    static void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
        ::madvise(data, bytes, MADV_HUGEPAGE);  // a hint: without it the pages are small
#endif
    }

    std::unique_ptr<std::byte, Free> data_;
    std::size_t bytes_ = 0;
};

}  // namespace headrace
