#pragma once
#include <cstddef>
#include <memory>
#include <new>

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
        auto* data = ::operator new (bytes ? bytes : 1, std::align_val_t{kAlignment}, std::nothrow);
        if (!data) return failure(Code::out_of_memory, "cannot allocate {} bytes for {}", bytes, purpose);
        buffer.data_.reset(static_cast<std::byte*>(data));
        buffer.bytes_ = bytes;
        return buffer;
    }

    std::byte* data() { return data_.get(); }
    const std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    struct Free {
        void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }
    };
    std::unique_ptr<std::byte, Free> data_;
    std::size_t bytes_ = 0;
};

}  // namespace headrace
