#include "llm/engine/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <thread>

#include "llm/parameters/value.h"
#include "llm/random_model.h"
#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::llm {
namespace {

/// As the tiny model's, with what every example goes together with.
Settings plain_settings() {
    Settings settings = tiny_settings();
    settings.request.sampling.grammar_triggers = {{GrammarTrigger::Type::word, "<start>"}};
    return settings;
}

Settings with_example(const Row& row) {
    Warnings warnings;
    const std::string_view example = row.path == "adapters.lora" ? R"([{"path": "a.gguf"}])" : row.example;
    const std::string json = fmt::format("{{\"{}\": {}}}", row.path, example);
    Result<Settings> settings =
        with_parameters(plain_settings(), json, std::min(row.level, Level::model), warnings);
    EXPECT_TRUE(settings.ok()) << json << ": " << (settings.ok() ? "" : settings.error().message);
    return settings.ok() ? std::move(settings).value() : plain_settings();
}

/// What a parameter decides on, by its place in the documentation.
bool is_one_of(const Row& row, std::initializer_list<std::string_view> paths) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](std::string_view path) { return row.path.starts_with(path); });
}
bool decides_on_weights(const Row& row) {
    return row.path != "model.replace" &&
           is_one_of(row, {"model.", "adapters.lora", "chat.jinja", "chat.template"}) &&
           row.path != "chat.template_kwargs";
}
bool decides_on_context(const Row& row) {
    return row.path != "cache.cache_prompt" &&
           is_one_of(row, {"context.", "context_shift.enabled", "embedding.enabled", "embedding.pooling",
                           "embedding.attention", "speculative.draft", "queue.", "cache."});
}

std::vector<const Row*> rows_with_effect() {
    std::vector<const Row*> rows = parameter_rows();
    std::erase_if(rows, [](const Row* row) { return row->ignored(); });
    return rows;
}

std::string row_name(const testing::TestParamInfo<const Row*>& info) {
    std::string name(info.param->path);
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

class SharedEngine : public testing::TestWithParam<const Row*> {
protected:
    const Row& row = *GetParam();
    const Settings base = plain_settings(), changed = with_example(row);
};

TEST_P(SharedEngine, HasASettingInItsKeyExactlyWhenThatMatters) {
    EXPECT_EQ(!(changed.model == base.model), decides_on_weights(row));
    const EngineSettings &one = base, &other = changed;
    EXPECT_EQ(!(one == other), decides_on_weights(row) || decides_on_context(row));
}

TEST_P(SharedEngine, IsSharedExactlyWhenNothingThatMattersDiffers) {
    // Locked pages and folders of the system are not for tests, and the others name files that are not there.
    if (is_one_of(row, {"model.use_mlock", "model.mmproj", "speculative.draft.model", "adapters.lora",
                        "cache.dir"})) {
        EXPECT_FALSE(static_cast<const EngineSettings&>(base) == changed);
        return;
    }
    const Result<Runner> first = open_runner(tiny_model(), base), again = open_runner(tiny_model(), base),
                         second = open_runner(tiny_model(), changed);
    ASSERT_TRUE(first.ok() && again.ok());
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_EQ(first.value().engine, again.value().engine);
    EXPECT_EQ(first.value().engine != second.value().engine,
              decides_on_weights(row) || decides_on_context(row));
    EXPECT_EQ(&first.value().model() != &second.value().model(), decides_on_weights(row));
}

INSTANTIATE_TEST_SUITE_P(Rows, SharedEngine, testing::ValuesIn(rows_with_effect()), row_name);

/// A name at which two files take turns, and what each answers.
class SwappedFiles : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(right[0], right[1]); }

    void put_copy_in_place(std::size_t which) {
        std::filesystem::copy_file(models[which].path(), path + ".new");
        std::filesystem::rename(path + ".new", path);
    }
    /// The same file each time.
    void put_itself_in_place(std::size_t which) {
        std::filesystem::create_hard_link(models[which].path(), path + ".new");
        std::filesystem::rename(path + ".new", path);
    }
    static std::shared_ptr<Engine> open(const std::string& file, const Settings& with) {
        const Result<Runner> runner = open_runner(file, with);
        if (!runner.ok()) throw std::runtime_error(runner.error().message);
        return runner.value().engine;
    }
    static Tokens answer(Engine& engine) {
        GenerationRequest request{.prompt = Tokens(200, 300),
                                  .settings = endless_request(tiny_settings().request, 8)};
        for (std::size_t i = 0; i < request.prompt.size(); ++i) request.prompt[i] += static_cast<int>(i % 37);
        return ask(engine, request)->wait().tokens;
    }
    void pause(unsigned most_microseconds) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % most_microseconds));
    }

    const RandomModel models[2] = {{"llama", GGML_TYPE_F16, 1}, {"llama", GGML_TYPE_F16, 2}};
    const Tokens right[2] = {answer(*open(models[0].path(), tiny_settings())),
                             answer(*open(models[1].path(), tiny_settings()))};
    const TemporaryFolder folder;
    const std::string path = folder / "model.gguf";
    std::mt19937 random{3};
};

/// Keys and values on disk bear the name of the file that they come from.
TEST_F(SwappedFiles, NeverGetTheKeysAndValuesOfTheFileBefore) {
    Settings settings = tiny_settings();
    settings.cache.dir = folder / "prompts";
    for (std::size_t i = 0; i < 40; ++i) {
        put_copy_in_place(i % 2);
        std::thread swaps([&] {
            pause(30'000);
            put_copy_in_place((i + 1) % 2);
        });
        const Tokens one = answer(*open(path, settings));
        swaps.join();
        EXPECT_TRUE(one == right[0] || one == right[1]) << i;
        EXPECT_EQ(answer(*open(path, settings)), right[(i + 1) % 2]) << i;
    }
}

/// Its inode, its size and the time at which it was written do not tell that another one was in its place.
TEST_F(SwappedFiles, AreTheirOwnAgainAfterTheyComeBack) {
    put_itself_in_place(0);
    for (std::size_t i = 0; i < 100; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a file system's clock is coarse
        std::thread swaps([&] {
            pause(3'000);
            put_itself_in_place(1);
            pause(3'000);
            put_itself_in_place(0);
        });
        const auto held = open(path, tiny_settings());
        swaps.join();
        EXPECT_EQ(answer(*open(path, tiny_settings())), right[0]) << i;
    }
}

}  // namespace
}  // namespace headrace::llm
