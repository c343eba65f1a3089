#include "doors/serve/models/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utime.h>

#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ModelSpecs> specs_of(const std::vector<std::string>& arguments) {
    HR_ASSIGN(const ServeOptions options, serve_options(arguments, {}));
    std::vector<std::string> notes;
    return model_specs(options, notes);
}

void set_age(const std::string& path, int seconds) {
    const std::time_t time = std::time(nullptr) - seconds;
    const utimbuf times{time, time};
    utime(path.c_str(), &times);
}

TEST(ModelSpecs, HaveTheirFilesNamesWhereNoOtherHasThem) {
    TemporaryFolder folder;
    const std::string preset = folder.write(
        "m.ini", "[a]\nmodel = x.gguf\n[b]\nmodel = y.gguf\n[c]\nmodel = y.gguf\n[d]\nmodel = own.gguf\n");
    const ModelSpecs specs = specs_of({"-m", "own.gguf", "--models-preset", preset}).value();
    ASSERT_EQ(specs.size(), 5u);
    EXPECT_THAT(specs[0]->names(), ElementsAre("own.gguf"));
    EXPECT_THAT(specs[1]->names(), ElementsAre("a", "x.gguf"));
    EXPECT_THAT(specs[2]->names(), ElementsAre("b"));
    EXPECT_THAT(specs[4]->names(), ElementsAre("d"));
    EXPECT_TRUE(specs[0]->is_pinned() && specs[0]->loads_at_start());
    EXPECT_FALSE(specs[1]->is_pinned() || specs[1]->loads_at_start());
}

TEST(ModelSpecs, OfOneNameAreToldApart) {
    const ModelSpecs specs = specs_of({"--embed", "a/m.gguf", "--rank", "b/m.gguf"}).value();
    EXPECT_EQ(specs[0]->id(), specs[1]->id());
    EXPECT_NE(specs[0]->key(), specs[1]->key());
    TemporaryFolder folder;
    const std::string preset = folder.write("m.ini", "[m]\nmodel = a.gguf\n[n]\nmodel = b.gguf\nalias = m\n");
    EXPECT_THAT(specs_of({"--models-preset", preset}).error().message,
                HasSubstr("two models are called 'm'"));
}

TEST(ModelSpecs, KnowWhatTheirModelsDo) {
    const std::string model = llm::tiny_model();
    EXPECT_EQ(specs_of({model}).value()[0]->role(), Role::text);
    EXPECT_EQ(specs_of({model, "--embeddings"}).value()[0]->role(), Role::vectors);
    EXPECT_EQ(specs_of({model, "--reranking"}).value()[0]->role(), Role::scores);
    EXPECT_EQ(specs_of({"no.gguf"}).value()[0]->role(), Role::text);
}

TEST(ModelSpecs, ShareInMemoryWhatTheirParametersDoNotChange) {
    const auto names = [](std::vector<std::string> more) {
        more.insert(more.begin(), "m.gguf");
        const auto spec = specs_of(more).value()[0];
        return std::pair(spec->weights_name(), spec->engine_name());
    };
    const auto [weights, engine] = names({});
    for (const char* of_answers : {"--temp=0.1", "--dry-multiplier=0.5", "--reasoning-budget=7"})
        EXPECT_EQ(names({of_answers}), std::pair(weights, engine)) << of_answers;
    for (const char* of_engines : {"--ctx-size=99", "--cache-type-k=q8_0", "--yarn-ext-factor=0.5"}) {
        EXPECT_EQ(names({of_engines}).first, weights) << of_engines;
        EXPECT_NE(names({of_engines}).second, engine) << of_engines;
    }
    for (const char* of_weights : {"--no-repack", "--lora=a.gguf", "--model-draft=d.gguf"})
        EXPECT_NE(names({of_weights}).first, weights) << of_weights;
}

TEST(ModelSpecs, LookAtAFileOnceItIsWritten) {
    TemporaryFolder folder;
    const std::string path = folder.write("a.gguf", "first");
    set_age(path, 60);
    const auto spec = specs_of({path}).value()[0];
    const std::string first = spec->file_version();
    folder.write("a.gguf", "second, which is longer");
    EXPECT_EQ(spec->file_version(), first) << "it may still be written";
    set_age(path, 30);
    EXPECT_NE(spec->file_version(), first);
    const std::string second = spec->file_version();
    std::filesystem::remove(path);
    EXPECT_EQ(spec->file_version(), second);
}

}  // namespace
}  // namespace headrace::serve
