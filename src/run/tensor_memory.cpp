#include "run/tensor_memory.h"

#include <algorithm>
#include <cstring>

#include "ggml-backend.h"
#include "ggml.h"
#include "run/device_call.h"

namespace headrace {

Result<BackendBuffer> allocate_buffer(const Device& device, const ggml_tensor* like,
                                      const std::string& what) {
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device.handle);
    const std::size_t bytes = ggml_backend_buft_get_alloc_size(type, like);
    BackendBuffer buffer(ggml_backend_buft_alloc_buffer(type, bytes));
    if (buffer) return buffer;
    return failure(Code::out_of_memory, "device '{}' has no memory for {} of {} bytes; use the device 'cpu'",
                   device.name, what, bytes);
}

Status place_in_buffer(ggml_backend_buffer* buffer, ggml_tensor* tensor, std::span<ggml_tensor* const> views,
                       const Device& device, const std::string& what) {
    void* const base = ggml_backend_buffer_get_base(buffer);
    if (tensor->buffer == buffer && tensor->data == base) return success();
    tensor->buffer = nullptr;
    tensor->data = nullptr;
    bool is_placed = ggml_backend_tensor_alloc(buffer, tensor, base) == GGML_STATUS_SUCCESS;
    for (ggml_tensor* view : views) {
        view->buffer = nullptr;
        view->data = nullptr;
        is_placed = is_placed && ggml_backend_view_init(view) == GGML_STATUS_SUCCESS;
    }
    if (is_placed) return success();
    return failure(Code::backend_failure, "device '{}' refused {} of {} bytes", device.name, what,
                   ggml_nbytes(tensor));
}

Result<std::shared_ptr<TensorMemory>> TensorMemory::make(const BufferPool& pool, std::size_t bytes,
                                                         const std::string& what) {
    HR_ASSIGN(PooledBuffer host, PooledBuffer::take(pool, bytes, what));
    return std::make_shared<TensorMemory>(std::move(host), what);
}

TensorMemory::Copy* TensorMemory::find(const Device& device) {
    const auto at = std::ranges::find(copies_, device.handle, &Copy::device);
    return at == copies_.end() ? nullptr : &*at;
}

const TensorMemory::Copy* TensorMemory::current() const {
    const auto at = std::ranges::find(copies_, true, &Copy::is_current);
    return at == copies_.end() ? nullptr : &*at;
}

Result<TensorMemory::Copy> TensorMemory::allocate(const Device& device, const ggml_tensor* like) const {
    Copy fresh{.device = device.handle, .name = device.name};
    HR_ASSIGN(fresh.buffer, allocate_buffer(device, like, what_));
    fresh.context.reset(
        ggml_init({.mem_size = ggml_tensor_overhead() + 64, .mem_buffer = nullptr, .no_alloc = true}));
    if (!fresh.context) return failure(Code::out_of_memory, "cannot allocate a tensor for {}", what_);
    fresh.bytes =
        ggml_new_tensor_1d(fresh.context.get(), GGML_TYPE_I8, static_cast<std::int64_t>(host_.bytes()));
    HR_TRY(place_in_buffer(fresh.buffer.get(), fresh.bytes, {}, device, what_));
    return fresh;
}

Status TensorMemory::place_on(const Device& device, ggml_tensor* tensor,
                              std::span<ggml_tensor* const> views) {
    const std::lock_guard lock(mutex_);
    return device_call(device.name, [&]() -> Status {
        Copy* copy = find(device);
        if (!copy) {
            HR_ASSIGN(Copy fresh, allocate(device, tensor));
            copy = &copies_.emplace_back(std::move(fresh));
        }
        if (ggml_nbytes(tensor) != host_.bytes())
            return failure(Code::backend_failure, "{} of {} bytes is no memory for a tensor of {}", what_,
                           host_.bytes(), ggml_nbytes(tensor));
        return place_in_buffer(copy->buffer.get(), tensor, views, device, what_);
    });
}

Result<bool> TensorMemory::bring_to_host() {
    if (host_is_current_) return false;
    const std::lock_guard lock(mutex_);
    return fetch();
}

Result<bool> TensorMemory::fetch() {
    if (host_is_current_) return false;
    const Copy& from = *current();
    HR_TRY(device_call(from.name, [&] {
        ggml_backend_tensor_get(from.bytes, host_.data(), 0, host_.bytes());
        return success();
    }));
    host_is_current_ = true;
    return true;
}

Result<bool> TensorMemory::bring_to(const Device& device) {
    const std::lock_guard lock(mutex_);
    Copy* copy = find(device);
    if (copy->is_current) return false;
    HR_TRY(fetch());
    HR_TRY(device_call(device.name, [&] {
        ggml_backend_tensor_set(copy->bytes, host_.data(), 0, host_.bytes());
        return success();
    }));
    copy->is_current = true;
    return true;
}

void TensorMemory::written_on_host() {
    const std::lock_guard lock(mutex_);
    for (Copy& copy : copies_) copy.is_current = false;
    host_is_current_ = true;
}

void TensorMemory::written_on(const Device& device) {
    const std::lock_guard lock(mutex_);
    host_is_current_ = false;
    for (Copy& copy : copies_) copy.is_current = copy.device == device.handle;
}

Status TensorMemory::read(void* data) const {
    if (host_is_current_) {
        std::memcpy(data, host_.data(), host_.bytes());
        return success();
    }
    const std::lock_guard lock(mutex_);
    const Copy& from = *current();
    return device_call(from.name, [&] {
        ggml_backend_tensor_get(from.bytes, data, 0, host_.bytes());
        return success();
    });
}

/// A tensor that runs on a device read is written there, and the host's memory is behind.
Status TensorMemory::write(const void* data) {
    {
        const std::lock_guard lock(mutex_);
        const Copy* to = current();
        if (to) {
            HR_TRY(device_call(to->name, [&] {
                ggml_backend_tensor_set(to->bytes, data, 0, host_.bytes());
                return success();
            }));
            for (Copy& copy : copies_) copy.is_current = &copy == to;
            host_is_current_ = false;
            return success();
        }
    }
    std::memcpy(host_.data(), data, host_.bytes());
    written_on_host();
    return success();
}

}  // namespace headrace
