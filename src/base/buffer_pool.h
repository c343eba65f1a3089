#pragma once
#include <memory>
#include <string_view>
#include <utility>

#include "base/aligned_buffer.h"
#include "headrace/buffer_pool.h"

namespace headrace {

/// A buffer that goes back to its pool when it is let go. Uninitialised: it may hold what another wrote.
class PooledBuffer {
public:
    PooledBuffer() = default;
    /// reuse false: always from the system, and back to it.
    static Result<PooledBuffer> take(const BufferPool& pool, std::size_t bytes, std::string_view purpose,
                                     bool reuse = true);
    ~PooledBuffer() { release(); }
    PooledBuffer(PooledBuffer&& other) noexcept { swap(other); }
    PooledBuffer& operator=(PooledBuffer&& other) noexcept {
        PooledBuffer(std::move(other)).swap(*this);
        return *this;
    }

    void release();
    std::byte* data() { return buffer_.data(); }
    const std::byte* data() const { return buffer_.data(); }
    std::size_t bytes() const { return bytes_; }  ///< as asked for
    explicit operator bool() const { return static_cast<bool>(buffer_); }

private:
    void swap(PooledBuffer& other) {
        std::swap(pool_, other.pool_);
        std::swap(buffer_, other.buffer_);
        std::swap(bytes_, other.bytes_);
        std::swap(reuse_, other.reuse_);
    }

    std::shared_ptr<BufferPool::Impl> pool_;
    AlignedBuffer buffer_;
    std::size_t bytes_ = 0;
    bool reuse_ = true;
};

/// Bytes of other memory that count among those that a pool may have handed out.
class PoolCharge {
public:
    PoolCharge() = default;
    static Result<PoolCharge> take(const BufferPool& pool, std::size_t bytes, std::string_view purpose);
    ~PoolCharge();
    PoolCharge(PoolCharge&& other) noexcept
        : pool_(std::move(other.pool_)), bytes_(std::exchange(other.bytes_, 0)) {}
    PoolCharge& operator=(PoolCharge other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

private:
    std::shared_ptr<BufferPool::Impl> pool_;
    std::size_t bytes_ = 0;
};

}  // namespace headrace
