#include "headrace/tensor.h"

#include <cstring>

#include "ir/tensor_type.h"
#include "run/tensor_memory.h"

namespace headrace {
namespace {

void check_size(const TensorMemory& memory, std::size_t bytes) {
    if (bytes != memory.bytes())
        throw Exception(Code::invalid_argument,
                        fmt::format("{} bytes given, the tensor has {}", bytes, memory.bytes()));
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, const BufferPool* buffers)
    : dtype_(dtype), shape_(std::move(shape)) {
    const TensorType type{dtype_, {shape_.begin(), shape_.end()}};
    value_or_throw(type.check());
    memory_ =
        value_or_throw(TensorMemory::make(buffers ? *buffers : BufferPool(0), type.bytes(), "a tensor"));
    std::memset(memory_->host(), 0, memory_->bytes());
}
Tensor::~Tensor() = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;

std::size_t Tensor::bytes() const { return memory_->bytes(); }
InputView Tensor::input() const { return {dtype_, shape_, memory_->host(), memory_.get()}; }
OutputView Tensor::output() { return {memory_->host(), memory_->bytes(), memory_.get()}; }
bool Tensor::is_on_device() const { return memory_->is_elsewhere(); }

void Tensor::read(void* data, std::size_t bytes) const {
    check_size(*memory_, bytes);
    value_or_throw(memory_->read(data));
}

void Tensor::write(const void* data, std::size_t bytes) {
    check_size(*memory_, bytes);
    value_or_throw(memory_->write(data));
}

}  // namespace headrace
