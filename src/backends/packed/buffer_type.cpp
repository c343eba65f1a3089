#include "backends/packed/buffer_type.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/packed/format.h"
#include "backends/packed/product.h"
#include "base/aligned_buffer.h"
#include "ggml-impl.h"

namespace headrace::packed {
namespace {

/// A buffer's memory, and of its matrices what is not complete yet.
struct Memory {
    AlignedBuffer data;
    std::mutex mutex;
    std::map<const ggml_tensor*, std::vector<std::byte>> unfinished;  // rows that come in pieces

    explicit Memory(AlignedBuffer buffer) : data(std::move(buffer)) {}
};

Memory& memory_of(ggml_backend_buffer_t buffer) { return *static_cast<Memory*>(buffer->context); }

void pack(ggml_tensor* tensor, const std::byte* rows) {
    packed_format(tensor)->pack(rows, static_cast<std::size_t>(tensor->ne[0]),
                                static_cast<std::size_t>(tensor->ne[1]),
                                static_cast<std::byte*>(tensor->data));
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, std::size_t offset,
                std::size_t size) {
    const std::size_t whole = ggml_nbytes(tensor);
    if (offset == 0 && size == whole) return pack(tensor, static_cast<const std::byte*>(data));
    Memory& memory = memory_of(buffer);
    const std::lock_guard lock(memory.mutex);
    std::vector<std::byte>& rows = memory.unfinished[tensor];
    rows.resize(whole);
    std::memcpy(rows.data() + offset, data, size);
    if (offset + size < whole) return;  // loaders write from the start to the end
    pack(tensor, rows.data());
    memory.unfinished.erase(tensor);
}

/// Packed weights are not given back: q4_k's scales have been multiplied out. llama.cpp never asks for
/// weights.
void get_tensor(ggml_backend_buffer_t, const ggml_tensor* tensor, void* data, std::size_t, std::size_t size) {
    GGML_LOG_ERROR("ggml-headrace: %s is packed and cannot be read back: zeros\n", tensor->name);
    std::memset(data, 0, size);
}

constexpr ggml_backend_buffer_i kBufferInterface{
    .free_buffer = [](ggml_backend_buffer_t buffer) { delete &memory_of(buffer); },
    .get_base = [](ggml_backend_buffer_t buffer) -> void* { return memory_of(buffer).data.data(); },
    .memset_tensor = [](ggml_backend_buffer_t, ggml_tensor* tensor, std::uint8_t value, std::size_t,
                        std::size_t) { std::memset(tensor->data, value, allocation_size(tensor)); },
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .clear = [](ggml_backend_buffer_t buffer,
                std::uint8_t value) { std::memset(memory_of(buffer).data.data(), value, buffer->size); },
};

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, std::size_t size) {
    auto memory = AlignedBuffer::allocate(std::max<std::size_t>(size, 1), "packed weights");
    if (!memory.ok()) {
        GGML_LOG_ERROR("ggml-headrace: %s\n", memory.error().message.c_str());
        return nullptr;
    }
    return ggml_backend_buffer_init(type, kBufferInterface, new Memory(std::move(memory).value()), size);
}

}  // namespace

ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t cpu) {
    static ggml_backend_buffer_type instance{
        .iface = {.get_name = [](ggml_backend_buffer_type_t) { return "HEADRACE_PACKED"; },
                  .alloc_buffer = allocate,
                  .get_alignment = [](ggml_backend_buffer_type_t) { return AlignedBuffer::kAlignment; },
                  .get_alloc_size = [](ggml_backend_buffer_type_t,
                                       const ggml_tensor* tensor) { return allocation_size(tensor); }},
        .device = cpu,
        .context = products()};
    return &instance;
}

}  // namespace headrace::packed
