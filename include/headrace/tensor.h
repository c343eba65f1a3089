#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/headrace.h"

namespace headrace {

/// Memory for inputs and outputs that stays where runs leave it: what a run on a device writes lies on that
/// device, and the next run there reads it without a copy. On the CPU it is memory of the host. It is copied
/// when it is wanted elsewhere, once. Runs may read it at the same time; who writes it is alone with it.
class HEADRACE_API Tensor {
public:
    /// Zeros. buffers: where the host's memory comes from; null: the system.
    Tensor(DType dtype, std::vector<std::int64_t> shape, const BufferPool* buffers = nullptr);
    ~Tensor();
    Tensor(Tensor&&) noexcept;
    Tensor& operator=(Tensor&&) noexcept;

    DType dtype() const { return dtype_; }
    const std::vector<std::int64_t>& shape() const { return shape_; }
    std::size_t bytes() const;
    /// For Session::run(), as long as the tensor lives.
    InputView input() const;
    OutputView output();

    /// Copies all of it out or in; bytes must be bytes().
    void read(void* data, std::size_t bytes) const;
    void write(const void* data, std::size_t bytes);
    /// Whether its content is on a device now.
    bool is_on_device() const;

private:
    DType dtype_;
    std::vector<std::int64_t> shape_;
    std::shared_ptr<TensorMemory> memory_;
};

}  // namespace headrace
