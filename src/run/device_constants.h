#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"
#include "ir/graph.h"
#include "run/devices.h"

struct ggml_backend;
struct ggml_backend_buffer;
struct ggml_backend_buffer_type;
struct ggml_tensor;

namespace headrace {

struct BackendBufferFree {
    void operator()(ggml_backend_buffer* buffer) const;
};
using BackendBuffer = std::unique_ptr<ggml_backend_buffer, BackendBufferFree>;

struct BackendFree {
    void operator()(ggml_backend* backend) const;
};
using Backend = std::unique_ptr<ggml_backend, BackendFree>;

/// Weights uploaded to a device: once per executable, whatever number of sessions and shape keys use them.
class DeviceConstants {
public:
    /// What is on one device, or on one connection to it. Instances hold what they use.
    struct Placed {
        Device device;           // outlives its memory
        std::uint64_t free = 0;  // bytes before anything was placed there, as far as it tells
        std::map<const Constant*, BackendBuffer> buffers;
    };
    /// The device; a remote one whose host was lost is looked for again, and gets its weights anew.
    Result<std::shared_ptr<Placed>> connect(const Device& device);
    /// An (unallocated) tensor that gets the constant's memory on a device.
    struct Upload {
        Placed* placed;
        ggml_tensor* tensor;
        const Constant* constant;
    };
    /// All of them, or nothing stays in the devices' memory that was not there before.
    Status place(std::span<const Upload> uploads);

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Placed>> newest_;  // by device
};

}  // namespace headrace
