// Steps of a context: the logits of one sequence, whatever else the steps hold.
#include "llm/engine/invariance.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "llm/engine/compute_context.h"
#include "llm/model/context_params.h"
#include "llm/random_model.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using Logits = std::vector<float>;

/// A context in which sequence 0 is read and watched, and others only are there.
class Steps {
public:
    Steps(const Model& model, bool is_invariant, int threads = 1, int most_at_once = 512)
        : vocabulary_(static_cast<std::size_t>(model.vocabulary_size())) {
        ContextSettings settings;
        settings.n_ctx = 1024;
        settings.n_parallel = settings.max_sequences = kSequences;
        settings.n_batch = settings.n_ubatch = most_at_once;
        settings.batch_invariant = is_invariant;
        llama_context_params params = context_params(model, settings).value();
        params.n_threads = params.n_threads_batch = threads;  // more than a model that small gets
        auto made = ComputeContext::create(
            model, params, [] { return false; }, is_invariant);
        if (!made.ok()) throw std::runtime_error(made.error().message);
        context_ = std::move(made).value();
        batch_ = llama_batch_init(static_cast<std::int32_t>(llama_n_batch(context_->get())), 0, 1);
    }
    ~Steps() { llama_batch_free(batch_); }

    llama_context* get() const { return context_->get(); }
    llama_memory_t memory() const { return llama_get_memory(get()); }
    void add(llama_seq_id sequence, llama_pos position, llama_token token) {
        if (sequence == 0) watched_.push_back(batch_.n_tokens);
        add_token(batch_, token, static_cast<std::size_t>(position), sequence, sequence == 0);
    }
    /// Tokens of other sequences, one of each, where they are now.
    void add_others(std::mt19937& random, int count) {
        for (llama_seq_id sequence = 1; sequence <= count; ++sequence)
            add(sequence, others_[sequence]++, static_cast<llama_token>(random() % 500));
    }
    /// The logits of sequence 0's tokens come behind those that are known.
    void run(Logits& logits) {
        ASSERT_EQ(context_->compute(batch_).status, 0);
        for (const int index : watched_) {
            const float* row = llama_get_logits_ith(get(), index);
            logits.insert(logits.end(), row, row + vocabulary_);
        }
        batch_.n_tokens = 0;
        watched_.clear();
    }

    static constexpr int kSequences = 8;

private:
    const std::size_t vocabulary_;
    std::unique_ptr<ComputeContext> context_;
    llama_batch batch_;
    std::vector<int> watched_;
    std::vector<llama_pos> others_ = std::vector<llama_pos>(kSequences, 0);
};

Tokens some_tokens(std::size_t count) {
    std::mt19937 random(5);
    Tokens tokens(count);
    for (llama_token& token : tokens) token = static_cast<llama_token>(random() % 500);
    return tokens;
}

/// Logits of every token, read in steps of so many.
Logits read(Steps& steps, const Tokens& tokens, std::size_t at_once, std::size_t begin = 0) {
    Logits logits;
    for (std::size_t at = begin; at < tokens.size();) {
        for (std::size_t end = std::min(at + at_once, tokens.size()); at < end; ++at)
            steps.add(0, static_cast<llama_pos>(at), tokens[at]);
        steps.run(logits);
    }
    return logits;
}

/// The same among tokens of seven others, which come and go, and whose cells lie between those of the
/// sequence.
Logits read_beside_others(Steps& steps, const Tokens& tokens, unsigned seed) {
    std::mt19937 random(seed);
    Logits logits, ignored;
    for (int i = 0; i < 3; ++i) steps.add_others(random, 7), steps.run(ignored);
    for (std::size_t at = 0; at < tokens.size();) {
        steps.add_others(random, static_cast<int>(random() % 4));
        for (std::size_t end = std::min(at + 1 + random() % 9, tokens.size()); at < end; ++at)
            steps.add(0, static_cast<llama_pos>(at), tokens[at]);
        steps.add_others(random, static_cast<int>(random() % 8));
        steps.run(logits);
        if (at == 40 || random() % 8 == 0) llama_memory_seq_rm(steps.memory(), 5, 0, 2);  // holes
    }
    return logits;
}

class InvariantSteps : public testing::TestWithParam<std::tuple<const char*, ggml_type>> {
protected:
    void SetUp() override {
        if (const Status can = require_packed_kernels(); !can.ok()) GTEST_SKIP() << can.error().message;
        file_ = std::make_unique<RandomModel>(std::get<0>(GetParam()), std::get<1>(GetParam()));
        auto loaded = Model::load(file_->path(), {});
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        model_ = loaded.value();
    }
    Logits alone() const {
        Steps steps(*model_, true);
        return read(steps, tokens_, 512);
    }

    const Tokens tokens_ = some_tokens(150);
    std::unique_ptr<RandomModel> file_;
    std::shared_ptr<const Model> model_;
};

TEST_P(InvariantSteps, GiveTheSameLogitsInStepsOfAnySizeOnAnyThreads) {
    const Logits expected = alone();
    ASSERT_EQ(expected.size() / static_cast<std::size_t>(model_->vocabulary_size()), tokens_.size());
    const auto expect_same = [&](int threads, int at_once) {
        Steps steps(*model_, true, threads, std::max(at_once, Steps::kSequences));
        EXPECT_TRUE(read(steps, tokens_, static_cast<std::size_t>(at_once)) == expected)
            << threads << " threads, " << at_once << " tokens at once";
    };
    for (const int at_once : {1, 7, 32, 64, 150}) expect_same(1, at_once);
    // Few steps: threads that have no core of their own wait for each other at every node.
    for (const int threads : {2, 3}) expect_same(threads, 70);
}

TEST_P(InvariantSteps, GiveTheSameLogitsBesideOtherSequences) {
    const Logits expected = alone();
    for (unsigned seed = 0; seed < 4; ++seed) {
        Steps steps(*model_, true);
        EXPECT_TRUE(read_beside_others(steps, tokens_, seed) == expected) << "seed " << seed;
    }
}

TEST_P(InvariantSteps, GiveTheSameLogitsBehindASharedAndARestoredBeginning) {
    const Logits expected = alone();
    const std::size_t row = static_cast<std::size_t>(model_->vocabulary_size()), known = 90;
    const Logits rest(expected.begin() + static_cast<std::ptrdiff_t>(known * row), expected.end());
    Steps steps(*model_, true);
    std::mt19937 random(3);
    Logits ignored;
    for (std::size_t at = 0; at < known + 10; ++at) {  // another sequence reads the beginning, and goes on
        steps.add(1, static_cast<llama_pos>(at), at < known ? tokens_[at] : 7);
        if (at % 10 == 9) steps.run(ignored);
    }
    llama_memory_seq_cp(steps.memory(), 1, 0, 0, static_cast<llama_pos>(known));
    EXPECT_TRUE(read(steps, tokens_, 16, known) == rest) << "shared";

    std::vector<std::uint8_t> state(llama_state_seq_get_size(steps.get(), 0));
    ASSERT_EQ(llama_state_seq_get_data(steps.get(), state.data(), state.size(), 0), state.size());
    Steps other(*model_, true);
    for (int i = 0; i < 5; ++i) other.add_others(random, 6), other.run(ignored);
    llama_memory_seq_rm(other.memory(), 3, -1, -1);  // cells between others' are free
    ASSERT_NE(llama_state_seq_set_data(other.get(), state.data(), state.size(), 0), 0u);
    llama_memory_seq_rm(other.memory(), 0, static_cast<llama_pos>(known), -1);
    EXPECT_TRUE(read(other, tokens_, 1, known) == rest) << "restored";
}

TEST_P(InvariantSteps, ArePromisedOnlyOfContextsThatWereAskedForThem) {
    const auto differs = [&](bool is_invariant) {
        Steps first(*model_, is_invariant);
        const Logits expected = read(first, tokens_, 512);
        for (unsigned seed = 0; seed < 4; ++seed) {
            Steps steps(*model_, is_invariant);
            if (read_beside_others(steps, tokens_, seed) != expected) return true;
        }
        return false;
    };
    EXPECT_FALSE(differs(true));
    EXPECT_TRUE(differs(false)) << "nothing would show that the other tests can fail";
}

INSTANTIATE_TEST_SUITE_P(Models, InvariantSteps,
                         testing::Combine(testing::Values("llama", "qwen3"),
                                          testing::Values(GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_F16)),
                         [](const auto& of) {
                             return std::string(std::get<0>(of.param)) + "_" +
                                    ggml_type_name(std::get<1>(of.param));
                         });

TEST(Invariance, CoversPlainWeightsToo) {
    if (const Status can = require_packed_kernels(); !can.ok()) GTEST_SKIP() << can.error().message;
    const RandomModel file("qwen3", GGML_TYPE_Q8_0);
    ModelSettings settings;
    settings.repack = false;
    const auto model = Model::load(file.path(), settings).value();
    const Tokens tokens = some_tokens(60);
    Steps whole(*model, true), pieces(*model, true);
    EXPECT_TRUE(read(whole, tokens, 512) == read_beside_others(pieces, tokens, 1));
}

TEST(Invariance, RefusesAModelWithWhatItDoesNotCover) {
    if (const Status can = require_packed_kernels(); !can.ok()) GTEST_SKIP() << can.error().message;
    const RandomModel file("qwen3", GGML_TYPE_Q8_0);
    const auto model = Model::load(file.path(), {}).value();
    ContextSettings settings;
    settings.n_ctx = 256;
    llama_context_params params = context_params(*model, settings).value();
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    const auto made = ComputeContext::create(
        *model, params, [] { return false; }, true);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, Code::unsupported);
    EXPECT_NE(made.error().message.find("batch_invariant does not cover MUL_MAT"), std::string::npos)
        << made.error().message;
}

}  // namespace
}  // namespace headrace::llm
