#include "backends/mlx/device.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>

#include "backends/mlx/buffer_type.h"
#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using ::testing::HasSubstr;

TEST(Device, SaysWhatItIs) {
    EXPECT_STREQ(ggml_backend_dev_name(device()), "MLX0");
    EXPECT_THAT(ggml_backend_dev_description(device()), HasSubstr("MLX 0.32"));
    EXPECT_EQ(ggml_backend_dev_type(device()), GGML_BACKEND_DEVICE_TYPE_GPU);
    std::size_t free = 0, total = 0;
    ggml_backend_dev_memory(device(), &free, &total);
    EXPECT_GT(free, std::size_t{1} << 20);
    EXPECT_LE(free, total);
}

TEST(Device, LeavesToOthersWhatItCannotCompute) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_context* c = bench.c();
    ggml_tensor* integers = ggml_new_tensor_1d(c, GGML_TYPE_I32, 4);
    ggml_tensor* floats = ggml_new_tensor_1d(c, GGML_TYPE_F32, 4);
    const auto custom = [](ggml_tensor*, const ggml_tensor*, int, int, void*) {};
    EXPECT_FALSE(ggml_backend_supports_op(backend.get(), ggml_map_custom1(c, floats, custom, 1, nullptr)));
    EXPECT_FALSE(ggml_backend_supports_op(backend.get(), ggml_add(c, integers, integers)));
    EXPECT_TRUE(ggml_backend_supports_op(backend.get(), ggml_add(c, floats, floats)));
}

TEST(Device, LeavesToOthersWhatHasMoreElementsThanMlxCounts) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* cache = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F16, 65536, 65536);
    ggml_tensor* rows = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 65536, 1);
    ggml_tensor* number = ggml_new_tensor_1d(bench.c(), GGML_TYPE_I64, 1);
    ggml_tensor* part = ggml_view_2d(bench.c(), cache, 65536, 4, cache->nb[1], 0);
    EXPECT_FALSE(ggml_backend_supports_op(backend.get(), ggml_set_rows(bench.c(), cache, rows, number)));
    EXPECT_FALSE(ggml_backend_supports_op(backend.get(), ggml_mul_mat(bench.c(), part, rows)));
    EXPECT_FALSE(ggml_backend_supports_op(backend.get(), ggml_scale(bench.c(), cache, 2)));
}

std::string logged;

TEST(Device, FailsWithAStatusAndOneLineForANodeThatItWasNotToBeGiven) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    const auto custom = [](ggml_tensor*, const ggml_tensor*, int, int, void*) {};
    ggml_tensor* x = ggml_new_tensor_1d(bench.c(), GGML_TYPE_F32, 4);
    bench.output(ggml_map_custom1(bench.c(), x, custom, 1, nullptr));
    bench.allocate();
    logged.clear();
    ggml_log_set([](ggml_log_level, const char* text, void*) { logged += text; }, nullptr);
    EXPECT_EQ(bench.compute(), GGML_STATUS_FAILED);
    ggml_log_set(nullptr, nullptr);
    EXPECT_THAT(logged, HasSubstr("MAP_CUSTOM1 is not supported"));
    EXPECT_EQ(std::count(logged.begin(), logged.end(), '\n'), 1) << logged;
}

TEST(Device, SurvivesWhenThereIsNoMemoryForABuffer) {
    EXPECT_EQ(ggml_backend_buft_alloc_buffer(buffer_type(), std::size_t{1} << 60), nullptr);
    const BufferHandle fine(ggml_backend_buft_alloc_buffer(buffer_type(), 1000));
    EXPECT_NE(fine, nullptr);
}

/// Lets the process have only so much more address space while it lives.
class MemoryLimit {
public:
    explicit MemoryLimit(std::size_t bytes) {
        getrlimit(RLIMIT_AS, &before_);
        rlimit limited = before_;
        limited.rlim_cur = bytes;
        setrlimit(RLIMIT_AS, &limited);
    }
    ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

TEST(Device, ReportsThatMemoryRanOutWithinAGraphAndGoesOn) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_context* c = bench.c();
    // The product in between, 16 GiB, never gets ggml's memory.
    ggml_tensor* x = ggml_new_tensor_2d(c, GGML_TYPE_F32, 1, 65536);
    ggml_tensor* y = ggml_sum(c, ggml_mul_mat(c, x, ggml_scale(c, x, 2)));
    bench.output(y);
    ggml_tensor* in_memory[] = {x, y};
    const BufferHandle memory(ggml_backend_buft_alloc_buffer(buffer_type(), std::size_t{4} << 20));
    ggml_tallocr allocator = ggml_tallocr_new(memory.get());
    for (ggml_tensor* t : in_memory) ggml_tallocr_alloc(&allocator, t);
    set(x, std::vector<float>(65536, 1));
    {
        const MemoryLimit limit(std::size_t{8} << 30);
        EXPECT_EQ(bench.compute(), GGML_STATUS_ALLOC_FAILED);
    }
    Workbench small(backend.get());
    ggml_tensor* z = ggml_new_tensor_1d(small.c(), GGML_TYPE_F32, 4);
    ggml_tensor* doubled = ggml_scale(small.c(), z, 2);
    small.output(doubled);
    small.allocate();
    set(z, {1, 2, 3, 4});
    ASSERT_EQ(small.compute(), GGML_STATUS_SUCCESS);
    EXPECT_EQ(get(doubled), (std::vector<float>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace headrace::mlx
