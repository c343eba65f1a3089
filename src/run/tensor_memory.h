#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "lower/lower.h"
#include "run/device_constants.h"
#include "run/devices.h"

struct ggml_tensor;

namespace headrace {

/// A buffer of a device's for a tensor like this one. `what` it is: for errors. Errors: out_of_memory.
Result<BackendBuffer> allocate_buffer(const Device& device, const ggml_tensor* like, const std::string& what);

/// Gives a tensor the beginning of a buffer of a device's, and views of the tensor theirs. `what` it is: for
/// errors.
Status place_in_buffer(ggml_backend_buffer* buffer, ggml_tensor* tensor, std::span<ggml_tensor* const> views,
                       const Device& device, const std::string& what);

/// A state of a session, or a tensor of a caller's: memory of the host, and of each device on which it was
/// used. What was written last is where it was written, and comes to where it is wanted next. Threads may
/// bring and read it at the same time; who writes it is alone with it.
class TensorMemory {
public:
    /// what: for errors, as in "state 'total'".
    static Result<std::shared_ptr<TensorMemory>> make(const BufferPool& pool, std::size_t bytes,
                                                      const std::string& what);
    TensorMemory(PooledBuffer host, std::string what) : host_(std::move(host)), what_(std::move(what)) {}

    std::size_t bytes() const { return host_.bytes(); }
    /// Where it is on the host as long as it lives; the content is there after bring_to_host().
    std::byte* host() { return host_.data(); }
    /// Gives a tensor of that size its memory on a device, and views of that tensor theirs. What they had
    /// before is forgotten. Errors: out_of_memory.
    Status place_on(const Device& device, ggml_tensor* tensor, std::span<ggml_tensor* const> views = {});
    /// Whether it was written on a device last.
    bool is_elsewhere() const { return !host_is_current_; }

    /// True where that took a copy.
    Result<bool> bring_to_host();
    Result<bool> bring_to(const Device& device);
    /// Something has written into it there, and all other memory is behind.
    void written_on_host();
    void written_on(const Device& device);

    /// From and to where it is, without a detour by the host's memory: all of it.
    Status read(void* data) const;
    Status write(const void* data);

private:
    struct Copy {
        ggml_backend_device* device = nullptr;
        std::string name;
        BackendBuffer buffer;
        GgmlContext context;
        ggml_tensor* bytes = nullptr;  ///< all of it, in the context
        bool is_current = false;
    };
    Copy* find(const Device& device);
    const Copy* current() const;
    Result<Copy> allocate(const Device& device, const ggml_tensor* like) const;
    Result<bool> fetch();

    PooledBuffer host_;
    std::string what_;
    std::atomic<bool> host_is_current_ = true;
    mutable std::mutex mutex_;  ///< of the copies
    std::vector<Copy> copies_;
};

}  // namespace headrace
