#include "llm/engine/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "llm/parameters/value.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

/// As the tiny model's, with what every example goes together with.
Settings plain_settings() {
    Settings settings = tiny_settings();
    settings.request.sampling.grammar_triggers = {{GrammarTrigger::Type::word, "<start>"}};
    return settings;
}

Settings with_example(const Row& row) {
    Notes notes;
    const std::string_view example = row.path == "adapters.lora" ? R"([{"path": "a.gguf"}])" : row.example;
    const std::string json = fmt::format("{{\"{}\": {}}}", row.path, example);
    Result<Settings> settings =
        with_parameters(plain_settings(), json, std::min(row.level, Level::model), notes);
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

}  // namespace
}  // namespace headrace::llm
