// The cache on disk, as an engine uses it.
#include "llm/engine/stored_prompts.h"

#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kPromptBlock = 64;

/// Blocks of a prompt that may be remembered: its last token is computed in any case.
constexpr std::size_t whole(std::size_t tokens) { return (tokens - 1) / kPromptBlock; }

/// The warnings that are logged as long as it lives and speak of the folder.
class Warnings {
public:
    Warnings() {
        set_log_callback([this](const LogLine& line) {
            const std::lock_guard lock(mutex_);
            if (line.level == LogLevel::warn && line.message.find("cache_dir") != line.message.npos)
                lines_.emplace_back(line.message);
        });
    }
    ~Warnings() { set_log_callback(nullptr); }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

class StoredPromptsTest : public testing::Test {
protected:
    const TemporaryFolder temporary;
    const std::string folder = temporary / "cache";
    Settings settings = [this] {
        Settings made = tiny_settings();
        made.context.n_ctx = 2048;
        made.cache.dir = folder;
        made.request.n_predict = 12;
        return made;
    }();

    static Tokens story(Engine& engine, std::size_t size, llama_token begin = 100) {
        std::string text;
        for (int i = 0; i < 1000; ++i) text += " a" + std::to_string(i * 7 % 10);
        Tokens tokens = engine.model().tokenize(text, false, false);
        tokens.resize(size);
        tokens.front() = begin;
        return tokens;
    }
    Outcome answer(Engine& engine, std::size_t size, llama_token begin = 100) const {
        GenerationRequest request{.prompt = story(engine, size, begin), .settings = settings.request};
        request.settings = endless_request(request.settings, settings.request.n_predict);
        const Outcome outcome = ask(engine, std::move(request))->wait();
        EXPECT_FALSE(outcome.failed()) << outcome.detail;
        return outcome;
    }
    /// An engine's whole life: a process, as far as the folder knows.
    Outcome answer_in_a_life(std::size_t size, EngineStatistics* statistics = nullptr) const {
        const auto engine = tiny_engine(settings);
        const Outcome outcome = answer(*engine, size);
        if (statistics) *statistics = engine->statistics();
        return outcome;
    }
    std::vector<std::filesystem::path> blocks() const {
        std::vector<std::filesystem::path> found;
        if (std::filesystem::exists(folder))
            for (const auto& entry : std::filesystem::directory_iterator(folder))
                if (entry.path().extension() == ".kv") found.push_back(entry.path());
        return found;
    }
    Outcome without_the_disk(std::size_t size) const {
        Settings plain = settings;
        plain.cache.dir.clear();
        const auto engine = tiny_engine(plain);
        return answer(*engine, size);
    }
};

TEST_F(StoredPromptsTest, AreThereAfterTheEnginesEnd) {
    EngineStatistics before, after;
    const Outcome cold = answer_in_a_life(1000, &before);
    EXPECT_EQ(cold.cached_tokens, 0);
    EXPECT_EQ(before.disk_cached_tokens, 0u);
    EXPECT_EQ(blocks().size(), whole(1000));
    const Outcome warm = answer_in_a_life(1000, &after);
    EXPECT_EQ(warm.cached_tokens, static_cast<int>(whole(1000) * kPromptBlock));
    EXPECT_EQ(warm.read_tokens, static_cast<int>(1000 - whole(1000) * kPromptBlock));
    EXPECT_EQ(after.disk_cached_tokens, whole(1000) * kPromptBlock);
    EXPECT_EQ(after.disk_failures, 0u);
    EXPECT_EQ(warm.tokens, cold.tokens);
    EXPECT_EQ(without_the_disk(1000).tokens, cold.tokens);
}

TEST_F(StoredPromptsTest, AreSharedByTextsThatBeginAlike) {
    answer_in_a_life(2 * kPromptBlock + 10);
    EngineStatistics after;
    answer_in_a_life(5 * kPromptBlock + 10, &after);
    EXPECT_EQ(after.disk_cached_tokens, 2 * kPromptBlock);
    EXPECT_EQ(blocks().size(), 5u);
}

TEST_F(StoredPromptsTest, AreFetchedOnceForTwoThatAskAtOnce) {
    const Outcome cold = answer_in_a_life(1000);
    const auto engine = tiny_engine(settings);
    std::vector<std::shared_ptr<Generation>> all;
    for (int i = 0; i < 3; ++i)
        all.push_back(ask(
            *engine, {.prompt = story(*engine, 1000), .settings = endless_request(settings.request, 12)}));
    for (const auto& one : all) {
        EXPECT_EQ(one->wait().tokens, cold.tokens);
        EXPECT_GE(one->wait().cached_tokens, static_cast<int>(whole(1000) * kPromptBlock));
    }
    EXPECT_EQ(engine->statistics().disk_cached_tokens, whole(1000) * kPromptBlock);
}

TEST_F(StoredPromptsTest, AreNotThoseOfOtherSettings) {
    answer_in_a_life(600);
    settings.context.type_k = "q8_0";
    EngineStatistics after;
    answer_in_a_life(600, &after);
    EXPECT_EQ(after.disk_cached_tokens, 0u);
    EXPECT_EQ(blocks().size(), 2 * whole(600));
}

TEST_F(StoredPromptsTest, AreThoseOfAContextOfAnotherSize) {
    answer_in_a_life(600);
    settings.context.n_ctx = 1024;
    settings.context.n_ubatch = 64;
    EngineStatistics after;
    answer_in_a_life(600, &after);
    EXPECT_EQ(after.disk_cached_tokens, whole(600) * kPromptBlock);
}

TEST_F(StoredPromptsTest, AreNotOfRequestsThatAreNotToBeRemembered) {
    settings.request.cache_prompt = false;
    answer_in_a_life(600);
    EXPECT_TRUE(blocks().empty());
    settings.request.cache_prompt = true;
    answer_in_a_life(600);
    settings.request.cache_prompt = false;
    EngineStatistics after;
    answer_in_a_life(600, &after);
    EXPECT_EQ(after.disk_cached_tokens, 0u);
}

TEST_F(StoredPromptsTest, ThatAreDamagedAreComputedAgainAndCounted) {
    const Outcome cold = answer_in_a_life(1000);
    for (const auto& block : blocks()) std::filesystem::resize_file(block, 200);
    Warnings warnings;
    EngineStatistics after;
    EXPECT_EQ(answer_in_a_life(1000, &after).tokens, cold.tokens);
    EXPECT_EQ(after.disk_cached_tokens, 0u);
    EXPECT_GT(after.disk_failures, 0u);
    EXPECT_THAT(warnings.lines(), testing::SizeIs(1));
    answer_in_a_life(1000, &after);
    EXPECT_EQ(after.disk_cached_tokens, whole(1000) * kPromptBlock) << "they were written anew";
}

TEST_F(StoredPromptsTest, ThatEndInTheMiddleAreComputedFromThere) {
    const Outcome cold = answer_in_a_life(1000);
    for (const auto& block : blocks())
        if (block.string().ends_with("-000001.kv")) std::filesystem::remove(block);
    EngineStatistics after;
    const Outcome outcome = answer_in_a_life(1000, &after);
    EXPECT_EQ(outcome.tokens, cold.tokens);
    EXPECT_EQ(after.disk_cached_tokens, kPromptBlock);
}

TEST_F(StoredPromptsTest, AreOnlyReadWhereNothingMayBeWritten) {
    answer_in_a_life(600);
    settings.cache.disk_mib = 0;
    EngineStatistics after;
    answer_in_a_life(1000, &after);
    EXPECT_EQ(after.disk_cached_tokens, whole(600) * kPromptBlock);
    EXPECT_EQ(after.disk_failures, 0u);
    EXPECT_EQ(blocks().size(), whole(600));
}

TEST_F(StoredPromptsTest, StayWithinTheFoldersLimit) {
    settings.cache.disk_mib = 4;
    auto engine = tiny_engine(settings);
    for (llama_token begin = 100; begin < 120; ++begin) answer(*engine, 600, begin);
    EXPECT_EQ(engine->statistics().disk_failures, 0u);
    engine.reset();
    std::uintmax_t bytes = 0;
    for (const auto& block : blocks()) bytes += std::filesystem::file_size(block);
    EXPECT_GT(bytes, 2u << 20);
    EXPECT_LE(bytes, 4u << 20);
}

TEST_F(StoredPromptsTest, ThatCannotBeWrittenAreOneWarningAndACount) {
    settings.cache.dir = temporary.write("file", "x") + "/cache";
    Warnings warnings;
    const auto engine = tiny_engine(settings);
    for (llama_token begin = 100; begin < 103; ++begin)
        EXPECT_EQ(answer(*engine, 600, begin).cached_tokens, 0);
    EXPECT_GT(engine->statistics().disk_failures, 0u);
    EXPECT_THAT(warnings.lines(), testing::SizeIs(1));
}

TEST_F(StoredPromptsTest, AreForgottenWithTheirText) {
    const auto engine = tiny_engine(settings);
    answer(*engine, 600);
    EXPECT_GT(engine->forget_prompt(story(*engine, 600)), 0);
    for (int i = 0; i < 500 && !blocks().empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(blocks().empty());
}

TEST_F(StoredPromptsTest, AreNotKeptWithoutACacheOfPrompts) {
    settings.cache.enable_prompt_cache = false;
    answer_in_a_life(600);
    EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(StoredPromptsTest, OfSequencesThatWerePushedOutComeBack) {
    settings.cache.ram_mib = 0;
    settings.context.n_ctx = 1024;
    const auto engine = tiny_engine(settings);
    const Outcome cold = answer(*engine, 800, 100);
    for (int i = 0; i < 1000 && engine->statistics().disk_written_tokens < whole(800) * kPromptBlock; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    answer(*engine, 800, 101);  // takes its place
    EXPECT_EQ(engine->statistics().disk_cached_tokens, 0u);
    const Outcome again = answer(*engine, 800, 100);
    EXPECT_EQ(again.tokens, cold.tokens);
    EXPECT_EQ(again.cached_tokens, static_cast<int>(whole(800) * kPromptBlock));
}

}  // namespace
}  // namespace headrace::llm
