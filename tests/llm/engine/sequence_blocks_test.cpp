// Blocks of sequences that leave a context and come back, as they do by way of a disk.
#include <gtest/gtest.h>

#include <algorithm>

#include "llm/engine/sequences.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kBlock = 16;

/// What decides on the form of a block's state.
struct Form {
    const char* name;
    ggml_type type = GGML_TYPE_F16;
    llama_flash_attn_type attention = LLAMA_FLASH_ATTN_TYPE_ENABLED;
};

class SequenceBlocks : public testing::TestWithParam<Form> {
protected:
    struct Free {
        void operator()(llama_context* held) const { llama_free(held); }
    };
    /// A context with its sequences.
    struct Memory {
        std::unique_ptr<llama_context, Free> context;
        std::optional<Sequences> sequences;
    };

    Memory make(std::size_t ram_bytes = 0) const {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 256;
        params.n_seq_max = 4;
        params.n_threads = params.n_threads_batch = 1;
        params.kv_unified = true;
        params.type_k = params.type_v = GetParam().type;
        params.flash_attn_type = GetParam().attention;
        Memory memory;
        memory.context.reset(llama_init_from_model(model->get(), params));
        memory.sequences.emplace(memory.context.get(), true, ram_bytes, kBlock);
        return memory;
    }
    Tokens story(std::size_t size, llama_token begin = 100) const {
        std::string text;
        for (int i = 0; i < 200; ++i) text += " a" + std::to_string(i * 7 % 10);
        Tokens tokens = model->tokenize(text, false, false);
        tokens.resize(size);
        tokens.front() = begin;
        return tokens;
    }
    llama_token read(Memory& memory, Sequences::Id id, const Tokens& tokens) const {
        const std::size_t begin = memory.sequences->size(id);
        llama_batch batch = llama_batch_init(static_cast<int>(tokens.size()), 0, 1);
        for (std::size_t i = begin; i < tokens.size(); ++i) {
            const int entry = batch.n_tokens++;
            batch.token[entry] = tokens[i];
            batch.pos[entry] = static_cast<llama_pos>(i);
            batch.n_seq_id[entry] = 1;
            batch.seq_id[entry][0] = id;
            batch.logits[entry] = i + 1 == tokens.size();
        }
        EXPECT_EQ(llama_decode(memory.context.get(), batch), 0);
        llama_batch_free(batch);
        memory.sequences->append(id, tokens.data() + begin, tokens.size() - begin);
        const float* logits = llama_get_logits_ith(memory.context.get(), -1);
        return static_cast<llama_token>(std::max_element(logits, logits + model->vocabulary_size()) - logits);
    }
    static Sequences::Id acquire(Memory& memory, const Tokens& tokens, bool lasting = true) {
        const auto place = memory.sequences->acquire(tokens, true, 0, lasting);
        EXPECT_TRUE(place);
        return place ? place->id : -1;
    }
    static std::vector<std::uint8_t> state_of(Memory& memory, const Sequences::Block& block) {
        const Result<AlignedBuffer> state = memory.sequences->read_block(block);
        EXPECT_TRUE(state.ok());
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(state.value().data());
        return {bytes, bytes + state.value().bytes()};
    }
    static Sequences::Appended append(Memory& memory, const Sequences::Block& block, const Tokens& tokens,
                                      const std::vector<std::uint8_t>& state) {
        return memory.sequences->append_block(block, tokens.data() + block.index * kBlock,
                                              std::as_bytes(std::span(state)));
    }

    std::shared_ptr<const Model> model = [] {
        auto loaded = Model::load(tiny_model(), {});
        if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
        return loaded.value();
    }();
};

TEST_P(SequenceBlocks, AreTheSameInAnotherContext) {
    Memory one = make(), other = make();
    const Tokens text = story(5 * kBlock + 3);
    const auto source = acquire(one, text);
    const llama_token next = read(one, source, text);
    // Its cells lie elsewhere there, and not in a row.
    const auto first = acquire(other, story(30, 101));
    read(other, first, story(30, 101));
    const auto gap = acquire(other, story(20, 102)), target = acquire(other, text);
    read(other, gap, story(20, 102));
    other.sequences->release(first, false);
    for (std::size_t i = 0; i < 5; ++i) {
        const auto state = state_of(one, {source, i});
        ASSERT_EQ(append(other, {target, i}, text, state), Sequences::Appended::done) << i;
        EXPECT_EQ(state_of(other, {target, i}).size(), state.size());
    }
    EXPECT_EQ(other.sequences->size(target), 5 * kBlock);
    EXPECT_EQ(other.sequences->tokens(target), Tokens(text.begin(), text.begin() + 5 * kBlock));
    EXPECT_EQ(read(other, target, text), next);
    EXPECT_EQ(one.sequences->size(source), text.size()) << "reading blocks changes nothing";
}

TEST_P(SequenceBlocks, TakeTheirCellsAndGiveThemBack) {
    Memory one = make(), other = make();
    const std::size_t cells = other.sequences->room();
    const Tokens text = story(2 * kBlock + 1);
    const auto source = acquire(one, text), target = acquire(other, text);
    read(one, source, text);
    for (std::size_t i = 0; i < 2; ++i) append(other, {target, i}, text, state_of(one, {source, i}));
    EXPECT_EQ(other.sequences->room(), cells - 2 * kBlock);
    other.sequences->release(target, false);
    EXPECT_EQ(other.sequences->room(), cells);
    EXPECT_EQ(llama_memory_seq_pos_max(llama_get_memory(other.context.get()), 3), -1)
        << "nothing is left apart";
}

TEST_P(SequenceBlocks, TakeThePlaceOfWhatIsBehindThem) {
    Memory one = make(), other = make();
    const Tokens text = story(3 * kBlock);
    const auto source = acquire(one, text), target = acquire(other, text);
    read(one, source, text);
    const Tokens begun(text.begin(), text.begin() + kBlock + 5);
    read(other, target, begun);
    EXPECT_EQ(append(other, {target, 2}, text, state_of(one, {source, 2})), Sequences::Appended::refused)
        << "the one before it is not there";
    EXPECT_EQ(other.sequences->size(target), begun.size());
    EXPECT_EQ(append(other, {target, 1}, text, state_of(one, {source, 1})), Sequences::Appended::done);
    EXPECT_EQ(other.sequences->size(target), 2 * kBlock);
}

TEST_P(SequenceBlocks, ThatAreNoStateOrAnotherBlocksAreRefused) {
    Memory one = make(), other = make();
    const std::size_t cells = other.sequences->room();
    const Tokens text = story(3 * kBlock);
    const auto source = acquire(one, text), target = acquire(other, text);
    read(one, source, text);
    const auto sound = state_of(one, {source, 0});
    auto cut = sound, damaged = sound;
    cut.resize(sound.size() / 2);
    damaged[0] ^= 0xff;
    for (const auto& state : {std::vector<std::uint8_t>(), cut, damaged, state_of(one, {source, 1})})
        EXPECT_EQ(append(other, {target, 0}, text, state), Sequences::Appended::refused);
    EXPECT_EQ(other.sequences->room(), cells);
    EXPECT_EQ(append(other, {target, 0}, text, sound), Sequences::Appended::done);
}

TEST_P(SequenceBlocks, FindRoomWhereOthersAreIdleOnly) {
    Memory one = make(), other = make();
    const Tokens text = story(2 * kBlock), long_text = story(250, 103);
    const auto source = acquire(one, text);
    read(one, source, text);
    const auto state = state_of(one, {source, 0});
    const auto busy = acquire(other, long_text);
    read(other, busy, long_text);
    const auto target = acquire(other, text);
    EXPECT_EQ(append(other, {target, 0}, text, state), Sequences::Appended::no_room);
    other.sequences->release(busy, true);
    EXPECT_EQ(append(other, {target, 0}, text, state), Sequences::Appended::done);
}

TEST_P(SequenceBlocks, AreOfferedInTheirOrderUntilTheyAreNoted) {
    Memory memory = make();
    const Tokens text = story(2 * kBlock + 5);
    const auto id = acquire(memory, text);
    EXPECT_FALSE(memory.sequences->next_block());
    read(memory, id, text);
    for (std::size_t i = 0; i < 2; ++i) {
        const auto block = memory.sequences->next_block();
        ASSERT_TRUE(block);
        EXPECT_EQ(block->id, id);
        EXPECT_EQ(block->index, i);
        memory.sequences->note_stored(id, i + 1);
    }
    EXPECT_FALSE(memory.sequences->next_block());
    const auto shared = acquire(memory, text);
    EXPECT_NE(shared, id);
    EXPECT_FALSE(memory.sequences->next_block()) << "what is shared is stored, too";
    memory.sequences->truncate(id, kBlock + 1);
    read(memory, id, text);
    EXPECT_EQ(memory.sequences->next_block()->index, 1u) << "it may be another one now";
    memory.sequences->forget_stored();
    EXPECT_EQ(memory.sequences->next_block()->index, 0u);
}

TEST_P(SequenceBlocks, OfRequestsThatAreNotRememberedAreNotOffered) {
    Memory memory = make();
    const Tokens text = story(2 * kBlock);
    read(memory, acquire(memory, text, false), text);
    EXPECT_FALSE(memory.sequences->next_block());
}

TEST_P(SequenceBlocks, BehindTokensThatWereDroppedAreNotOffered) {
    Memory memory = make(1 << 20);
    if (!llama_memory_can_shift(llama_get_memory(memory.context.get())))
        GTEST_SKIP() << "the memory of this model cannot be shifted";
    const Tokens text = story(6 * kBlock);
    const auto id = acquire(memory, text);
    read(memory, id, text);
    ASSERT_TRUE(memory.sequences->shift(id, kBlock + 4, kBlock));
    const Tokens left = memory.sequences->tokens(id);
    const auto offered = [&] {
        std::size_t count = 0;
        for (; const auto block = memory.sequences->next_block(); ++count)
            memory.sequences->note_stored(block->id, block->index + 1);
        return count;
    };
    EXPECT_EQ(offered(), 1u);
    // Nor after they were away in RAM.
    memory.sequences->release(id, true);
    ASSERT_TRUE(memory.sequences->evict_one());
    Tokens longer = left;
    longer.push_back(5);
    const auto again = acquire(memory, longer);
    ASSERT_EQ(memory.sequences->size(again), left.size());
    EXPECT_EQ(offered(), 1u);
    // What is read anew from there on is sound.
    memory.sequences->truncate(again, kBlock);
    read(memory, again, longer);
    EXPECT_EQ(offered(), longer.size() / kBlock - 1);
}

INSTANTIATE_TEST_SUITE_P(Forms, SequenceBlocks,
                         testing::Values(Form{"half_floats"}, Form{"eight_bits", GGML_TYPE_Q8_0},
                                         Form{"transposed_values", GGML_TYPE_F16,
                                              LLAMA_FLASH_ATTN_TYPE_DISABLED}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace::llm
