#include <gmock/gmock.h>

#include "backends/mlx/ggml_graph.h"
#include "backends/mlx/memory/weight_cache.h"

namespace headrace::mlx {
namespace {

constexpr std::int64_t kInner = 1024, kOutputs = 128;

struct Product {
    std::vector<float> weights, x;  ///< weights as the type holds them
    std::vector<std::uint8_t> blocks;
    std::int64_t rows;
};

Product make_product(ggml_type type, std::int64_t rows) {
    Product p{
        .weights = random_values(kInner * kOutputs), .x = random_values(kInner * rows, 2), .rows = rows};
    for (float& w : p.weights) w /= std::sqrt(static_cast<float>(kInner));
    if (type == GGML_TYPE_F32) {
        p.blocks.resize(p.weights.size() * 4);
        std::memcpy(p.blocks.data(), p.weights.data(), p.blocks.size());
    } else {
        p.blocks = quantized(type, p.weights, kInner);
        p.weights = dequantized(type, p.blocks, kInner * kOutputs);
    }
    return p;
}

std::vector<float> multiply(ggml_backend_t backend, ggml_type type, const Product& p, bool as_weights) {
    Workbench bench(backend);
    ggml_tensor* w = ggml_new_tensor_2d(bench.c(), type, kInner, kOutputs);
    ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, kInner, p.rows);
    ggml_tensor* y = ggml_mul_mat(bench.c(), w, x);
    bench.output(y);
    bench.allocate();
    if (as_weights) ggml_backend_buffer_set_usage(bench.memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_tensor_set(w, p.blocks.data(), 0, p.blocks.size());
    set(x, p.x);
    EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    return get(y);
}

std::vector<float> exact(const Product& p) {
    std::vector<float> y(static_cast<std::size_t>(kOutputs * p.rows));
    for (std::int64_t n = 0; n < p.rows; ++n)
        for (std::int64_t m = 0; m < kOutputs; ++m) {
            double sum = 0;
            for (std::int64_t k = 0; k < kInner; ++k)
                sum += static_cast<double>(p.weights[m * kInner + k]) * p.x[n * kInner + k];
            y[n * kOutputs + m] = static_cast<float>(sum);
        }
    return y;
}

class Matmul : public ::testing::TestWithParam<ggml_type> {};

/// ggml's CPU rounds the activations of 16-bit and quantised products and is up to 2.6e-2 away from the same
/// truth.
TEST_P(Matmul, DiffersFromExactArithmeticByLessThan1e_5) {
    const BackendHandle backend = mlx_backend();
    for (const std::int64_t rows : {1, 8, 40}) {
        const Product p = make_product(GetParam(), rows);
        for (const bool as_weights : {false, true})
            EXPECT_LT(largest_difference(multiply(backend.get(), GetParam(), p, as_weights), exact(p)), 1e-5)
                << rows << " rows, " << (as_weights ? "weights" : "activations");
    }
}

TEST(Matmul, OfF32DiffersFromGgmlsCpuByLessThan1e_5) {
    const Product p = make_product(GGML_TYPE_F32, 8);
    const BackendHandle mlx = mlx_backend(), cpu = cpu_backend();
    EXPECT_LT(largest_difference(multiply(mlx.get(), GGML_TYPE_F32, p, true),
                                 multiply(cpu.get(), GGML_TYPE_F32, p, true)),
              1e-5);
}

INSTANTIATE_TEST_SUITE_P(Types, Matmul,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
                                           GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS,
                                           GGML_TYPE_MXFP4, GGML_TYPE_NVFP4),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

class WeightCacheLimit : public ::testing::Test {
protected:
    ~WeightCacheLimit() override { WeightCache::set_limit(before_); }
    const std::size_t before_ = WeightCache::limit();
};

TEST_F(WeightCacheLimit, KeepsF32CopiesUntilTheirBufferIsFreed) {
    const std::size_t used = WeightCache::bytes_in_use();
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* w = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F16, 64, 64);
    ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 64, 32);  // few rows read it as it is
    bench.output(ggml_mul_mat(bench.c(), w, x));
    bench.allocate();
    ggml_backend_buffer_set_usage(bench.memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(bench.memory.get(), 0);
    ASSERT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    EXPECT_EQ(WeightCache::bytes_in_use(), used + 64 * 64 * 4);
    bench.memory.reset();
    EXPECT_EQ(WeightCache::bytes_in_use(), used);
}

TEST_F(WeightCacheLimit, KeepsCopiesOfAMatrixAndOfItsFirstRowsApart) {
    const BackendHandle backend = mlx_backend();
    const Product p = make_product(GGML_TYPE_F16, 40);
    Workbench bench(backend.get());
    ggml_tensor* w = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F16, kInner, kOutputs);
    ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, kInner, p.rows);
    ggml_tensor* some = ggml_mul_mat(bench.c(), ggml_view_2d(bench.c(), w, kInner, 5, w->nb[1], 0), x);
    ggml_tensor* all = ggml_mul_mat(bench.c(), w, x);
    bench.output(some);
    bench.output(all);
    bench.allocate();
    ggml_backend_buffer_set_usage(bench.memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_tensor_set(w, p.blocks.data(), 0, p.blocks.size());
    set(x, p.x);
    ASSERT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    const std::vector<float> expected = exact(p);
    EXPECT_LT(largest_difference(get(all), expected), 1e-5);
    std::vector<float> first_columns;
    for (std::int64_t n = 0; n < p.rows; ++n)
        first_columns.insert(first_columns.end(), expected.begin() + n * kOutputs,
                             expected.begin() + n * kOutputs + 5);
    EXPECT_LT(largest_difference(get(some), first_columns), 1e-5);
}

TEST_F(WeightCacheLimit, ConvertsInEachRunWhatDoesNotFit) {
    WeightCache::set_limit(WeightCache::bytes_in_use() + 100);
    const std::size_t used = WeightCache::bytes_in_use();
    const BackendHandle backend = mlx_backend();
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q6_K}) {
        const Product p = make_product(type, 8);
        EXPECT_LT(largest_difference(multiply(backend.get(), type, p, true), exact(p)), 1e-5);
    }
    EXPECT_EQ(WeightCache::bytes_in_use(), used);
}

}  // namespace
}  // namespace headrace::mlx
