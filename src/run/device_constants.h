#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "ir/graph.h"
#include "run/devices.h"

struct ggml_backend_buffer;
struct ggml_backend_buffer_type;
struct ggml_tensor;

namespace headrace {

struct BackendBufferFree {
    void operator()(ggml_backend_buffer* buffer) const;
};
using BackendBuffer = std::unique_ptr<ggml_backend_buffer, BackendBufferFree>;

/// Weights uploaded to a device: once per executable, whatever number of sessions and shape keys use them.
class DeviceConstants {
public:
    /// Gives the (unallocated) tensor the constant's memory on the device.
    Status place(ggml_tensor* tensor, const Constant& constant, ggml_backend_buffer_type* type);
    /// The connection through which the memory was had.
    void keep(std::shared_ptr<const Connection> connection);

private:
    std::mutex mutex_;
    std::shared_ptr<const Connection> connection_;
    std::map<const Constant*, BackendBuffer> buffers_;
};

}  // namespace headrace
