// Whole language models by llama.cpp on the device that the library itself registers, against ggml's CPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/mlx/models/session.h"

namespace headrace::mlx {
namespace {

/// Logits of these models are of the order of 1 to 4.
constexpr double kTolerance = 2e-3;

void expect_same(const GeneratedModel& on_mlx, const GeneratedModel& on_cpu, const Options& options) {
    Options cpu = options;
    cpu.on_mlx = false;
    cpu.stop_after_each_node = false;
    cpu.deny = nullptr;
    const auto expected = Session(on_cpu, cpu).run();
    const auto actual = Session(on_mlx, options).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), kTolerance);
    EXPECT_EQ(greedy(actual), greedy(expected));
}

class Model : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(device_of(HEADRACE_MLX_LIBRARY), nullptr) << "the library was not loaded";
    }
    void expect_same_llama(const Options& options) {
        const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
        expect_same(model, model, options);
    }
};

/// With flash attention ggml's CPU rounds the queries to f16 as the keys are.
TEST_F(Model, AnswersNearlyTheSameWithFlashAttention) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    const auto expected = Session(model, {.on_mlx = false, .flash = LLAMA_FLASH_ATTN_TYPE_ENABLED}).run();
    const auto actual = Session(model, {.flash = LLAMA_FLASH_ATTN_TYPE_ENABLED}).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), 0.02);
    EXPECT_EQ(greedy(actual), greedy(expected));
}
TEST_F(Model, AnswersTheSameWithHalfOfItsLayersOnTheDevice) { expect_same_llama({.layers = 2}); }
TEST_F(Model, AnswersTheSameWhenACallbackSeesEveryNode) { expect_same_llama({.stop_after_each_node = true}); }
TEST_F(Model, AnswersTheSameFromAnotherThread) { expect_same_llama({.in_another_thread = true}); }
TEST_F(Model, AnswersTheSameAfterItsCacheWasShifted) { expect_same_llama({.shift = true}); }

class ForcedSplits : public Model, public ::testing::WithParamInterface<const char*> {};
TEST_P(ForcedSplits, DoNotChangeTheAnswer) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    expect_same(model, model, {.deny = GetParam()});
    EXPECT_GT(Session(model, {.deny = GetParam()}).splits(), 5) << "nothing was split";
}
INSTANTIATE_TEST_SUITE_P(Ops, ForcedSplits,
                         ::testing::Values("ROPE", "RMS_NORM", "CONT", "SOFT_MAX", "ADD,GLU"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), ',', '_');
                             return name;
                         });

class Decoder : public Model, public ::testing::WithParamInterface<Architecture> {};
TEST_P(Decoder, AnswersAsOnTheCpu) {
    const GeneratedModel model(GetParam(), GGML_TYPE_F32);
    expect_same(model, model, {});
}
TEST_P(Decoder, RunsOnTheDeviceInOnePiece) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
        const GeneratedModel model(GetParam(), type);
        EXPECT_EQ(Session(model, {.cache = GGML_TYPE_F16}).splits(), 1) << ggml_type_name(type);
    }
}
INSTANTIATE_TEST_SUITE_P(Kinds, Decoder,
                         ::testing::Values(Architecture::llama, Architecture::qwen3moe, Architecture::gemma2,
                                           Architecture::gemma3, Architecture::mamba2),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_F(Model, OfBertsKindEmbedsAsOnTheCpu) {
    const GeneratedModel model(Architecture::bert, GGML_TYPE_F32);
    const std::vector<float> expected = Session(model, {.on_mlx = false}).embedding();
    ASSERT_EQ(expected.size(), 256u);
    EXPECT_LT(largest_difference({Session(model, {}).embedding()}, {expected}),
              5e-4);  // its GELU is a table of f16
}

TEST_F(Model, OfBertsKindRunsOnTheDeviceInOnePiece) {
    const GeneratedModel model(Architecture::bert, GGML_TYPE_Q4_0);
    EXPECT_EQ(Session(model, {}).splits(), 1);
}

class QuantizedModel : public Model, public ::testing::WithParamInterface<ggml_type> {};
TEST_P(QuantizedModel, AnswersAsTheSameWeightsInF32Do) {
    for (const Architecture a : {Architecture::llama, Architecture::qwen3moe}) {
        const GeneratedModel model(a, GetParam()), same_in_f32(a, GetParam(), true);
        expect_same(model, same_in_f32, {});
    }
}
INSTANTIATE_TEST_SUITE_P(Types, QuantizedModel,
                         ::testing::Values(GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
                                           GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_MXFP4),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

class QuantizedCache : public Model, public ::testing::WithParamInterface<ggml_type> {};
/// ggml's CPU rounds queries, too, before it multiplies them with such keys: the bound is wider than what the
/// cache itself costs against f32.
TEST_P(QuantizedCache, AnswersNearlyAsOnTheCpu) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    const Options options{.cache = GetParam(), .flash = LLAMA_FLASH_ATTN_TYPE_ENABLED};
    Options cpu = options;
    cpu.on_mlx = false;
    const auto expected = Session(model, cpu).run();
    const auto actual = Session(model, options).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), GetParam() == GGML_TYPE_F16 ? 0.02 : 0.5);
}
INSTANTIATE_TEST_SUITE_P(Types, QuantizedCache,
                         ::testing::Values(GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1,
                                           GGML_TYPE_IQ4_NL),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

}  // namespace
}  // namespace headrace::mlx
