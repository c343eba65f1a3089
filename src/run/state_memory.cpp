#include "run/state_memory.h"

#include <algorithm>

#include "ggml-backend.h"
#include "ggml.h"
#include "run/device_call.h"

namespace headrace {

Result<std::shared_ptr<StateMemory>> StateMemory::make(const BufferPool& pool, std::size_t bytes,
                                                       const std::string& name) {
    HR_ASSIGN(PooledBuffer host, PooledBuffer::take(pool, bytes, fmt::format("state '{}'", name)));
    return std::make_shared<StateMemory>(std::move(host), name);
}

StateMemory::Copy* StateMemory::find(const Device& device) {
    const auto at = std::ranges::find(copies_, device.handle, &Copy::device);
    return at == copies_.end() ? nullptr : &*at;
}

Status StateMemory::place_on(const Device& device, ggml_tensor* tensor) {
    return device_call(device.name, [&]() -> Status {
        Copy* copy = find(device);
        if (!copy) {
            Copy fresh{.device = device.handle, .name = device.name};
            ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device.handle);
            const std::size_t bytes = ggml_backend_buft_get_alloc_size(type, tensor);
            fresh.buffer.reset(ggml_backend_buft_alloc_buffer(type, bytes));
            if (!fresh.buffer)
                return failure(Code::out_of_memory,
                               "device '{}' has no memory for state '{}' of {} bytes; use the device 'cpu'",
                               device.name, name_, bytes);
            fresh.context.reset(ggml_init(
                {.mem_size = ggml_tensor_overhead() + 64, .mem_buffer = nullptr, .no_alloc = true}));
            if (!fresh.context)
                return failure(Code::out_of_memory, "cannot allocate a tensor for state '{}'", name_);
            fresh.bytes = ggml_dup_tensor(fresh.context.get(), tensor);
            if (ggml_backend_tensor_alloc(fresh.buffer.get(), fresh.bytes,
                                          ggml_backend_buffer_get_base(fresh.buffer.get())) !=
                GGML_STATUS_SUCCESS)
                return failure(Code::backend_failure, "device '{}' refused state '{}' of {} bytes",
                               device.name, name_, bytes);
            copy = &copies_.emplace_back(std::move(fresh));
        }
        if (ggml_backend_tensor_alloc(copy->buffer.get(), tensor,
                                      ggml_backend_buffer_get_base(copy->buffer.get())) !=
            GGML_STATUS_SUCCESS)
            return failure(Code::backend_failure, "device '{}' refused state '{}'", device.name, name_);
        return success();
    });
}

Status StateMemory::bring_to_host() {
    if (host_is_current_) return success();
    const auto current = std::ranges::find(copies_, true, &Copy::is_current);
    HR_TRY(device_call(current->name, [&] {
        ggml_backend_tensor_get(current->bytes, host_.data(), 0, host_.bytes());
        return success();
    }));
    host_is_current_ = true;
    return success();
}

Status StateMemory::bring_to(const Device& device) {
    Copy* copy = find(device);
    if (copy->is_current) return success();
    HR_TRY(bring_to_host());
    HR_TRY(device_call(device.name, [&] {
        ggml_backend_tensor_set(copy->bytes, host_.data(), 0, host_.bytes());
        return success();
    }));
    copy->is_current = true;
    return success();
}

void StateMemory::written_on_host() {
    for (Copy& copy : copies_) copy.is_current = false;
    host_is_current_ = true;
}

void StateMemory::written_on(const Device& device) {
    host_is_current_ = false;
    for (Copy& copy : copies_) copy.is_current = copy.device == device.handle;
}

}  // namespace headrace
