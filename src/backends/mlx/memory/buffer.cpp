#include "backends/mlx/memory/buffer.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace headrace::mlx {
namespace {

struct Layout {
    bool row_contiguous = true, column_contiguous = true;
    std::size_t span = 1;  ///< elements from the first to the last one
};

Layout layout_of(const Shape& shape, const Strides& strides) {
    Layout layout;
    std::int64_t row = 1, column = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (shape[i] != 1 && strides[i] != row) layout.row_contiguous = false;
        row *= shape[i];
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] != 1 && strides[i] != column) layout.column_contiguous = false;
        column *= shape[i];
        layout.span += static_cast<std::size_t>(shape[i] - 1) * strides[i];
    }
    return layout;
}

/// MLX's allocator on the CPU hands out a null pointer, which set_data and every kernel then write to.
void give_memory(array& a, std::size_t bytes) {
    auto data = mx::allocator::malloc(bytes);
    if (bytes > 0 && !data.buffer().ptr())
        throw std::runtime_error("Unable to allocate " + std::to_string(bytes) + " bytes");
    a.set_data(std::move(data));
}

}  // namespace

Buffer::Buffer(std::size_t size) : owner_(Shape{1}, mx::uint8, nullptr, {}), size_(size) {
    const std::size_t bytes = size + kAlignment;
    give_memory(owner_, bytes);
    owner_.set_status(array::Status::available);
    const auto address = reinterpret_cast<std::uintptr_t>(owner_.data<char>());
    base_ = reinterpret_cast<char*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

array Buffer::alias(const void* data, Shape shape, Strides strides, mx::Dtype dtype) const {
    array view(shape, dtype, nullptr, {});
    if (view.size() == 0) return allocate(std::move(shape), dtype);
    const Layout layout = layout_of(shape, strides);
    const std::int64_t offset = static_cast<const char*>(data) - owner_.data<char>();
    view.copy_shared_buffer(
        owner_, strides,
        {layout.row_contiguous || layout.column_contiguous, layout.row_contiguous, layout.column_contiguous},
        layout.span, offset / static_cast<std::int64_t>(view.itemsize()));
    view.set_status(array::Status::available);
    return view;
}

array allocate(Shape shape, mx::Dtype dtype) {
    array result(std::move(shape), dtype, nullptr, {});
    give_memory(result, result.nbytes());
    result.set_status(array::Status::available);
    return result;
}

}  // namespace headrace::mlx
