#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "lower/lower.h"
#include "run/device_constants.h"
#include "run/devices.h"

struct ggml_tensor;

namespace headrace {

/// A state of a session: memory of the host, and of each device on which instances have it. What was written
/// last is where it was written, and comes to where it is wanted next. Not for two threads at once.
class StateMemory {
public:
    static Result<std::shared_ptr<StateMemory>> make(const BufferPool& pool, std::size_t bytes,
                                                     const std::string& name);
    StateMemory(PooledBuffer host, std::string name) : host_(std::move(host)), name_(std::move(name)) {}

    std::size_t bytes() const { return host_.bytes(); }
    /// Where it is on the host as long as it lives; the content is there after bring_to_host().
    std::byte* host() { return host_.data(); }
    /// Gives a tensor of that size the state's memory on a device. Errors: out_of_memory.
    Status place_on(const Device& device, ggml_tensor* tensor);

    Status bring_to_host();
    Status bring_to(const Device& device);
    /// Something has written into it there, and all other memory is behind.
    void written_on_host();
    void written_on(const Device& device);

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

    PooledBuffer host_;
    std::string name_;
    bool host_is_current_ = true;
    std::vector<Copy> copies_;
};

}  // namespace headrace
