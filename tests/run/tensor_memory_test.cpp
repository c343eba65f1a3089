#include "run/tensor_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "ggml-backend.h"
#include "ggml.h"
#include "loading/backends.h"

namespace headrace {
namespace {

using FourFloats = std::array<float, 4>;

/// Memory of four floats and a tensor that has it on a "device": the CPU's memory, as ggml gives it.
class TensorMemoryTest : public ::testing::Test {
protected:
    TensorMemoryTest() {
        load_backends();
        device_ = find_device("cpu").value();
        context_.reset(
            ggml_init({.mem_size = ggml_tensor_overhead() + 64, .mem_buffer = nullptr, .no_alloc = true}));
        tensor_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, 4);
        memory_ = TensorMemory::make(BufferPool(), sizeof(FourFloats), "state 'total'").value();
        EXPECT_TRUE(memory_->place_on(device_, tensor_).ok());
    }

    void write_host(const FourFloats& values) {
        std::memcpy(memory_->host(), values.data(), sizeof(values));
        memory_->written_on_host();
    }
    FourFloats read_host() {
        EXPECT_TRUE(memory_->bring_to_host().ok());
        FourFloats values;
        std::memcpy(values.data(), memory_->host(), sizeof(values));
        return values;
    }
    void write_device(const FourFloats& values) {
        ggml_backend_tensor_set(tensor_, values.data(), 0, sizeof(values));
        memory_->written_on(device_);
    }
    FourFloats read_device() {
        EXPECT_TRUE(memory_->bring_to(device_).ok());
        FourFloats values;
        ggml_backend_tensor_get(tensor_, values.data(), 0, sizeof(values));
        return values;
    }

    Device device_;
    std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_{nullptr, &ggml_free};
    ggml_tensor* tensor_ = nullptr;
    std::shared_ptr<TensorMemory> memory_;
};

TEST_F(TensorMemoryTest, ComesFromWhereItWasWrittenLast) {
    write_host({1, 2, 3, 4});
    EXPECT_EQ(read_device(), (FourFloats{1, 2, 3, 4}));
    write_device({5, 6, 7, 8});
    EXPECT_EQ(read_host(), (FourFloats{5, 6, 7, 8}));
    write_host({9, 9, 9, 9});
    EXPECT_EQ(read_device(), (FourFloats{9, 9, 9, 9}));
}

TEST_F(TensorMemoryTest, IsNotCopiedWhereItIsCurrent) {
    write_host({1, 2, 3, 4});
    EXPECT_EQ(read_device(), (FourFloats{1, 2, 3, 4}));
    const FourFloats unnoticed{7, 7, 7, 7};
    std::memcpy(memory_->host(), unnoticed.data(), sizeof(unnoticed));
    EXPECT_EQ(read_device(), (FourFloats{1, 2, 3, 4})) << "nothing said that it was written";
}

TEST_F(TensorMemoryTest, TensorsOfADeviceShareIt) {
    ggml_tensor* const first = tensor_;
    const std::unique_ptr<ggml_context, void (*)(ggml_context*)> context(
        ggml_init({.mem_size = ggml_tensor_overhead() + 64, .mem_buffer = nullptr, .no_alloc = true}),
        &ggml_free);
    ggml_tensor* const second = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 4);
    ASSERT_TRUE(memory_->place_on(device_, second).ok());
    EXPECT_EQ(first->data, second->data);
}

}  // namespace
}  // namespace headrace
