#include "doors/serve/models/served_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/tiny_model.h"

namespace headrace::serve {
namespace {

std::unique_ptr<ServedModel> tiny() {
    LanguageModel model = LanguageModel::load(
        llm::tiny_model(), {.parameters = {{"n_ctx", 512}, {"n_threads", 1}, {"log_level", "error"}}});
    return std::make_unique<ServedModel>(std::move(model), ServedModel::Names{{"tiny"}, {}},
                                         ServedModel::Limits{2, 0, std::chrono::seconds(30)});
}

TEST(ServedModels, FailAfterSeveralFaultsOfTheEngineInARow) {
    const auto model = tiny();
    const Exception fault(Code::backend_failure, model->info().path + ": out of order");
    const Exception mistake(Code::invalid_argument, "'top_k' is -1");
    for (int i = 0; i < 5; ++i) model->count_outcome(&mistake);
    EXPECT_FALSE(model->is_failing());
    for (int i = 0; i < 2; ++i) model->count_outcome(&fault);
    EXPECT_FALSE(model->is_failing());
    model->count_outcome(&fault);
    EXPECT_TRUE(model->is_failing());
    EXPECT_EQ(model->failure(), "tiny-chat-q8_0.gguf: out of order");
    model->count_outcome(&mistake);
    EXPECT_TRUE(model->is_failing());
    model->count_outcome(nullptr);
    EXPECT_FALSE(model->is_failing());
}

TEST(ServedModels, KnowTheirFilesMetadata) {
    const auto model = tiny();
    EXPECT_EQ(model->text_of_metadata("general.architecture"), "llama");
    EXPECT_EQ(model->text_of_metadata("llama.context_length"), "");
    EXPECT_EQ(model->text_of_metadata("none"), "");
}

TEST(Messages, NameNoPathOfThisMachine) {
    EXPECT_EQ(without_paths("/srv/models/a.gguf: lost; /srv/models/a.gguf", "/srv/models/a.gguf"),
              "a.gguf: lost; a.gguf");
    EXPECT_EQ(without_paths("a.gguf: lost", "a.gguf"), "a.gguf: lost");
    EXPECT_EQ(without_paths("lost", ""), "lost");
}

}  // namespace
}  // namespace headrace::serve
