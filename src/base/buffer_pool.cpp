#include "base/buffer_pool.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <vector>

namespace headrace {

struct BufferPool::Impl {
    Impl(int most_per_size, std::size_t most_idle, std::size_t most_handed_out)
        : per_size(static_cast<std::size_t>(std::max(most_per_size, 0))),
          max_idle_bytes(most_idle),
          max_live_bytes(most_handed_out) {}

    using Idle = std::list<AlignedBuffer>;  ///< the longest idle first
    /// Shapes that do not come back would otherwise fill the pool with their sizes. Twice what was handed out
    /// at once is what two programs need that take turns.
    static constexpr std::size_t kSmall = std::size_t{8} << 20;
    const std::size_t per_size, max_idle_bytes, max_live_bytes;
    mutable std::mutex mutex;
    Idle idle;
    std::map<std::size_t, std::vector<Idle::iterator>> by_size;  ///< the longest idle first
    std::size_t most_live = 0, charged = 0;
    BufferStats stats;

    /// Takes, among the smallest buffers that fit, the one that came back last, whose pages are the likeliest
    /// to be in the caches. Large ones serve down to half their size, so that shapes which change a little
    /// share theirs.
    AlignedBuffer take_idle(std::size_t bytes) {
        constexpr std::size_t kLarge = std::size_t{1} << 16;
        const auto it = by_size.lower_bound(bytes);
        if (it == by_size.end() || it->first > (bytes < kLarge ? bytes : 2 * bytes)) return {};
        const auto position = it->second.back();
        it->second.pop_back();
        if (it->second.empty()) by_size.erase(it);
        AlignedBuffer buffer = std::move(*position);
        idle.erase(position);
        --stats.idle_buffers;
        stats.idle_bytes -= buffer.bytes();
        return buffer;
    }

    void drop(Idle::iterator position, Idle& freed) {
        const std::size_t bytes = position->bytes();
        auto& same = by_size[bytes];
        same.erase(std::find(same.begin(), same.end(), position));
        if (same.empty()) by_size.erase(bytes);
        freed.splice(freed.end(), idle, position);
        --stats.idle_buffers;
        stats.idle_bytes -= bytes;
    }

    Status check_room(std::size_t bytes, std::string_view purpose) const {
        const std::size_t used = stats.live_bytes + charged;
        if (used <= max_live_bytes && bytes <= max_live_bytes - used) return success();
        return failure(Code::out_of_memory,
                       "{} bytes for {} are too many: {} are in use of the {} that may be", bytes, purpose,
                       used, max_live_bytes);
    }

    // The next two functions move what has to go to `freed`, for the caller to free outside the lock.

    /// What is idle is memory of the process, too: it goes before the limit is passed.
    void keep_limit(Idle& freed) {
        while (!idle.empty() && stats.idle_bytes > max_live_bytes - stats.live_bytes - charged)
            drop(idle.begin(), freed);
    }

    void give_back(AlignedBuffer buffer, Idle& freed) {
        const std::size_t bytes = buffer.bytes();
        idle.push_back(std::move(buffer));
        by_size[bytes].push_back(std::prev(idle.end()));
        ++stats.idle_buffers;
        stats.idle_bytes += bytes;
        if (by_size[bytes].size() > per_size) drop(by_size[bytes].front(), freed);
        const std::size_t most = std::min(max_idle_bytes, std::max(kSmall, 2 * most_live));
        while (stats.idle_bytes > most) drop(idle.begin(), freed);
    }
};

BufferPool::BufferPool(int per_size, std::size_t max_idle_bytes, std::size_t max_live_bytes)
    : impl_(std::make_shared<Impl>(per_size, max_idle_bytes, max_live_bytes)) {}

BufferStats BufferPool::stats() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->stats;
}

void BufferPool::reset() {
    Impl::Idle freed;
    const std::lock_guard lock(impl_->mutex);
    freed.swap(impl_->idle);
    impl_->by_size.clear();
    impl_->stats.idle_buffers = 0;
    impl_->stats.idle_bytes = 0;
}

Result<PooledBuffer> PooledBuffer::take(const BufferPool& pool, std::size_t bytes, std::string_view purpose,
                                        bool reuse) {
    constexpr std::size_t kGrain = AlignedBuffer::kAlignment;
    if (bytes > PTRDIFF_MAX - kGrain)
        return failure(Code::out_of_memory, "cannot allocate {} bytes for {}", bytes, purpose);
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + kGrain - 1) / kGrain * kGrain;
    PooledBuffer taken;
    taken.pool_ = pool.impl();
    taken.bytes_ = bytes;
    taken.reuse_ = reuse;
    BufferPool::Impl& impl = *pool.impl();
    BufferStats& stats = impl.stats;
    {
        BufferPool::Impl::Idle freed;
        const std::lock_guard lock(impl.mutex);
        HR_TRY(impl.check_room(size, purpose));
        if (reuse) taken.buffer_ = impl.take_idle(size);
        stats.live_bytes += taken.buffer_ ? taken.buffer_.bytes() : size;
        impl.keep_limit(freed);
    }
    const bool reused = static_cast<bool>(taken.buffer_);
    if (!reused) {
        Result<AlignedBuffer> fresh = AlignedBuffer::allocate(size, purpose);
        if (!fresh.ok()) {
            const std::lock_guard lock(impl.mutex);
            stats.live_bytes -= size;
            return fresh.error();
        }
        taken.buffer_ = std::move(fresh).value();
    }
    const std::lock_guard lock(impl.mutex);
    ++stats.requests;
    ++(reused ? stats.reuses : stats.allocations);
    if (!reused) stats.allocated_bytes += size;
    impl.most_live = std::max(impl.most_live, stats.live_bytes);
    stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes + stats.idle_bytes);
    return taken;
}

Result<PoolCharge> PoolCharge::take(const BufferPool& pool, std::size_t bytes, std::string_view purpose) {
    BufferPool::Impl::Idle freed;
    BufferPool::Impl& impl = *pool.impl();
    const std::lock_guard lock(impl.mutex);
    HR_TRY(impl.check_room(bytes, purpose));
    PoolCharge taken;
    taken.pool_ = pool.impl();
    taken.bytes_ = bytes;
    impl.charged += bytes;
    impl.keep_limit(freed);
    return taken;
}

PoolCharge::~PoolCharge() {
    if (!pool_) return;
    const std::lock_guard lock(pool_->mutex);
    pool_->charged -= bytes_;
}

void PooledBuffer::release() {
    if (!buffer_) return;
    BufferPool::Impl::Idle freed;
    {
        const std::lock_guard lock(pool_->mutex);
        pool_->stats.live_bytes -= buffer_.bytes();
        if (reuse_) pool_->give_back(std::move(buffer_), freed);
    }
    buffer_ = {};
    bytes_ = 0;
    pool_.reset();
}

}  // namespace headrace
