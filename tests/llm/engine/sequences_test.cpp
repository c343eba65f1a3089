#include "llm/engine/sequences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "llm/log/llama_log.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMegabyte = 1u << 20;

class SequencesTest : public testing::Test {
protected:
    void make(std::size_t ram_bytes) {
        auto loaded = Model::load(tiny_model(), {});
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        model = loaded.value();
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 256;
        params.n_seq_max = 4;
        params.n_threads = params.n_threads_batch = 1;
        params.kv_unified = true;
        context.reset(llama_init_from_model(model->get(), params));
        sequences.emplace(context.get(), true, ram_bytes);
        cells = sequences->room();
    }
    Tokens story(int words) const {
        std::string text;
        for (int i = 0; i < words; ++i) text += " a" + std::to_string(i % 10);
        return model->tokenize(text, false, false);
    }
    Tokens most_of_the_context(llama_token begin) const {
        Tokens tokens = story(200);
        tokens.resize(150);
        tokens.front() = begin;
        return tokens;
    }
    /// Decodes what of the tokens is not in memory; returns the likeliest token behind them.
    llama_token read(Sequences::Id id, const Tokens& tokens) {
        const std::size_t begin = sequences->size(id);
        llama_batch batch = llama_batch_init(static_cast<int>(tokens.size()), 0, 1);
        for (std::size_t i = begin; i < tokens.size(); ++i) {
            const int entry = batch.n_tokens++;
            batch.token[entry] = tokens[i];
            batch.pos[entry] = static_cast<llama_pos>(i);
            batch.n_seq_id[entry] = 1;
            batch.seq_id[entry][0] = id;
            batch.logits[entry] = i + 1 == tokens.size();
        }
        EXPECT_EQ(llama_decode(context.get(), batch), 0);
        llama_batch_free(batch);
        sequences->append(id, tokens.data() + begin, tokens.size() - begin);
        const float* logits = llama_get_logits_ith(context.get(), -1);
        return static_cast<llama_token>(std::max_element(logits, logits + model->vocabulary_size()) - logits);
    }
    Sequences::Place acquire(const Tokens& tokens, std::uint64_t variant = 0) {
        const auto place = sequences->acquire(tokens, true, variant);
        EXPECT_TRUE(place);
        return place.value_or(Sequences::Place{-1, 0});
    }

    struct Free {
        void operator()(llama_context* held) const { llama_free(held); }
    };
    std::shared_ptr<const Model> model;
    std::unique_ptr<llama_context, Free> context;
    std::optional<Sequences> sequences;
    std::size_t cells = 0;
};

TEST_F(SequencesTest, CountsCellsThatSequencesShareOnce) {
    make(0);
    const Tokens prompt = story(30);
    const auto first = acquire(prompt);
    EXPECT_EQ(first.tokens, 0);
    read(first.id, prompt);
    EXPECT_EQ(sequences->room(), cells - prompt.size());
    const auto second = acquire(prompt);
    EXPECT_NE(second.id, first.id);
    EXPECT_EQ(second.tokens, static_cast<int>(prompt.size()) - 1) << "the last token is left to be decoded";
    EXPECT_EQ(sequences->room(), cells - prompt.size());
    sequences->release(first.id, false);
    EXPECT_EQ(sequences->room(), cells - prompt.size() + 1) << "the other still holds all but the last";
    sequences->release(second.id, false);
    EXPECT_EQ(sequences->room(), cells);
}

TEST_F(SequencesTest, GivesTheSameAnswerFromSharedMemory) {
    make(0);
    const Tokens prompt = story(30);
    const auto first = acquire(prompt), second = [&] {
        const auto place = acquire(prompt);
        return place;
    }();
    const llama_token alone = read(first.id, prompt);
    EXPECT_EQ(sequences->extend(second.id, prompt), static_cast<int>(prompt.size()) - 1);
    EXPECT_EQ(read(second.id, prompt), alone);
}

TEST_F(SequencesTest, RefusesToShiftCellsThatOthersShare) {
    make(0);
    const Tokens prompt = story(30);
    const auto first = acquire(prompt);
    read(first.id, prompt);
    const auto second = acquire(prompt);
    EXPECT_FALSE(sequences->shift(first.id, 4, 10));
    EXPECT_EQ(sequences->size(first.id), prompt.size());
    sequences->release(second.id, false);
    EXPECT_TRUE(sequences->shift(first.id, 4, 10));
    EXPECT_EQ(sequences->size(first.id), prompt.size() - 10);
    EXPECT_EQ(sequences->room(), cells - prompt.size() + 10);
}

TEST_F(SequencesTest, RefusesToShiftWhatItDoesNotHold) {
    make(0);
    const Tokens prompt = story(30);
    const auto place = acquire(prompt);
    EXPECT_FALSE(sequences->shift(place.id, 4, 10)) << "nothing was read yet";
    read(place.id, prompt);
    EXPECT_FALSE(sequences->shift(place.id, 4, prompt.size()));
    EXPECT_EQ(sequences->size(place.id), prompt.size());
    EXPECT_EQ(sequences->room(), cells - prompt.size());
    EXPECT_TRUE(sequences->shift(place.id, 4, prompt.size() - 4)) << "all that is behind";
}

TEST_F(SequencesTest, RestoresAnEvictedPromptFromRam) {
    make(kMegabyte);
    const Tokens prompt = story(40);
    ASSERT_GT(prompt.size(), 40u);
    const auto first = acquire(prompt);
    const llama_token expected = read(first.id, prompt);
    sequences->release(first.id, true);
    ASSERT_TRUE(sequences->evict_one());
    EXPECT_EQ(sequences->room(), cells);
    EXPECT_GT(sequences->ram_bytes(), 0u);
    const auto again = acquire(prompt);
    EXPECT_EQ(again.tokens, static_cast<int>(prompt.size()) - 1);
    EXPECT_EQ(read(again.id, prompt), expected);
}

TEST_F(SequencesTest, SavesWhatGivesWayToARestoredPrompt) {
    make(kMegabyte);
    const Tokens first = most_of_the_context(5), second = most_of_the_context(6);
    const auto one = acquire(first);
    read(one.id, first);
    sequences->release(one.id, true);
    ASSERT_TRUE(sequences->evict_one());
    const auto other = acquire(second);
    read(other.id, second);
    sequences->release(other.id, true);
    take_llama_errors();
    const auto again = acquire(first);
    EXPECT_EQ(take_llama_errors(), "") << "giving way is no error of the log";
    EXPECT_EQ(again.tokens, static_cast<int>(first.size()) - 1);
    EXPECT_EQ(sequences->idle_count(), 0u) << "there is no room for both";
    sequences->release(again.id, true);
    ASSERT_TRUE(sequences->evict_one());
    EXPECT_EQ(acquire(second).tokens, static_cast<int>(second.size()) - 1);
}

TEST_F(SequencesTest, KeepsItsVariantWhereASavedPromptFindsNoRoom) {
    make(kMegabyte);
    constexpr std::uint64_t variant = 7;
    const Tokens prompt = most_of_the_context(5), busy = most_of_the_context(6);
    const auto first = acquire(prompt, variant);
    read(first.id, prompt);
    sequences->release(first.id, true);
    ASSERT_TRUE(sequences->evict_one());
    read(acquire(busy).id, busy);
    const auto again = acquire(prompt, variant);
    EXPECT_EQ(again.tokens, 0);
    const Tokens start(prompt.begin(), prompt.begin() + 50);
    read(again.id, start);
    sequences->release(again.id, true);
    EXPECT_EQ(acquire(start, 0).tokens, 0) << "it was computed with other adapters";
    EXPECT_EQ(acquire(start, variant).tokens, static_cast<int>(start.size()) - 1);
}

TEST_F(SequencesTest, ForgetsAnEvictedPromptWithoutRam) {
    make(0);
    const Tokens prompt = story(40);
    const auto first = acquire(prompt);
    read(first.id, prompt);
    sequences->release(first.id, true);
    ASSERT_TRUE(sequences->evict_one());
    EXPECT_EQ(acquire(prompt).tokens, 0);
}

TEST_F(SequencesTest, ForgetsWhatNobodyUsedSinceThen) {
    make(kMegabyte);
    const Tokens prompt = story(40);
    const auto first = acquire(prompt);
    read(first.id, prompt);
    sequences->release(first.id, true);
    sequences->evict_older_than(Sequences::Clock::now() - std::chrono::hours(1));
    EXPECT_EQ(sequences->idle_count(), 1u);
    sequences->evict_one();
    sequences->evict_older_than(Sequences::Clock::now() + std::chrono::hours(1));
    EXPECT_EQ(sequences->ram_bytes(), 0u);
    EXPECT_EQ(acquire(prompt).tokens, 0);
}

TEST_F(SequencesTest, SharesNothingBetweenVariants) {
    make(0);
    const Tokens prompt = story(30);
    read(acquire(prompt, 1).id, prompt);
    EXPECT_EQ(acquire(prompt, 2).tokens, 0);
    EXPECT_GT(acquire(prompt, 1).tokens, 0);
}

TEST_F(SequencesTest, HasNoPlaceWhenAllAreBusyAndGivesUpTheOldestIdleOne) {
    make(0);
    std::vector<Sequences::Id> ids;
    for (int i = 0; i < 4; ++i) {
        const Tokens prompt{llama_token(100 + i), 101, 102};
        ids.push_back(acquire(prompt).id);
        read(ids.back(), prompt);
    }
    EXPECT_FALSE(sequences->acquire({300, 301}, true));
    sequences->release(ids[2], true);
    sequences->release(ids[1], true);
    EXPECT_EQ(acquire({300, 301}).id, ids[2]);
    EXPECT_EQ(sequences->busy_count(), 3u);
}

TEST(CommonPrefix, HasAnImageWholeOrNotAtAll) {
    const std::string one(64, '5');
    std::string other = one;
    other.back() = '4';  // equal for seven tokens
    const auto prompt = [](const std::string& image, std::size_t count, llama_token end) {
        Tokens tokens = image_tokens(image, count, count);
        tokens.insert(tokens.begin(), {1, 2});
        tokens.push_back(end);
        return tokens;
    };
    EXPECT_EQ(common_prefix(prompt(one, 16, 3), prompt(one, 16, 3)), 19u);
    EXPECT_EQ(common_prefix(prompt(one, 16, 3), prompt(one, 16, 4)), 18u);
    EXPECT_EQ(common_prefix(prompt(one, 16, 3), prompt(other, 16, 3)), 2u);
    Tokens part = prompt(one, 16, 3);
    part.resize(10);  // it was read so far
    EXPECT_EQ(common_prefix(part, prompt(one, 16, 3)), 2u);
}

}  // namespace
}  // namespace headrace::llm
