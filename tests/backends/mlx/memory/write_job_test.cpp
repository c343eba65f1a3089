#include "backends/mlx/memory/write_job.h"

#include <gmock/gmock.h>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/ggml_graph.h"
#include "backends/mlx/memory/buffer.h"
#include "backends/mlx/memory/quant_format.h"

namespace headrace::mlx {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

/// What a GPU's threads do, one after the other.
void run_on_host(const PlannedWrite& write, void* memory, const array& values, const array* numbers) {
    const std::int64_t* const rows = numbers ? numbers->data<std::int64_t>() : nullptr;
    const auto elements = [&]<class T>(T*) {
        for (std::int64_t i = 0; i < write.units; ++i)
            write_element(static_cast<T*>(memory), values.data<T>(), rows, write.job, i);
    };
    switch (write.element_bytes) {
        case 2: return elements(static_cast<std::uint16_t*>(nullptr));
        case 4: return elements(static_cast<std::uint32_t*>(nullptr));
        case 8: return elements(static_cast<std::uint64_t*>(nullptr));
        default: break;
    }
    ASSERT_EQ(write.element_bytes, 0);
    for (std::int64_t i = 0; i < write.units; ++i)
        write_group(static_cast<std::uint8_t*>(memory), values.data<float>(), rows, write.job, i);
}

array evaluated(const array& a) {
    array copy = mx::contiguous(a);
    mx::eval(copy);
    return copy;
}

array array_of(const std::vector<float>& values, Shape shape, mx::Dtype dtype = mx::float32) {
    return evaluated(mx::astype(array(values.begin(), std::move(shape)), dtype));
}

/// Two caches: one for the backend's CPU, and its twin for the kernels' code.
class WriteJobOf : public ::testing::TestWithParam<ggml_type> {
protected:
    static constexpr int kColumns = 64, kRows = 12, kHeads = 3, kBatches = 2;

    ggml_tensor* cache() { return ggml_new_tensor_4d(bench_.c(), type_, kColumns, kRows, kHeads, kBatches); }
    /// The same of either cache: columns 32 to 64 of the rows from the third on, the heads skipped or not.
    ggml_tensor* part(ggml_tensor* of) {
        return ggml_view_4d(bench_.c(), of, kColumns / 2, kRows - 2, kHeads, kBatches, of->nb[1], of->nb[2],
                            of->nb[3], 2 * of->nb[1] + ggml_row_size(type_, kColumns / 2));
    }
    void expect_equal() {
        std::vector<std::uint8_t> expected(ggml_nbytes(on_cpu_)), found(expected.size());
        ggml_backend_tensor_get(on_cpu_, expected.data(), 0, expected.size());
        ggml_backend_tensor_get(by_kernel_, found.data(), 0, found.size());
        EXPECT_EQ(found, expected);
        EXPECT_NE(std::count(found.begin(), found.end(), 0), static_cast<std::ptrdiff_t>(found.size()));
    }
    mx::Dtype values_dtype() const { return ggml_is_quantized(type_) ? mx::float32 : require_dtype(type_); }
    void clear() { ggml_backend_buffer_clear(bench_.memory.get(), 0); }

    const ggml_type type_ = GetParam();
    const BackendHandle backend_ = mlx_backend();
    Workbench bench_{backend_.get()};
    ggml_tensor *on_cpu_ = cache(), *by_kernel_ = cache();
};

TEST_P(WriteJobOf, PutsEveryRowOfAViewWhereTheCpuPutsIt) {
    ggml_tensor* x = ggml_new_tensor_4d(bench_.c(), GGML_TYPE_F32, kColumns / 2, kRows - 2, kHeads, kBatches);
    ggml_tensor* to = part(by_kernel_);
    bench_.output(ggml_cpy(bench_.c(), x, part(on_cpu_)));
    bench_.allocate();
    clear();
    const auto values = random_values(ggml_nelements(x));
    set(x, values);
    ASSERT_EQ(bench_.compute(), GGML_STATUS_SUCCESS);
    const array given = array_of(values, shape_of(x), values_dtype());
    const auto write = plan_write(to, given, nullptr);
    ASSERT_TRUE(write);
    run_on_host(*write, by_kernel_->data, given, nullptr);
    expect_equal();
}

TEST_P(WriteJobOf, ScattersRowsWhereTheCpuPutsThem) {
    ggml_tensor* x = ggml_new_tensor_4d(bench_.c(), GGML_TYPE_F32, kColumns, 5, kHeads, kBatches);
    // One list of numbers for each batch, which all heads share.
    ggml_tensor* numbers = ggml_new_tensor_3d(bench_.c(), GGML_TYPE_I64, 5, 1, kBatches);
    bench_.output(ggml_set_rows(bench_.c(), on_cpu_, x, numbers));
    bench_.allocate();
    clear();
    const auto values = random_values(ggml_nelements(x));
    set(x, values);
    const std::int64_t rows[] = {11, 0, 4, 7, 2, 3, 9, 1, 10, 5};
    ggml_backend_tensor_set(numbers, rows, 0, sizeof rows);
    ASSERT_EQ(bench_.compute(), GGML_STATUS_SUCCESS);
    const array given = array_of(values, shape_of(x), values_dtype());
    const array chosen(std::begin(rows), shape_of(numbers), mx::int64);
    const auto write = plan_write(by_kernel_, given, &chosen);
    ASSERT_TRUE(write);
    run_on_host(*write, by_kernel_->data, given, &chosen);
    expect_equal();
}

TEST_P(WriteJobOf, LeavesMemoryAloneForRowsThatDoNotExist) {
    bench_.allocate();
    clear();
    const array given = array_of(random_values(2 * kColumns), {1, 1, 2, kColumns}, values_dtype());
    const std::int64_t rows[] = {kRows, -1};
    const array chosen(std::begin(rows), {1, 1, 1, 2}, mx::int64);
    const auto write = plan_write(by_kernel_, given, &chosen);
    ASSERT_TRUE(write);
    run_on_host(*write, by_kernel_->data, given, &chosen);
    const std::vector<char> memory(static_cast<char*>(by_kernel_->data),
                                   static_cast<char*>(by_kernel_->data) + ggml_nbytes(by_kernel_));
    EXPECT_THAT(memory, Each(0));
}

INSTANTIATE_TEST_SUITE_P(Types, WriteJobOf,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

// As MLX's kernels on a GPU need it; the CPU's formats have none there, so the tests above do not reach it.
TEST(WriteJob, KeepsABiasForEveryScaleWhereItIsGivenAPlaceForIt) {
    const auto values = random_values(32);
    std::vector<std::uint8_t> block(ggml_type_size(GGML_TYPE_Q4_0));
    ggml_get_type_traits(GGML_TYPE_Q4_0)->from_float_ref(values.data(), block.data(), 32);
    const auto expected = dequantized(GGML_TYPE_Q4_0, block, 32);
    float memory[6] = {};  // 16 bytes of codes, the scale, the bias
    const WriteJob job{.extent = {1, 1, 1, 1}, .rows = 1, .scales = 4, .biases = 5, .bits = 4, .offset = 8};
    const auto* codes = reinterpret_cast<std::uint8_t*>(memory);
    write_group(reinterpret_cast<std::uint8_t*>(memory), values.data(), nullptr, job, 0);
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(static_cast<float>(codes[i / 2] >> (i % 2 * 4) & 15) * memory[4] + memory[5], expected[i]);
}

TEST(WriteJob, IsNothingForBlocksThatTheKernelsDoNotWrite) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* k_quant = ggml_new_tensor_2d(bench.c(), GGML_TYPE_Q4_K, 256, 2);
    ggml_tensor* without_format = ggml_new_tensor_2d(bench.c(), GGML_TYPE_Q6_K, 256, 2);
    ggml_tensor* cache = ggml_new_tensor_2d(bench.c(), GGML_TYPE_Q8_0, 256, 2);
    bench.allocate();
    const array values = mx::zeros({1, 1, 2, 256});
    EXPECT_FALSE(plan_write(k_quant, values, nullptr));
    EXPECT_FALSE(plan_write(without_format, values, nullptr));
    EXPECT_TRUE(plan_write(cache, values, nullptr));
    EXPECT_FALSE(plan_write(cache, mx::zeros({1, 1, 2, 272}, mx::uint8), nullptr)) << "blocks as they are";
}

}  // namespace
}  // namespace headrace::mlx
