#include "doors/serve/models/model_record.h"

#include <gtest/gtest.h>

#include <optional>

#include "doors/serve/models/served_model.h"
#include "llm/tiny_model.h"

namespace headrace::serve {
namespace {

LanguageModel tiny(int threads) {
    return LanguageModel::load(
        llm::tiny_model(), {.parameters = {{"n_ctx", 512}, {"n_threads", threads}, {"log_level", "error"}}});
}

std::shared_ptr<ServedModel> served(const std::shared_ptr<LanguageRecord>& record, int threads = 1) {
    return std::make_shared<ServedModel>(tiny(threads), ServedModel::Names{{record->id()}, {}},
                                         ServedModel::Limits{2, 0, std::chrono::seconds(30)},
                                         ServedModel::Given(), record);
}

void answer(ServedModel& model) { model.engine().generate("a", {{"n_predict", 2}, {"ignore_eos", true}}); }

TEST(ModelRecords, GoOnWhenAModelIsLoadedAgain) {
    const auto record = std::make_shared<LanguageRecord>("tiny");
    for (int load = 1; load <= 3; ++load) {
        const auto model = served(record);
        answer(*model);
        EXPECT_EQ(record->statistics().finished, static_cast<std::uint64_t>(load));
    }
    EXPECT_EQ(record->statistics().finished, 3u);
    EXPECT_EQ(record->statistics().generated_tokens, 6u);
    EXPECT_GT(record->statistics().prompt_ms, 0);
    EXPECT_EQ(record->statistics().remembered_tokens, 0u);
}

TEST(ModelRecords, AddUpTwoFilesThatAnswerUnderOneName) {
    const auto record = std::make_shared<LanguageRecord>("tiny");
    auto before = served(record, 1), after = served(record, 2);
    answer(*before);
    answer(*after);
    EXPECT_EQ(record->statistics().finished, 2u);
    before.reset();
    EXPECT_EQ(record->statistics().finished, 2u);
}

TEST(ModelRecords, LeaveOutWhatASharedEngineDidForOthersBefore) {
    const auto first = std::make_shared<LanguageRecord>("a"), second = std::make_shared<LanguageRecord>("b");
    const auto model = served(first);
    answer(*model);
    const auto other = served(second);
    EXPECT_EQ(second->statistics().finished, 0u);
}

TEST(ModelRecords, AreOneForEachNameInTheOrderOfTheirFirstLoads) {
    ModelRecords<LanguageRecord> records;
    const auto b = records.of("b");
    records.of("a");
    EXPECT_EQ(records.of("b"), b);
    ASSERT_EQ(records.all().size(), 2u);
    EXPECT_EQ(records.all()[0]->id(), "b");
}

}  // namespace
}  // namespace headrace::serve
