#include "run/device_constants.h"

#include <limits>
#include <vector>

#include "ggml-backend.h"
#include "remote/host.h"
#include "run/device_call.h"

namespace headrace {

void BackendBufferFree::operator()(ggml_backend_buffer* buffer) const { ggml_backend_buffer_free(buffer); }
void BackendFree::operator()(ggml_backend* backend) const { ggml_backend_free(backend); }

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

namespace {

std::size_t total_bytes(const DeviceConstants::Placed& placed) {
    std::size_t total = 0;
    for (const auto& [constant, buffer] : placed.buffers)
        if (buffer) total += ggml_backend_buffer_get_size(buffer.get());
    return total;
}

Status place_one(const DeviceConstants::Upload& upload, BackendBuffer& buffer) {
    const auto& [placed, tensor, constant] = upload;
    const bool is_fresh = !buffer;
    if (is_fresh) {
        ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(placed->device.handle);
        const std::size_t bytes = ggml_backend_buft_get_alloc_size(type, tensor);
        buffer.reset(ggml_backend_buft_alloc_buffer(type, bytes));
        if (!buffer)
            return failure(Code::out_of_memory,
                           "device '{}' has no memory for a weight of {} bytes beside the {} bytes of the "
                           "graph's others; use smaller weights (q8_0, q4_0), or the device 'cpu'",
                           placed->device.name, bytes, total_bytes(*placed));
        ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    if (ggml_backend_tensor_alloc(buffer.get(), tensor, ggml_backend_buffer_get_base(buffer.get())) !=
        GGML_STATUS_SUCCESS)
        return failure(Code::backend_failure, "device '{}' refused a tensor of {} bytes", placed->device.name,
                       constant->bytes.size());
    if (is_fresh) ggml_backend_tensor_set(tensor, constant->bytes.data(), 0, constant->bytes.size());
    return success();
}

}  // namespace

Status DeviceConstants::place(std::span<const Upload> uploads) {
    const std::lock_guard lock(mutex_);
    std::vector<const Upload*> fresh;
    Status status = success();
    for (std::size_t i = 0; i < uploads.size() && status.ok(); ++i) {
        auto& buffers = uploads[i].placed->buffers;
        BackendBuffer& buffer = buffers[uploads[i].constant];
        if (!buffer) fresh.push_back(&uploads[i]);
        status = device_call(uploads[i].placed->device.name, [&] { return place_one(uploads[i], buffer); });
    }
    if (!status.ok())
        for (const Upload* upload : fresh) upload->placed->buffers.erase(upload->constant);
    return status;
}

}  // namespace headrace
