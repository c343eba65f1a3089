#include <ggml.h>
#include <gguf.h>
#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::llm {
namespace {

/// A LoRA adapter of rank 4 for one weight of the tiny model, random and so strong that answers change.
void write_adapter(const std::string& path, unsigned seed = 1) {
    constexpr int rank = 4, inputs = 512, outputs = 256;
    ggml_context* tensors = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = false});
    gguf_context* file = gguf_init_empty();
    gguf_set_val_str(file, "general.type", "adapter");
    gguf_set_val_str(file, "general.architecture", "llama");
    gguf_set_val_str(file, "adapter.type", "lora");
    gguf_set_val_f32(file, "adapter.lora.alpha", rank);
    std::minstd_rand random(seed);
    std::normal_distribution<float> normal;
    const auto add = [&](const char* name, std::int64_t columns, std::int64_t rows) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors, GGML_TYPE_F32, columns, rows);
        ggml_set_name(tensor, name);
        auto* values = static_cast<float*>(tensor->data);
        for (std::int64_t i = 0; i < columns * rows; ++i) values[i] = normal(random);
        gguf_add_tensor(file, tensor);
    };
    add("blk.0.ffn_down.weight.lora_a", inputs, rank);
    add("blk.0.ffn_down.weight.lora_b", rank, outputs);
    const bool written = gguf_write_to_file(file, path.c_str(), false);
    gguf_free(file);
    ggml_free(tensors);
    if (!written) throw std::runtime_error("no adapter was written");
}

Tokens answer(Engine& engine, const RequestSettings& settings) {
    return ask(engine, question(engine, "What is 2+3?", settings))->wait().tokens;
}

TEST(Adapters, WorkFromTheFirstRequestOnWithTheScaleOfTheLoad) {
    const Tokens plain = answer(*tiny_engine(), tiny_settings().request);
    Settings settings = tiny_settings();
    const TemporaryFolder folder;
    settings.model.lora = {{folder / "adapter.gguf", 1.0f}};
    write_adapter(settings.model.lora[0].first);
    const auto engine = tiny_engine(settings);
    const Tokens adapted = answer(*engine, settings.request);
    EXPECT_NE(adapted, plain);

    RequestSettings request = settings.request;
    request.lora = {{0, 0.0f}};
    EXPECT_EQ(answer(*engine, request), plain) << "scaled by 0";
    request.lora = {{0, 1.0f}};
    EXPECT_EQ(answer(*engine, request), adapted) << "the load's scale, given by the request";
    EXPECT_EQ(answer(*engine, settings.request), adapted) << "what other scales remember is not shared";
}

TEST(Adapters, OfARequestComeInItsTurnHoweverManyRequestsWithoutThemFollow) {
    Settings settings = tiny_settings();
    const TemporaryFolder folder;
    settings.model.lora = {{folder / "adapter.gguf", 1.0f}};
    write_adapter(settings.model.lora[0].first);
    settings.context.context_shift = true;
    const auto engine = tiny_engine(settings);
    const RequestSettings endless = endless_request(settings.request);
    RequestSettings other = settings.request;
    other.lora = {{0, 0.0f}};
    other.timeout_ms = 20000;
    const auto first = ask(*engine, question(*engine, "Tell me a story.", endless));
    while (engine->statistics().generated_tokens < 2) std::this_thread::yield();
    const auto waits = ask(*engine, question(*engine, "What is 2+3?", other));
    const auto later = ask(*engine, question(*engine, "What is 4+4?", endless));
    while (engine->statistics().requests < 3) std::this_thread::yield();
    first->cancel();
    EXPECT_EQ(waits->wait().reason, StopReason::end_of_answer) << waits->wait().detail;
    later->cancel();
    EXPECT_EQ(later->wait().reason, StopReason::cancelled);
}

TEST(Adapters, AreThoseThatASavedPromptIsRestoredWith) {
    Settings settings = tiny_settings();
    const TemporaryFolder folder;
    const std::string file = folder / "adapter.gguf", saved = folder / "prompt.bin";
    const auto with = [&](std::vector<std::pair<std::string, float>> adapters) {
        Settings other = settings;
        other.model.lora = std::move(adapters);
        return tiny_engine(other);
    };
    write_adapter(file);
    {
        const auto engine = with({{file, 1.0f}});
        const auto request = question(*engine, "What is 2+3?", settings.request);
        ASSERT_EQ(ask(*engine, request)->wait().reason, StopReason::end_of_answer);
        ASSERT_TRUE(engine->save_prompt(request.prompt, saved).ok());
    }
    EXPECT_TRUE(with({{file, 1.0f}})->restore_prompt(saved).ok());
    const auto refused = [&](const auto& engine) {
        const auto restored = engine->restore_prompt(saved);
        return !restored.ok() && restored.error().message.find("other adapters") != std::string::npos;
    };
    EXPECT_TRUE(refused(with({})));
    EXPECT_TRUE(refused(with({{file, 1.0f}, {file, 1.0f}})));
    write_adapter(folder / "other.gguf", 2);
    EXPECT_TRUE(refused(with({{folder / "other.gguf", 1.0f}})));
}

}  // namespace
}  // namespace headrace::llm
