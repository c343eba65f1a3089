#include <gmock/gmock.h>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using ::testing::Each;

/// Attention of 1 or 32 queries over values of 1, the last of which may see no key.
std::vector<float> attend(std::int64_t queries) {
    constexpr std::int64_t kSize = 16, kKeys = 8;
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_context* c = bench.c();
    ggml_tensor* q = ggml_new_tensor_3d(c, GGML_TYPE_F32, kSize, queries, 1);
    ggml_tensor* k = ggml_new_tensor_3d(c, GGML_TYPE_F32, kSize, kKeys, 1);
    ggml_tensor* v = ggml_new_tensor_3d(c, GGML_TYPE_F32, kSize, kKeys, 1);
    ggml_tensor* mask = ggml_new_tensor_2d(c, GGML_TYPE_F16, kKeys, queries);
    ggml_tensor* y = ggml_flash_attn_ext(c, q, k, v, mask, 0.25f, 0, 0);
    bench.output(y);
    bench.allocate();
    set(q, random_values(kSize * queries));
    set(k, random_values(kSize * kKeys, 2));
    set(v, std::vector<float>(kSize * kKeys, 1));
    std::vector<ggml_fp16_t> hidden(kKeys * queries, ggml_fp32_to_fp16(0));
    std::fill(hidden.end() - kKeys, hidden.end(), ggml_fp32_to_fp16(-INFINITY));
    ggml_backend_tensor_set(mask, hidden.data(), 0, hidden.size() * sizeof hidden[0]);
    EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    return get(y);
}

TEST(Attention, OfAQueryThatMaySeeNoKeyIsZeroAsOnTheCpu) {
    EXPECT_THAT(attend(1), Each(0));
    const std::vector<float> many = attend(32);
    const std::vector<float> last(many.end() - 16, many.end());
    EXPECT_THAT(last, Each(0));
    EXPECT_NEAR(many[0], 1, 1e-6);
}

}  // namespace
}  // namespace headrace::mlx
