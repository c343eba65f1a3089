// Models whose header is sound and whose weights are not.
#include <gguf.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::llm {
namespace {

/// Makes a copy of the tiny model in which each weight of the last norm is NaN.
void write_model_of_nans(const std::string& path) {
    std::filesystem::copy_file(tiny_model(), path);
    const std::unique_ptr<gguf_context, decltype(&gguf_free)> gguf(
        gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}), &gguf_free);
    const std::int64_t norm = gguf_find_tensor(gguf.get(), "output_norm.weight");
    const std::vector<float> nans(gguf_get_tensor_size(gguf.get(), norm) / sizeof(float),
                                  std::numeric_limits<float>::quiet_NaN());
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(gguf_get_data_offset(gguf.get()) +
                                           gguf_get_tensor_offset(gguf.get(), norm)));
    file.write(reinterpret_cast<const char*>(nans.data()),
               static_cast<std::streamsize>(nans.size() * sizeof(float)));
}

TEST(DamagedModel, IsSaidToComputeNoNumbersHoweverTokensAreChosen) {
    const TemporaryFolder folder;
    const std::string path = folder / "nans.gguf";
    write_model_of_nans(path);
    auto runner = open_runner(path, tiny_settings());
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    Engine& engine = *runner.value().engine;
    RequestSettings greedy = tiny_settings().request, random = greedy, in_grammar = greedy;
    random.sampling.temp = 0.8f;
    in_grammar.grammar = "root ::= [a-z]+";
    for (const RequestSettings& settings : {greedy, random, in_grammar}) {
        const auto generation = ask(engine, question(engine, "What is 2+3?", settings));
        const Outcome& outcome = generation->wait();
        EXPECT_EQ(outcome.reason, StopReason::failed) << outcome.text;
        EXPECT_THAT(outcome.detail, testing::HasSubstr("check_tensors"));
        EXPECT_EQ(outcome.text, "");
    }
}

TEST(DamagedModel, IsFoundByCheckTensors) {
    const TemporaryFolder folder;
    const std::string path = folder / "nans.gguf";
    write_model_of_nans(path);
    Settings settings = tiny_settings();
    settings.model.check_tensors = true;
    const auto runner = open_runner(path, settings);
    ASSERT_FALSE(runner.ok());
    EXPECT_THAT(runner.error().message, testing::HasSubstr("output_norm.weight"));
}

}  // namespace
}  // namespace headrace::llm
