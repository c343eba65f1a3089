#include "run/device_constants.h"

#include <limits>

#include "ggml-backend.h"
#include "remote/host.h"

namespace headrace {

void BackendBufferFree::operator()(ggml_backend_buffer* buffer) const { ggml_backend_buffer_free(buffer); }

Result<std::shared_ptr<DeviceConstants::Placed>> DeviceConstants::connect(const Device& device) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Placed>& newest = newest_[device.name];
    if (newest && !(newest->device.host && newest->device.host->is_lost())) return newest;
    Device usable = device;
    if (device.host && device.host->is_lost()) {
        HR_ASSIGN(usable, find_device(device.name, device.host->patience().silence));
    }
    std::uint64_t free = std::numeric_limits<std::uint64_t>::max();
    if (usable.host) {
        const remote::Probe::Memory memory = usable.host->memory(0);
        if (memory.total > 0) free = memory.free;  // some devices do not tell
    }
    newest = std::make_shared<Placed>(Placed{std::move(usable), free, {}});
    return newest;
}

Status DeviceConstants::place(Placed& placed, ggml_tensor* tensor, const Constant& constant,
                              ggml_backend_buffer_type* type) {
    const std::lock_guard lock(mutex_);
    BackendBuffer& buffer = placed.buffers[&constant];
    const bool fresh = !buffer;
    if (fresh) {
        const std::size_t bytes = ggml_backend_buft_get_alloc_size(type, tensor);
        buffer.reset(ggml_backend_buft_alloc_buffer(type, bytes));
        if (!buffer)
            return failure(Code::out_of_memory, "cannot allocate {} bytes for weights on '{}'", bytes,
                           placed.device.name);
        ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    if (ggml_backend_tensor_alloc(buffer.get(), tensor, ggml_backend_buffer_get_base(buffer.get())) !=
        GGML_STATUS_SUCCESS)
        return failure(Code::backend_failure, "device '{}' refused a tensor of {} bytes", placed.device.name,
                       constant.bytes.size());
    if (fresh) ggml_backend_tensor_set(tensor, constant.bytes.data(), 0, constant.bytes.size());
    return success();
}

}  // namespace headrace
