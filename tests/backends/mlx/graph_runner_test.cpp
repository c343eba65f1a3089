#include "backends/mlx/graph_runner.h"

#include <gmock/gmock.h>

#include <thread>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;

class LazyGraph : public ::testing::Test {
protected:
    ggml_tensor* vector(std::int64_t n = 4) { return ggml_new_tensor_1d(bench_.c(), GGML_TYPE_F32, n); }
    void compute() { ASSERT_EQ(bench_.compute(), GGML_STATUS_SUCCESS); }
    RunCounts counts() const { return run_counts(backend_.get()); }

    BackendHandle backend_ = mlx_backend();
    Workbench bench_{backend_.get()};
};

TEST_F(LazyGraph, WritesOnlyWhatIsMarkedAsAnOutputToMemory) {
    ggml_tensor* x = vector();
    ggml_tensor* inner = ggml_scale(bench_.c(), x, 2);
    ggml_tensor* last = ggml_scale(bench_.c(), inner, 3);
    bench_.output(last);
    bench_.allocate();
    set(x, {1, 2, 3, 4});
    set(inner, {-1, -1, -1, -1});
    compute();
    EXPECT_THAT(get(last), ElementsAre(6, 12, 18, 24));
    EXPECT_THAT(get(inner), Each(-1));
    EXPECT_EQ(counts().write_backs, 1);
}

TEST_F(LazyGraph, WritesWhatAnotherPartOfACutGraphReads) {
    ggml_tensor* x = vector();
    ggml_tensor* first = ggml_scale(bench_.c(), x, 2);
    ggml_tensor* second = ggml_scale(bench_.c(), first, 3);
    ggml_tensor* third = ggml_add(bench_.c(), second, first);
    bench_.output(third);
    bench_.allocate();
    set(x, {1, 2, 3, 4});
    for (int i = 0; i < 3; ++i) {  // as a scheduler that is asked to stop after each node
        ggml_cgraph part = ggml_graph_view(bench_.graph, i, i + 1);
        ASSERT_EQ(ggml_backend_graph_compute(backend_.get(), &part), GGML_STATUS_SUCCESS);
    }
    EXPECT_THAT(get(third), ElementsAre(8, 16, 24, 32));
    EXPECT_EQ(counts().write_backs, 3);
}

TEST_F(LazyGraph, WritesWhatAnotherPartReadsThroughAView) {
    ggml_tensor* x = vector();
    ggml_tensor* doubled = ggml_scale(bench_.c(), x, 2);
    ggml_tensor* half = ggml_view_1d(bench_.c(), doubled, 2, 2 * sizeof(float));
    ggml_tensor* last = ggml_scale(bench_.c(), half, 10);
    bench_.output(last);
    bench_.allocate();
    set(x, {1, 2, 3, 4});
    ggml_cgraph head = ggml_graph_view(bench_.graph, 0, 2), tail = ggml_graph_view(bench_.graph, 2, 3);
    ASSERT_EQ(ggml_backend_graph_compute(backend_.get(), &head), GGML_STATUS_SUCCESS);
    ASSERT_EQ(ggml_backend_graph_compute(backend_.get(), &tail), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(last), ElementsAre(60, 80));
}

TEST_F(LazyGraph, FinishesReadersOfMemoryBeforeItIsWrittenInPlace) {
    ggml_tensor* cache = vector();
    ggml_tensor* x = vector();
    ggml_tensor* before = ggml_scale(bench_.c(), cache, 1.5f);
    ggml_tensor* copied = ggml_cont(bench_.c(), cache);
    ggml_tensor* written = ggml_cpy(bench_.c(), x, cache);
    ggml_tensor* after = ggml_scale(bench_.c(), written, 1);
    ggml_tensor* sum = ggml_add(bench_.c(), ggml_add(bench_.c(), before, copied), after);
    ggml_build_forward_expand(bench_.graph, before);
    ggml_build_forward_expand(bench_.graph, copied);
    ggml_build_forward_expand(bench_.graph, written);
    bench_.output(sum);
    bench_.allocate();
    set(cache, {2, 2, 2, 2});
    set(x, {1, 2, 3, 4});
    compute();
    EXPECT_THAT(get(sum), ElementsAre(6, 7, 8, 9));  // 2 * 1.5 + 2 + x
    EXPECT_THAT(get(cache), ElementsAre(1, 2, 3, 4));
}

TEST_F(LazyGraph, WritesRowsOfACacheInPlaceAndReadsThemBack) {
    ggml_tensor* cache = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F16, 2, 4);
    ggml_tensor* rows = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 2, 2);
    ggml_tensor* numbers = ggml_new_tensor_1d(bench_.c(), GGML_TYPE_I64, 2);
    ggml_tensor* written = ggml_set_rows(bench_.c(), cache, rows, numbers);
    ggml_tensor* read =
        ggml_cpy(bench_.c(), ggml_view_2d(bench_.c(), written, 2, 2, cache->nb[1], cache->nb[1]),
                 ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 2, 2));
    bench_.output(read);
    bench_.allocate();
    ggml_backend_buffer_clear(bench_.memory.get(), 0);
    set(rows, {1, 2, 3, 4});
    const std::int64_t at[2] = {3, 1};
    ggml_backend_tensor_set(numbers, at, 0, sizeof at);
    compute();
    EXPECT_THAT(get(read), ElementsAre(3, 4, 0, 0));
    const auto stored = get<ggml_fp16_t>(cache);
    EXPECT_EQ(ggml_fp16_to_fp32(stored[6]), 1);
    EXPECT_EQ(ggml_fp16_to_fp32(stored[2]), 3);
}

TEST_F(LazyGraph, UpdatesAPartOfAValueOfItsOwn) {
    ggml_tensor* x = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 3, 2);
    ggml_tensor* doubled = ggml_scale(bench_.c(), x, 2);
    ggml_tensor* column = ggml_view_2d(bench_.c(), doubled, 1, 2, doubled->nb[1], sizeof(float));
    ggml_tensor* changed = ggml_scale_inplace(bench_.c(), column, 10);
    ggml_build_forward_expand(bench_.graph, changed);
    ggml_tensor* last = ggml_scale(bench_.c(), doubled, 1);
    bench_.output(last);
    bench_.allocate();
    set(x, {1, 2, 3, 4, 5, 6});
    compute();
    EXPECT_THAT(get(last), ElementsAre(2, 40, 6, 8, 100, 12));
}

TEST_F(LazyGraph, IsTranslatedOnceAndReadsTheMemoryAnew) {
    ggml_tensor* x = vector();
    ggml_tensor* y = ggml_soft_max(bench_.c(), ggml_scale(bench_.c(), x, 2));
    bench_.output(y);
    bench_.allocate();
    for (int run = 0; run < 3; ++run) {
        set(x, {0, static_cast<float>(run), 0, 0});
        compute();
    }
    const float e4 = std::exp(4.0f);
    EXPECT_NEAR(get(y)[1], e4 / (e4 + 3), 1e-6);
    EXPECT_EQ(counts().graphs, 3);
    EXPECT_EQ(counts().translations, 1);
}

TEST_F(LazyGraph, HasFewerPrimitivesWhereItsFirstRunShowedViewsOfMemory) {
    ggml_tensor* w = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 4, 3);
    ggml_tensor* x = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 4, 16);
    ggml_tensor* y = ggml_mul_mat(bench_.c(), w, x);  // MLX's product takes the matrix transposed
    bench_.output(y);
    bench_.allocate();
    set(x, std::vector<float>(4 * 16, 2.5f));
    std::vector<std::int64_t> primitives;
    for (const float value : {1.0f, 2.0f, 3.0f}) {
        set(w, std::vector<float>(12, value));
        const std::int64_t before = counts().primitives;
        compute();
        primitives.push_back(counts().primitives - before);
        EXPECT_THAT(get(y), Each(10 * value));
    }
    EXPECT_GT(primitives[0], primitives[1]);
    EXPECT_EQ(primitives[1], 1);
    EXPECT_EQ(primitives[2], 1);
}

TEST_F(LazyGraph, ReportsARowThatACacheDoesNotHaveAndComputesAgain) {
    ggml_tensor* cache = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 2, 4);
    ggml_tensor* row = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 2, 1);
    ggml_tensor* number = ggml_new_tensor_1d(bench_.c(), GGML_TYPE_I64, 1);
    bench_.output(ggml_set_rows(bench_.c(), cache, row, number));
    bench_.allocate();
    ggml_backend_buffer_clear(bench_.memory.get(), 0);
    set(row, {1, 2});
    const auto compute_at = [&](std::int64_t at) {
        ggml_backend_tensor_set(number, &at, 0, sizeof at);
        return bench_.compute();
    };
    EXPECT_EQ(compute_at(4), GGML_STATUS_FAILED);  // MLX evaluates a first run, the tape later ones
    EXPECT_EQ(compute_at(1), GGML_STATUS_SUCCESS);
    EXPECT_EQ(compute_at(-1), GGML_STATUS_FAILED);
    EXPECT_EQ(compute_at(3), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(cache), ElementsAre(0, 0, 1, 2, 0, 0, 1, 2));
}

class RowsToRead : public ::testing::TestWithParam<ggml_type> {};

TEST_P(RowsToRead, ThatDoNotExistAreReported) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* table = ggml_new_tensor_2d(bench.c(), GetParam(), 32, 4);
    ggml_tensor* number = ggml_new_tensor_1d(bench.c(), GGML_TYPE_I32, 1);
    ggml_tensor* picked = ggml_get_rows(bench.c(), table, number);
    bench.output(picked);
    bench.allocate();
    std::vector<float> values(4 * 32);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 32);
    const auto blocks = quantized(GetParam(), values, 32);
    ggml_backend_tensor_set(table, blocks.data(), 0, blocks.size());
    const auto compute_at = [&](std::int32_t at) {
        ggml_backend_tensor_set(number, &at, 0, sizeof at);
        return bench.compute();
    };
    EXPECT_EQ(compute_at(4), GGML_STATUS_FAILED);
    EXPECT_EQ(compute_at(1 << 30), GGML_STATUS_FAILED);
    EXPECT_EQ(compute_at(-1), GGML_STATUS_FAILED);
    ASSERT_EQ(compute_at(3), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(picked), Each(FloatNear(3, 0.001f)));
}

INSTANTIATE_TEST_SUITE_P(Types, RowsToRead,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

TEST_F(LazyGraph, ReportsARowToAddThatDoesNotExist) {
    ggml_tensor* x = ggml_new_tensor_3d(bench_.c(), GGML_TYPE_F32, 4, 1, 1);
    ggml_tensor* rows = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 4, 2);
    ggml_tensor* number = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_I32, 1, 1);
    ggml_tensor* y = ggml_add_id(bench_.c(), x, rows, number);
    bench_.output(y);
    bench_.allocate();
    set(x, {1, 1, 1, 1});
    set(rows, {1, 1, 1, 1, 2, 2, 2, 2});
    for (const std::int32_t at : {2, -1, 1}) {
        ggml_backend_tensor_set(number, &at, 0, sizeof at);
        EXPECT_EQ(bench_.compute(), at == 1 ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED);
    }
    EXPECT_THAT(get(y), Each(3));
}

TEST_F(LazyGraph, ReportsAnExpertThatDoesNotExist) {
    ggml_tensor* experts = ggml_new_tensor_3d(bench_.c(), GGML_TYPE_F32, 4, 2, 3);
    ggml_tensor* x = ggml_new_tensor_3d(bench_.c(), GGML_TYPE_F32, 4, 1, 1);
    ggml_tensor* chosen = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_I32, 2, 1);
    ggml_tensor* y = ggml_mul_mat_id(bench_.c(), experts, x, chosen);
    bench_.output(y);
    bench_.allocate();
    std::vector<float> values(24);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 4);
    set(experts, values);
    set(x, {1, 1, 1, 1});
    const auto compute_with = [&](std::int32_t expert) {
        const std::int32_t numbers[2] = {expert, 0};
        ggml_backend_tensor_set(chosen, numbers, 0, sizeof numbers);
        return bench_.compute();
    };
    EXPECT_EQ(compute_with(2), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(y), ElementsAre(16, 20, 0, 4));
    EXPECT_EQ(compute_with(3), GGML_STATUS_FAILED);
    EXPECT_EQ(compute_with(-1), GGML_STATUS_FAILED);
    EXPECT_EQ(compute_with(1), GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(y), ElementsAre(8, 12, 0, 4));
}

TEST_F(LazyGraph, KeepsNoMoreOfALongGraphInMemoryThanItNeedsAtATime) {
    constexpr int kSize = 256, kProducts = 32;
    ggml_tensor* w = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, kSize, kSize);
    ggml_tensor* x = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, kSize, kSize);
    for (int i = 0; i < kProducts; ++i) x = ggml_mul_mat(bench_.c(), w, x);
    bench_.output(x);
    bench_.allocate();
    ggml_backend_buffer_clear(bench_.memory.get(), 0);
    compute();
    const std::size_t before = mx::get_active_memory();
    mx::reset_peak_memory();
    compute();
    EXPECT_LE(mx::get_peak_memory() - before, 4 * kSize * kSize * sizeof(float));
}

TEST_F(LazyGraph, IsTranslatedAgainWhenAParameterChanges) {
    ggml_tensor* x = vector();
    ggml_tensor* y = ggml_scale(bench_.c(), x, 2);
    bench_.output(y);
    bench_.allocate();
    set(x, {1, 2, 3, 4});
    compute();
    const float factor = 5;
    std::memcpy(y->op_params, &factor, sizeof factor);
    compute();
    EXPECT_THAT(get(y), ElementsAre(5, 10, 15, 20));
    EXPECT_EQ(counts().translations, 2);
}

TEST_F(LazyGraph, IsTranslatedAgainWhenAViewIsOfATensorOfAnotherSize) {
    ggml_tensor* table = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_Q8_0, 32, 64);
    ggml_tensor* row = ggml_view_2d(bench_.c(), table, 32, 1, table->nb[1], 0);
    ggml_tensor* x = vector(32);
    ggml_tensor* y = ggml_mul_mat(bench_.c(), row, x);
    bench_.output(y);
    bench_.allocate();
    set(x, std::vector<float>(32, 1));
    for (const std::int64_t rows : {64, 2}) {  // where a matrix's scales lie depends on its size
        table->ne[1] = rows;
        table->nb[2] = table->nb[3] = table->nb[1] * static_cast<std::size_t>(rows);
        const auto blocks = quantized(GGML_TYPE_Q8_0, std::vector<float>(32 * rows, 1), 32);
        ggml_backend_tensor_set(table, blocks.data(), 0, blocks.size());
        ggml_cgraph product =
            ggml_graph_view(bench_.graph, 1, 2);  // the view is of another part of the graph
        ASSERT_EQ(ggml_backend_graph_compute(backend_.get(), &product), GGML_STATUS_SUCCESS);
        EXPECT_NEAR(get(y)[0], 32, 0.01);
    }
    EXPECT_EQ(counts().translations, 2);
}

TEST_F(LazyGraph, SeesWeightsThatWereWrittenAgain) {
    ggml_tensor* w = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F16, 32, 1);
    ggml_tensor* x = ggml_new_tensor_2d(bench_.c(), GGML_TYPE_F32, 32, 1);
    ggml_tensor* y = ggml_mul_mat(bench_.c(), w, x);
    bench_.output(y);
    bench_.allocate();
    ggml_backend_buffer_set_usage(bench_.memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    set(x, std::vector<float>(32, 1));
    for (const float value : {1.0f, 3.0f}) {
        const std::vector<ggml_fp16_t> half_floats(32, ggml_fp32_to_fp16(value));
        ggml_backend_tensor_set(w, half_floats.data(), 0, 64);
        compute();
        EXPECT_THAT(get(y), ElementsAre(32 * value));
    }
}

TEST_F(LazyGraph, RunsInAThreadOtherThanTheOneThatOpenedTheDevice) {
    ggml_tensor* x = vector();
    ggml_tensor* y = ggml_scale(bench_.c(), x, 2);
    bench_.output(y);
    bench_.allocate();
    set(x, {1, 2, 3, 4});
    ggml_status status = GGML_STATUS_FAILED;
    std::thread([&] { status = bench_.compute(); }).join();
    EXPECT_EQ(status, GGML_STATUS_SUCCESS);
    EXPECT_THAT(get(y), ElementsAre(2, 4, 6, 8));
}

TEST(ConcurrentBackends, ComputeSideBySide) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int k = 1; k <= 4; ++k)
        threads.emplace_back([k, &wrong] {
            const BackendHandle backend = mlx_backend();
            Workbench bench(backend.get());
            ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 64, 64);
            ggml_tensor* y = ggml_mul_mat(bench.c(), x, ggml_scale(bench.c(), x, static_cast<float>(k)));
            bench.output(y);
            bench.allocate();
            set(x, std::vector<float>(64 * 64, 1));
            for (int i = 0; i < 100; ++i) {
                const bool done = bench.compute() == GGML_STATUS_SUCCESS;
                if (!done || get(y) != std::vector<float>(64 * 64, 64.0f * static_cast<float>(k))) ++wrong;
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace headrace::mlx
