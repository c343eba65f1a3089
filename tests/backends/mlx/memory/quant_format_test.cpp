#include "backends/mlx/memory/quant_format.h"

#include <gmock/gmock.h>

#include "backends/mlx/buffer_type.h"
#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

constexpr std::int64_t kColumns = 1024, kRows = 256;

class RepackedType : public ::testing::TestWithParam<ggml_type> {
protected:
    const ggml_type type_ = GetParam();
    const std::vector<std::uint8_t> blocks_ = quantized(type_, random_values(kColumns* kRows), kColumns);
};

TEST_P(RepackedType, GivesBackEveryByte) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* t = ggml_new_tensor_2d(bench.c(), type_, kColumns, kRows);
    bench.allocate();
    ggml_backend_tensor_set(t, blocks_.data(), 0, blocks_.size());
    std::vector<std::uint8_t> read(blocks_.size());
    ggml_backend_tensor_get(t, read.data(), 0, read.size());
    EXPECT_EQ(read, blocks_);
}

TEST_P(RepackedType, TakesAndGivesPartsThatCutBlocks) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* t = ggml_new_tensor_2d(bench.c(), type_, kColumns, kRows);
    bench.allocate();
    ggml_backend_buffer_clear(bench.memory.get(), 0);
    for (std::size_t at = 0; at < blocks_.size();) {
        const std::size_t size = std::min<std::size_t>(1 + at % 611, blocks_.size() - at);
        ggml_backend_tensor_set(t, blocks_.data() + at, at, size);
        at += size;
    }
    std::vector<std::uint8_t> read(1000);
    ggml_backend_tensor_get(t, read.data(), 77, read.size());
    EXPECT_EQ(read, std::vector<std::uint8_t>(blocks_.begin() + 77, blocks_.begin() + 1077));
}

TEST_P(RepackedType, HasExactlyTheValuesOfGgmlsOwnConversion) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* t = ggml_new_tensor_2d(bench.c(), type_, kColumns, kRows);
    ggml_tensor* rows = ggml_new_tensor_1d(bench.c(), GGML_TYPE_I32, kRows);
    ggml_tensor* values = ggml_get_rows(bench.c(), t, rows);
    bench.output(values);
    bench.allocate();
    ggml_backend_tensor_set(t, blocks_.data(), 0, blocks_.size());
    std::vector<std::int32_t> numbers(kRows);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
    ggml_backend_tensor_set(rows, numbers.data(), 0, ggml_nbytes(rows));
    ASSERT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    EXPECT_EQ(get(values), dequantized(type_, blocks_, kColumns * kRows));
}

TEST_P(RepackedType, TakesScalesInF32AndBiasesOnlyWhereTheyAreNumbersOfTheirOwn) {
    ggml_tensor t{};
    t.type = type_;
    t.ne[0] = kColumns;
    t.ne[1] = kRows;
    t.ne[2] = t.ne[3] = 1;
    const std::size_t bytes = buffer_type()->iface.get_alloc_size(buffer_type(), &t);
    const bool has_biases = quant_format(type_)->has_biases();
    EXPECT_LE(static_cast<double>(bytes), (has_biases ? 1.5 : 1.12) * static_cast<double>(blocks_.size()));
}

INSTANTIATE_TEST_SUITE_P(Types, RepackedType,
                         ::testing::Values(GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
                                           GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_MXFP4,
                                           GGML_TYPE_NVFP4),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

TEST(QuantFormat, IsNothingForTypesThatMlxHasNoCodesFor) {
    EXPECT_EQ(quant_format(GGML_TYPE_Q6_K), nullptr);
    EXPECT_EQ(quant_format(GGML_TYPE_IQ4_NL), nullptr);
    EXPECT_EQ(quant_format(GGML_TYPE_F16), nullptr);
}

}  // namespace
}  // namespace headrace::mlx
