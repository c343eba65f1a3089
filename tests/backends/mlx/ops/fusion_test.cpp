#include "backends/mlx/ops/fusion.h"

#include <gmock/gmock.h>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

/// A graph on MLX and on ggml's CPU.
class Fusion : public ::testing::Test {
protected:
    using Build =
        std::function<ggml_tensor*(ggml_context*, ggml_tensor* x, ggml_tensor* row, ggml_tensor* matrix)>;

    std::vector<float> run(ggml_backend_t backend, const Build& build) {
        Workbench bench(backend);
        ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 32, 5);
        ggml_tensor* row = ggml_new_tensor_1d(bench.c(), GGML_TYPE_F32, 32);
        ggml_tensor* matrix = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 32, 32);
        ggml_tensor* y = build(bench.c(), x, row, matrix);
        bench.output(y);
        bench.allocate();
        set(x, random_values(32 * 5, 1));
        set(row, random_values(32, 2));
        set(matrix, random_values(32 * 32, 3));
        EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
        return get(y);
    }
    void expect_same(const Build& build) {
        const BackendHandle mlx = mlx_backend(), cpu = cpu_backend();
        EXPECT_LT(largest_difference(run(mlx.get(), build), run(cpu.get(), build)), 2e-5);
    }
};

TEST_F(Fusion, ScalesAnRmsNorm) {
    expect_same(
        [](auto* c, auto* x, auto* row, auto*) { return ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), row); });
}
TEST_F(Fusion, ScalesAndShiftsANorm) {
    expect_same([](auto* c, auto* x, auto* row, auto*) {
        return ggml_add(c, ggml_mul(c, ggml_norm(c, x, 1e-5f), row), row);
    });
}
TEST_F(Fusion, AddsABiasToAProduct) {
    expect_same([](auto* c, auto* x, auto* row, auto* matrix) {
        return ggml_add(c, ggml_mul_mat(c, matrix, x), row);
    });
}
TEST_F(Fusion, KeepsAValueInBetweenThatIsUsedElsewhere) {
    expect_same([](auto* c, auto* x, auto* row, auto*) {
        ggml_tensor* norm = ggml_rms_norm(c, x, 1e-5f);
        return ggml_sub(c, ggml_mul(c, norm, row), norm);
    });
}
TEST_F(Fusion, ReadsTheInputAsItWasBeforeItWasChangedInPlace) {
    expect_same([](auto* c, auto* x, auto* row, auto*) {
        ggml_tensor* doubled = ggml_scale(c, x, 2);
        ggml_tensor* norm = ggml_rms_norm(c, doubled, 1e-5f);
        ggml_tensor* changed = ggml_sqr_inplace(c, doubled);
        ggml_tensor* sum = ggml_add(c, norm, ggml_scale(c, changed, 0));
        return ggml_add(c, ggml_mul(c, norm, row), sum);
    });
}

}  // namespace
}  // namespace headrace::mlx
