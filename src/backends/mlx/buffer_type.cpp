#include "backends/mlx/buffer_type.h"

#include <cstring>
#include <vector>

#include "backends/mlx/arrays/status.h"
#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/device.h"
#include "backends/mlx/memory/buffer.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "backends/mlx/memory/quant_format.h"
#include "ggml-backend-impl.h"

namespace headrace::mlx {
namespace {

Buffer& buffer(ggml_backend_buffer_t b) { return *static_cast<Buffer*>(b->context); }

// Computing is finished when graph_compute returns, on a GPU's stream and on the host's, whether it failed or
// not. So the accesses below have nothing to wait for, and may go to a GPU's memory by its address.

void free_buffer(ggml_backend_buffer_t b) { delete &buffer(b); }
void* get_base(ggml_backend_buffer_t b) { return buffer(b).base(); }

/// The byte at which the tensor begins in what ggml thinks its root's memory is.
std::size_t offset_in_root(const ggml_tensor* t) {
    return static_cast<const char*>(t->data) - static_cast<const char*>(root_of(t)->data);
}

void forget_copies(ggml_backend_buffer_t b, const ggml_tensor* t) {
    const ggml_tensor* root = root_of(t);
    buffer(b).weights().drop(root->data, ggml_nbytes(root));
}

void set_tensor(ggml_backend_buffer_t b, ggml_tensor* t, const void* data, std::size_t offset,
                std::size_t size) {
    forget_copies(b, t);
    if (is_packed(t))
        PackedTensor(root_of(t)).write(data, offset_in_root(t) + offset, size);
    else
        std::memcpy(static_cast<char*>(t->data) + offset, data, size);
}

void get_tensor(ggml_backend_buffer_t, const ggml_tensor* t, void* data, std::size_t offset,
                std::size_t size) {
    if (is_packed(t))
        PackedTensor(root_of(t)).read(data, offset_in_root(t) + offset, size);
    else
        std::memcpy(data, static_cast<const char*>(t->data) + offset, size);
}

void memset_tensor(ggml_backend_buffer_t b, ggml_tensor* t, std::uint8_t value, std::size_t offset,
                   std::size_t size) {
    const std::vector<std::uint8_t> bytes(size, value);
    set_tensor(b, t, bytes.data(), offset, size);
}

bool copy_tensor(ggml_backend_buffer_t b, const ggml_tensor* from, ggml_tensor* to) {
    if (!buffer_of(from) || is_packed(from)) return false;  // ggml goes through host memory then
    set_tensor(b, to, from->data, 0, ggml_nbytes(from));
    return true;
}

void clear(ggml_backend_buffer_t b, std::uint8_t value) {
    buffer(b).weights().drop(buffer(b).base(), buffer(b).size());
    std::memset(buffer(b).base(), value, buffer(b).size());
}

constexpr ggml_backend_buffer_i kBufferInterface{.free_buffer = free_buffer,
                                                 .get_base = get_base,
                                                 .memset_tensor = memset_tensor,
                                                 .set_tensor = set_tensor,
                                                 .get_tensor = get_tensor,
                                                 .cpy_tensor = copy_tensor,
                                                 .clear = clear};

ggml_backend_buffer_t allocate_buffer(ggml_backend_buffer_type_t type, std::size_t size) {
    Buffer* made = nullptr;
    const ggml_status status = guarded("allocating a buffer", [&] { made = new Buffer(size); });
    return status == GGML_STATUS_SUCCESS ? ggml_backend_buffer_init(type, kBufferInterface, made, size)
                                         : nullptr;
}

std::size_t allocation_size(ggml_backend_buffer_type_t, const ggml_tensor* t) {
    const QuantFormat* format = quant_format(t->type);
    return format ? packed_layout(*format, ggml_nelements(t)).end : ggml_nbytes(t);
}

}  // namespace

ggml_backend_buffer_type_t buffer_type() {
    static ggml_backend_buffer_type type{
        .iface = {.get_name = [](ggml_backend_buffer_type_t) { return "MLX0"; },
                  .alloc_buffer = allocate_buffer,
                  .get_alignment = [](ggml_backend_buffer_type_t) { return Buffer::kAlignment; },
                  .get_alloc_size = allocation_size,
                  .is_host = [](ggml_backend_buffer_type_t) { return false; }},
        .device = device(),
        .context = nullptr};
    return &type;
}

Buffer* buffer_of(const ggml_tensor* t) {
    const ggml_backend_buffer_t b = root_of(t)->buffer;
    return b && b->iface.free_buffer == free_buffer ? static_cast<Buffer*>(b->context) : nullptr;
}

}  // namespace headrace::mlx
