// Models whose header is sound and whose weights are not.
#include <gguf.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

/// A copy of the tiny model in which each weight of the last norm is NaN.
std::filesystem::path model_of_nans() {
    const auto path = std::filesystem::path(testing::TempDir()) / "nans.gguf";
    std::filesystem::copy_file(tiny_model(), path, std::filesystem::copy_options::overwrite_existing);
    const std::unique_ptr<gguf_context, decltype(&gguf_free)> gguf(
        gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}), &gguf_free);
    const int64_t norm = gguf_find_tensor(gguf.get(), "output_norm.weight");
    const std::vector<float> nans(gguf_get_tensor_size(gguf.get(), norm) / sizeof(float),
                                  std::numeric_limits<float>::quiet_NaN());
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(gguf_get_data_offset(gguf.get()) +
                                           gguf_get_tensor_offset(gguf.get(), norm)));
    file.write(reinterpret_cast<const char*>(nans.data()),
               static_cast<std::streamsize>(nans.size() * sizeof(float)));
    return path;
}

TEST(DamagedModel, IsSaidToComputeNoNumbersHoweverTokensAreChosen) {
    const auto path = model_of_nans();
    auto runner = open_runner(path, tiny_settings());
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    Engine& engine = *runner.value().engine;
    RequestSettings greedy = engine.settings().request, random = greedy, in_grammar = greedy;
    random.sampling.temp = 0.8f;
    in_grammar.grammar = "root ::= [a-z]+";
    for (const RequestSettings& settings : {greedy, random, in_grammar}) {
        const auto generation = ask(engine, question(engine, "What is 2+3?", settings));
        const Outcome& outcome = generation->wait();
        EXPECT_EQ(outcome.reason, StopReason::failed) << outcome.text;
        EXPECT_THAT(outcome.detail, testing::HasSubstr("check_tensors"));
        EXPECT_EQ(outcome.text, "");
    }
    std::filesystem::remove(path);
}

TEST(DamagedModel, IsFoundByCheckTensors) {
    const auto path = model_of_nans();
    Settings settings = tiny_settings();
    settings.model.check_tensors = true;
    const auto runner = open_runner(path, settings);
    ASSERT_FALSE(runner.ok());
    EXPECT_THAT(runner.error().message, testing::HasSubstr("output_norm.weight"));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace headrace::llm
