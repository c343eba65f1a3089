// What the tests of whole models are worth: they fail with a backend that lacks the rule they are for.
#include <gmock/gmock.h>

#include "backends/mlx/models/session.h"
#include "backends/mlx/workbench.h"

namespace headrace::mlx {
namespace {

/// How many of 65 answers a library gives as ggml's CPU does.
std::size_t right_answers(Options options) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    const auto expected = greedy(Session(model, {.on_mlx = false}).run());
    const auto actual = greedy(Session(model, options).run(expected));
    std::size_t right = 0;
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
        right += actual[i] == expected[i];
    return right;
}

TEST(WithOutputsAlone, AGraphInOnePieceIsRightAllTheSame) {
    EXPECT_EQ(right_answers({.library = HEADRACE_MLX_OUTPUTS_ALONE}), kSteps + 1u);
}
TEST(WithOutputsAlone, ForcedSplitsGiveWrongAnswers) {
    for (const char* op : {"ROPE", "RMS_NORM", "SOFT_MAX"})
        EXPECT_LT(right_answers({.library = HEADRACE_MLX_OUTPUTS_ALONE, .deny = op}), kSteps / 4u) << op;
}
TEST(WithOutputsAlone, ACallbackThatSeesEveryNodeGivesWrongAnswers) {
    EXPECT_LT(right_answers({.library = HEADRACE_MLX_OUTPUTS_ALONE, .stop_after_each_node = true}),
              kSteps / 4u);
}

/// Whether a library computes in this thread and in another one.
std::vector<ggml_status> statuses(const char* library) {
    const BackendHandle backend(ggml_backend_dev_init(device_of(library), nullptr));
    Workbench bench(backend.get());
    ggml_tensor* x = ggml_new_tensor_1d(bench.c(), GGML_TYPE_F32, 4);
    bench.output(ggml_scale(bench.c(), x, 2));
    bench.allocate();
    set(x, {1, 2, 3, 4});
    std::vector<ggml_status> found{bench.compute()};
    std::thread([&] { found.push_back(bench.compute()); }).join();
    return found;
}

TEST(WithAnOrdinaryStream, AnotherThreadCannotCompute) {
    EXPECT_THAT(statuses(HEADRACE_MLX_LIBRARY),
                ::testing::ElementsAre(GGML_STATUS_SUCCESS, GGML_STATUS_SUCCESS));
    EXPECT_THAT(statuses(HEADRACE_MLX_ORDINARY_STREAM),
                ::testing::ElementsAre(GGML_STATUS_SUCCESS, GGML_STATUS_FAILED));
}

}  // namespace
}  // namespace headrace::mlx
