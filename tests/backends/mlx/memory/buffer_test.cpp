#include "backends/mlx/memory/buffer.h"

#include <gmock/gmock.h>

#include "backends/mlx/buffer_type.h"
#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using ::testing::Each;

constexpr std::int64_t kColumns = 256, kRows = 6;

std::vector<std::uint8_t> bytes_of(const ggml_tensor* t) {
    std::vector<std::uint8_t> bytes(ggml_nbytes(t));
    ggml_backend_tensor_get(t, bytes.data(), 0, bytes.size());
    return bytes;
}

/// By type: one whose bits are reordered, and one that lies in memory as ggml has it.
class BufferOf : public ::testing::TestWithParam<ggml_type> {
protected:
    ggml_tensor* matrix(Workbench& bench) {
        return ggml_new_tensor_2d(bench.c(), GetParam(), kColumns, kRows);
    }
    void fill(ggml_tensor* t, unsigned seed) {
        const auto blocks = quantized(t->type, random_values(kColumns * kRows, seed), kColumns);
        ggml_backend_tensor_set(t, blocks.data(), 0, blocks.size());
    }

    const BackendHandle backend_ = mlx_backend();
    Workbench one_{backend_.get()}, other_{backend_.get()};
};

TEST_P(BufferOf, GivesItsBytesToATensorOfAnotherBuffer) {
    ggml_tensor *from = matrix(one_), *to = matrix(other_);
    one_.allocate();
    other_.allocate();
    fill(from, 1);
    fill(to, 2);
    ASSERT_NE(bytes_of(from), bytes_of(to));
    ggml_backend_tensor_copy(from, to);
    EXPECT_EQ(bytes_of(to), bytes_of(from));
}

TEST_P(BufferOf, SetsAPartOfATensorToOneByte) {
    ggml_tensor* t = matrix(one_);
    one_.allocate();
    fill(t, 1);
    auto expected = bytes_of(t);
    const std::size_t begin = expected.size() / 3, size = expected.size() / 2;
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), size, 0x21);
    ggml_backend_tensor_memset(t, 0x21, begin, size);
    EXPECT_EQ(bytes_of(t), expected);
}

TEST_P(BufferOf, IsClearedForTheGraphsThatReadIt) {
    ggml_tensor* w = matrix(one_);
    ggml_tensor* x = ggml_new_tensor_2d(one_.c(), GGML_TYPE_F32, kColumns, 2);
    ggml_tensor* y = ggml_mul_mat(one_.c(), w, x);
    one_.output(y);
    one_.allocate();
    fill(w, 1);
    set(x, random_values(kColumns * 2));
    ASSERT_EQ(one_.compute(), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(y), ::testing::Not(Each(0)));
    ggml_backend_buffer_clear(one_.memory.get(), 0);
    ASSERT_EQ(one_.compute(), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(y), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Types, BufferOf,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

TEST(Buffer, IsOpaqueToEveryoneElse) { EXPECT_FALSE(ggml_backend_buft_is_host(buffer_type())); }

TEST(Buffer, IsSharedByItsArrays) {
    const Buffer buffer(4096);
    const array view = buffer.alias(buffer.base() + 128, {2, 3}, {8, 1}, mx::float32);
    EXPECT_EQ(static_cast<const void*>(view.data<float>()), buffer.base() + 128);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.base()) % Buffer::kAlignment, 0);
}

}  // namespace
}  // namespace headrace::mlx
