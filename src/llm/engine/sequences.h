#pragma once
#include <llama.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "llm/engine/prompt_file.h"
#include "llm/model/model.h"

namespace headrace::llm {

/// What a context's memory holds: per sequence the tokens whose keys and values are there. A finished
/// sequence stays, idle, until its place is needed: a prompt that starts like any sequence shares that part
/// of its memory.
class Sequences {
public:
    using Clock = std::chrono::steady_clock;
    using Id = llama_seq_id;

    /// divisible: see Model::memory_is_divisible. ram_bytes: of idle sequences that were moved out of the
    /// context. block_size: of the blocks of tokens that are stored elsewhere, too; 0: none are, else one of
    /// the context's sequences is kept apart to move them.
    Sequences(llama_context* context, bool divisible, std::size_t ram_bytes, std::size_t block_size = 0);

    struct Place {
        Id id;
        int tokens;  ///< of the prompt that are in memory already
    };
    /// A sequence for a prompt; none when all are busy. At least the last token is left to be decoded.
    /// Sequences share memory only with those of the same variant: what the memory was computed with, such as
    /// the scales of the adapters. lasting: blocks of it may be stored.
    std::optional<Place> acquire(const Tokens& prompt, bool reuse, std::uint64_t variant = 0,
                                 bool lasting = true);
    /// More of the prompt that another sequence has read meanwhile; returns the tokens in memory now.
    int extend(Id id, const Tokens& prompt);
    /// Adds tokens that were decoded.
    void append(Id id, const llama_token* tokens, std::size_t count);
    /// Drops everything from a position on, in memory too. False when the memory cannot be divided there: the
    /// whole sequence is empty then.
    bool truncate(Id id, std::size_t size);
    /// Drops tokens [from, from + count) and moves the later ones. False when the memory cannot do that.
    bool shift(Id id, std::size_t from, std::size_t count);
    /// keep: the sequence stays as an idle one.
    void release(Id id, bool keep);

    /// Frees the idle sequence that was used least recently; false when there is none.
    bool evict_one();
    void evict_older_than(Clock::time_point time);
    void evict_idle();

    /// The state of the sequence that has most of these tokens in common at their start, and what of it is
    /// not in common cut off. None where nothing is.
    std::optional<PromptState> state_of(const Tokens& tokens);
    /// Remembers a state as one that was moved out of the context. False where RAM has no room for it.
    bool remember(PromptState state);
    /// Forgets idle sequences, those that were moved out too, that begin with any of these tokens; returns
    /// how many tokens they had.
    std::size_t forget(const Tokens& tokens);

    /// A whole block of a sequence, by its number there, that has not been noted as stored.
    struct Block {
        Id id;
        std::size_t index;
    };
    std::optional<Block> next_block() const;
    /// That the first so many blocks of a sequence are stored, or are not to be.
    void note_stored(Id id, std::size_t blocks);
    /// Forgets what was noted: next_block begins again.
    void forget_stored();
    /// llama.cpp's state of a block alone. Errors: there is no memory for it; it gives none.
    Result<AlignedBuffer> read_block(const Block& block);
    enum class Appended { done, no_room, refused };
    /// Brings in a block that such a state is of, in place of what the sequence has from there on. Blocks
    /// come in their order. Idle sequences make room for it.
    Appended append_block(const Block& block, const llama_token* tokens, std::span<const std::byte> state);

    const Tokens& tokens(Id id) const { return entries_[id].tokens; }
    std::uint64_t variant(Id id) const { return entries_[id].variant; }
    std::size_t size(Id id) const { return entries_[id].tokens.size(); }
    std::size_t idle_count() const;
    std::size_t busy_count() const;
    std::size_t remembered_tokens() const;  ///< of idle sequences, shared ones counted each time
    std::size_t ram_bytes() const { return ram_used_; }
    /// Cells that are free; a token takes one, however many sequences share it.
    std::size_t room() const { return cell_count_ - cells_used_; }

private:
    struct Entry {
        Tokens tokens;
        bool busy = false, used = false;
        bool lasting = true;           ///< its blocks may be stored
        std::size_t stored = 0;        ///< blocks, from its start
        std::size_t exact = SIZE_MAX;  ///< tokens whose memory is of the tokens before them, and no others
        std::uint64_t variant = 0;
        std::vector<std::uint32_t> cells;  ///< of each token; see cell_users_
        Clock::time_point last_used{};
    };
    struct Saved : PromptState {
        Clock::time_point last_used;
        std::size_t exact;  ///< see Entry
    };
    std::optional<Id> free_id(std::optional<Id> spare);
    void clear(Id id);
    void save(Id id);
    std::optional<PromptState> read_state(Id id, std::size_t most_bytes) const;
    void keep(Saved saved);
    bool restore(Id id, const Tokens& prompt, std::size_t better_than);
    void share(Id from, Id to, std::size_t begin, std::size_t end);
    llama_pos position(const Entry& entry, std::size_t index) const;
    void take_cells(Entry& entry, std::size_t count);
    void give_back_cells(Entry& entry, std::size_t begin, std::size_t end);

    llama_context* context_;
    llama_memory_t memory_;
    bool divisible_;
    std::size_t block_size_;
    Id spare_;  // the sequence that moves blocks
    std::size_t ram_limit_, ram_used_ = 0;
    std::size_t cell_count_, cells_used_ = 0;
    std::vector<std::uint32_t> cell_users_,
        free_cells_;  // numbers of our own: which cells llama.cpp takes does not matter
    std::vector<Entry> entries_;
    std::list<Saved> saved_;  // the most recently used first
};

/// Tokens that two sequences have in common at their start, without an image that one of them has more of.
std::size_t common_prefix(const Tokens& a, const Tokens& b);

}  // namespace headrace::llm
