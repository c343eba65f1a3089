// Ops that ggml's own test of a backend has no cases for.
#include <gmock/gmock.h>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using Build = std::function<ggml_tensor*(Workbench& bench)>;

std::vector<float> run(ggml_backend_t backend, const Build& build) {
    Workbench bench(backend);
    ggml_tensor* y = build(bench);
    EXPECT_TRUE(ggml_backend_supports_op(backend, y->op == GGML_OP_CPY ? y->src[0] : y));
    bench.output(y);
    bench.allocate();
    unsigned seed = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(bench.c()); t; t = ggml_get_next_tensor(bench.c(), t)) {
        if (t->op != GGML_OP_NONE) continue;
        const std::vector<float> values = random_values(ggml_nelements(t), ++seed);
        if (t->type == GGML_TYPE_F32) {
            set(t, values);
            continue;
        }
        std::vector<ggml_fp16_t> half_floats(values.size());
        ggml_fp32_to_fp16_row(values.data(), half_floats.data(), ggml_nelements(t));
        ggml_backend_tensor_set(t, half_floats.data(), 0, half_floats.size() * sizeof half_floats[0]);
    }
    EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    return get(y);
}

void expect_same_as_on_the_cpu(const Build& build) {
    const BackendHandle mlx = mlx_backend(), cpu = cpu_backend();
    EXPECT_LT(largest_difference(run(mlx.get(), build), run(cpu.get(), build)), 1e-6);
}

TEST(RelativePositions, AreLookedUpByTheDistanceOfQueryAndKey) {
    expect_same_as_on_the_cpu([](Workbench& bench) {
        ggml_tensor* table = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F16, 8, 2 * 5 - 1);
        ggml_tensor* picked = ggml_get_rel_pos(bench.c(), table, 5, 5);
        return ggml_cpy(bench.c(), picked, ggml_new_tensor_3d(bench.c(), GGML_TYPE_F32, 8, 5, 5));
    });
}

TEST(RelativePositions, AreAddedToScoresForColumnsAndRows) {
    for (const bool inplace : {false, true})
        expect_same_as_on_the_cpu([=](Workbench& bench) {
            ggml_context* c = bench.c();
            ggml_tensor* scores = ggml_new_tensor_3d(c, GGML_TYPE_F32, 16, 12, 2);
            ggml_tensor* columns = ggml_new_tensor_4d(c, GGML_TYPE_F32, 4, 4, 3, 2);
            ggml_tensor* rows = ggml_new_tensor_4d(c, GGML_TYPE_F32, 4, 4, 3, 2);
            return inplace ? ggml_add_rel_pos_inplace(c, scores, columns, rows)
                           : ggml_add_rel_pos(c, scores, columns, rows);
        });
}

}  // namespace
}  // namespace headrace::mlx
