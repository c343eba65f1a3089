#include "llm/engine/sequences.h"

#include <algorithm>

namespace headrace::llm {
namespace {

/// Reading that few tokens again is cheaper than moving a state in from RAM.
constexpr std::size_t kWorthSaving = 32;

}  // namespace

std::size_t common_prefix(const Tokens& a, const Tokens& b) {
    const auto least = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    const auto size =
        static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + least, b.begin()).first - a.begin());
    return without_cut_image(a, without_cut_image(b, size));
}

Sequences::Sequences(llama_context* context, bool divisible, std::size_t ram_bytes, std::size_t block_size)
    : context_(context),
      memory_(llama_get_memory(context)),
      divisible_(divisible),
      block_size_(block_size),
      spare_(static_cast<Id>(llama_n_seq_max(context)) - 1),
      ram_limit_(ram_bytes),
      cell_count_(llama_n_ctx(context)),
      entries_(llama_n_seq_max(context) - (block_size > 0 ? 1 : 0)) {}

std::optional<Sequences::Place> Sequences::acquire(const Tokens& prompt, bool reuse, std::uint64_t variant,
                                                   bool lasting) {
    const std::size_t most = prompt.size() - 1;
    Id best = -1;
    std::size_t best_size = 0;
    if (reuse) {
        for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id) {
            const Entry& entry = entries_[id];
            if (!entry.used || entry.variant != variant) continue;
            const std::size_t size = std::min(common_prefix(entry.tokens, prompt), most);
            const bool whole = !entry.busy && size == entry.tokens.size();
            if (!divisible_ && !whole) continue;
            if (size > best_size || (size == best_size && size > 0 && whole)) best = id, best_size = size;
        }
    }
    // A sequence that the prompt merely continues is taken as it is: nothing of it is lost.
    if (best >= 0 && !entries_[best].busy && best_size == entries_[best].tokens.size()) {
        entries_[best].busy = true;
        entries_[best].lasting &= lasting;
        return Place{best, static_cast<int>(best_size)};
    }
    const std::optional<Id> id = free_id(best >= 0 ? std::optional(best) : std::nullopt);
    if (!id) return std::nullopt;
    Entry& entry = entries_[*id];
    if (*id == best) {
        save(*id);
        truncate(*id, best_size);
    } else {
        clear(*id);
        entry.variant = variant;
        if (best >= 0 && best_size > 0) share(best, *id, 0, best_size);
    }
    if (reuse) restore(*id, prompt, entry.tokens.size());
    entry.used = entry.busy = true;
    entry.lasting = lasting;
    entry.variant = variant;  // a restore that found no room has cleared it
    return Place{*id, static_cast<int>(entry.tokens.size())};
}

/// An empty sequence's id, or that of the idle one used least recently; spare only as the last resort.
std::optional<Sequences::Id> Sequences::free_id(std::optional<Id> spare) {
    std::optional<Id> oldest;
    for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id) {
        if (!entries_[id].used) return id;
        if (entries_[id].busy || id == spare) continue;
        if (!oldest || entries_[id].last_used < entries_[*oldest].last_used) oldest = id;
    }
    if (oldest) {
        save(*oldest);
        return oldest;
    }
    return spare && !entries_[*spare].busy ? spare : std::nullopt;
}

int Sequences::extend(Id id, const Tokens& prompt) {
    Entry& own = entries_[id];
    if (!divisible_) return static_cast<int>(own.tokens.size());
    const std::size_t most = prompt.size() - 1;
    // An image that was read in part is taken whole: its tokens may have one position.
    const std::size_t begin = without_cut_image(prompt, own.tokens.size());
    for (Id other = 0; other < static_cast<Id>(entries_.size()); ++other) {
        if (other == id || !entries_[other].used || entries_[other].variant != own.variant ||
            entries_[other].tokens.size() <= own.tokens.size())
            continue;
        const std::size_t size = std::min(common_prefix(entries_[other].tokens, prompt), most);
        if (size <= own.tokens.size()) continue;
        if (own.tokens.size() > begin) truncate(id, begin);
        share(other, id, own.tokens.size(), size);
    }
    return static_cast<int>(own.tokens.size());
}

void Sequences::share(Id from, Id to, std::size_t begin, std::size_t end) {
    Entry &source = entries_[from], &target = entries_[to];
    llama_memory_seq_cp(memory_, from, to, position(source, begin), position(source, end));
    target.tokens.insert(target.tokens.end(), source.tokens.begin() + begin, source.tokens.begin() + end);
    target.cells.insert(target.cells.end(), source.cells.begin() + begin, source.cells.begin() + end);
    for (std::size_t i = begin; i < end; ++i) ++cell_users_[source.cells[i]];
    if (block_size_ > 0 && target.stored >= begin / block_size_)
        target.stored = std::max(target.stored, std::min(source.stored, end / block_size_));
    if (end > source.exact) target.exact = std::min(target.exact, source.exact);
}

void Sequences::append(Id id, const llama_token* tokens, std::size_t count) {
    entries_[id].tokens.insert(entries_[id].tokens.end(), tokens, tokens + count);
    take_cells(entries_[id], count);
}

void Sequences::take_cells(Entry& entry, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (free_cells_.empty()) {
            free_cells_.push_back(static_cast<std::uint32_t>(cell_users_.size()));
            cell_users_.push_back(0);
        }
        cell_users_[free_cells_.back()] = 1;
        entry.cells.push_back(free_cells_.back());
        free_cells_.pop_back();
    }
    cells_used_ += count;
}

void Sequences::give_back_cells(Entry& entry, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        if (--cell_users_[entry.cells[i]] > 0) continue;
        free_cells_.push_back(entry.cells[i]);
        --cells_used_;
    }
    entry.cells.erase(entry.cells.begin() + static_cast<std::ptrdiff_t>(begin),
                      entry.cells.begin() + static_cast<std::ptrdiff_t>(end));
}

llama_pos Sequences::position(const Entry& entry, std::size_t index) const {
    return static_cast<llama_pos>(position_of(entry.tokens, index));
}

bool Sequences::truncate(Id id, std::size_t size) {
    Entry& entry = entries_[id];
    size = without_cut_image(entry.tokens, size);
    // More than the tokens listed may be in memory: rejected drafts, a step that was broken off.
    if (!llama_memory_seq_rm(memory_, id, position(entry, size), -1)) {
        clear(id);
        return false;
    }
    if (entry.tokens.size() > size) {
        entry.tokens.resize(size);
        give_back_cells(entry, size, entry.cells.size());
    }
    if (block_size_ > 0) entry.stored = std::min(entry.stored, size / block_size_);
    if (size <= entry.exact) entry.exact = SIZE_MAX;
    return true;
}

bool Sequences::shift(Id id, std::size_t from, std::size_t count) {
    Entry& entry = entries_[id];
    if (from + count > entry.cells.size())
        return false;  // it gave its place away, and was not read again yet
    // Moving a cell moves it for every sequence that shares it.
    const bool shared =
        std::any_of(entry.cells.begin() + static_cast<std::ptrdiff_t>(from + count), entry.cells.end(),
                    [&](std::uint32_t cell) { return cell_users_[cell] > 1; });
    if (shared || has_images(entry.tokens) || !llama_memory_can_shift(memory_)) return false;
    const auto begin = static_cast<llama_pos>(from), end = static_cast<llama_pos>(from + count);
    if (!llama_memory_seq_rm(memory_, id, begin, end)) return false;
    llama_memory_seq_add(memory_, id, end, -1, -static_cast<llama_pos>(count));
    entry.tokens.erase(entry.tokens.begin() + from, entry.tokens.begin() + from + count);
    give_back_cells(entry, from, from + count);
    entry.exact = std::min(entry.exact, from);  // the rest was computed behind tokens that are gone
    return true;
}

void Sequences::release(Id id, bool keep) {
    Entry& entry = entries_[id];
    if (!keep || entry.tokens.empty()) return clear(id);
    entry.busy = false;
    entry.last_used = Clock::now();
}

void Sequences::clear(Id id) {
    llama_memory_seq_rm(memory_, id, -1, -1);
    give_back_cells(entries_[id], 0, entries_[id].cells.size());
    entries_[id] = {};
}

bool Sequences::evict_one() {
    Id oldest = -1;
    for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id)
        if (entries_[id].used && !entries_[id].busy &&
            (oldest < 0 || entries_[id].last_used < entries_[oldest].last_used))
            oldest = id;
    if (oldest < 0) return false;
    save(oldest);
    clear(oldest);
    return true;
}

void Sequences::evict_older_than(Clock::time_point time) {
    for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id)
        if (entries_[id].used && !entries_[id].busy && entries_[id].last_used < time) clear(id);
    for (auto saved = saved_.begin(); saved != saved_.end();) {
        const bool old = saved->last_used < time;
        if (old) ram_used_ -= saved->bytes.size();
        saved = old ? saved_.erase(saved) : std::next(saved);
    }
}

void Sequences::evict_idle() { evict_older_than(Clock::time_point::max()); }

void Sequences::save(Id id) {
    Entry& entry = entries_[id];
    if (ram_limit_ == 0 || entry.tokens.size() < kWorthSaving) return;
    for (const Saved& saved : saved_)
        if (saved.variant == entry.variant &&
            common_prefix(saved.tokens, entry.tokens) == entry.tokens.size())
            return;
    if (std::optional<PromptState> state = read_state(id, ram_limit_))
        keep({*std::move(state), entry.last_used, entry.exact});
}

/// The state of a sequence; none where it has more bytes than that, or llama.cpp gives none.
std::optional<PromptState> Sequences::read_state(Id id, std::size_t most_bytes) const {
    const std::size_t bytes = llama_state_seq_get_size(context_, id);
    if (bytes == 0 || bytes > most_bytes) return std::nullopt;
    PromptState state{entries_[id].tokens, entries_[id].variant, std::vector<std::uint8_t>(bytes)};
    if (llama_state_seq_get_data(context_, state.bytes.data(), bytes, id) != bytes) return std::nullopt;
    return state;
}

void Sequences::keep(Saved saved) {
    ram_used_ += saved.bytes.size();
    saved_.push_front(std::move(saved));
    while (ram_used_ > ram_limit_) {
        ram_used_ -= saved_.back().bytes.size();
        saved_.pop_back();
    }
}

bool Sequences::restore(Id id, const Tokens& prompt, std::size_t better_than) {
    auto best = saved_.end();
    std::size_t best_size = better_than + kWorthSaving;
    for (auto saved = saved_.begin(); saved != saved_.end(); ++saved) {
        const std::size_t size = std::min(common_prefix(saved->tokens, prompt), prompt.size() - 1);
        if (saved->variant != entries_[id].variant) continue;
        if (size >= best_size && (divisible_ || size == saved->tokens.size())) best = saved, best_size = size;
    }
    if (best == saved_.end()) return false;
    Entry& entry = entries_[id];
    clear(id);
    // Apart from the others while those that give way are saved, too.
    Saved saved = std::move(*best);
    saved_.erase(best);
    ram_used_ -= saved.bytes.size();
    bool fits = false;
    do {
        fits = room() >= saved.tokens.size() &&  // or else llama.cpp calls it an error in the log
               llama_state_seq_set_data(context_, saved.bytes.data(), saved.bytes.size(), id) != 0;
        if (!fits) llama_memory_seq_rm(memory_, id, -1, -1);
    } while (!fits && evict_one());
    if (fits) {
        entry.variant = saved.variant;
        entry.used = true;
        entry.tokens = saved.tokens;
        entry.exact = saved.exact;
        take_cells(entry, entry.tokens.size());
        saved.last_used = Clock::now();
    }
    keep(std::move(saved));
    return fits && truncate(id, best_size);
}

std::optional<Sequences::Block> Sequences::next_block() const {
    for (Id id = 0; block_size_ > 0 && id < static_cast<Id>(entries_.size()); ++id) {
        const Entry& entry = entries_[id];
        const std::size_t whole = std::min(entry.tokens.size(), entry.exact) / block_size_;
        if (entry.used && entry.lasting && whole > entry.stored) return Block{id, entry.stored};
    }
    return std::nullopt;
}

void Sequences::note_stored(Id id, std::size_t blocks) {
    entries_[id].stored = std::max(entries_[id].stored, blocks);
}

void Sequences::forget_stored() {
    for (Entry& entry : entries_) entry.stored = 0;
}

Result<AlignedBuffer> Sequences::read_block(const Block& block) {
    const auto begin = static_cast<llama_pos>(block.index * block_size_);
    llama_memory_seq_cp(memory_, block.id, spare_, begin, begin + static_cast<llama_pos>(block_size_));
    const std::size_t bytes = llama_state_seq_get_size(context_, spare_);
    Result<AlignedBuffer> state = AlignedBuffer::allocate(bytes, "a block of a prompt");
    if (state.ok()) {
        auto* data = reinterpret_cast<std::uint8_t*>(state.value().data());
        if (bytes == 0 || llama_state_seq_get_data(context_, data, bytes, spare_) != bytes)
            state = unsupported("llama.cpp gives no state of this model");
    }
    llama_memory_seq_rm(memory_, spare_, -1, -1);
    return state;
}

Sequences::Appended Sequences::append_block(const Block& block, const llama_token* tokens,
                                            std::span<const std::byte> state) {
    Entry& entry = entries_[block.id];
    const std::size_t begin = block.index * block_size_, end = begin + block_size_;
    if (begin > entry.tokens.size() || !truncate(block.id, begin)) return Appended::refused;
    while (room() < block_size_)
        if (!evict_one()) return Appended::no_room;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(state.data());
    const bool fits = llama_state_seq_set_data(context_, bytes, state.size(), spare_) != 0 &&
                      llama_memory_seq_pos_min(memory_, spare_) == static_cast<llama_pos>(begin) &&
                      llama_memory_seq_pos_max(memory_, spare_) == static_cast<llama_pos>(end) - 1;
    if (fits)
        llama_memory_seq_cp(memory_, spare_, block.id, static_cast<llama_pos>(begin),
                            static_cast<llama_pos>(end));
    llama_memory_seq_rm(memory_, spare_, -1, -1);
    if (!fits) return Appended::refused;
    append(block.id, tokens, block_size_);
    note_stored(block.id, block.index + 1);
    return Appended::done;
}

std::optional<PromptState> Sequences::state_of(const Tokens& tokens) {
    std::optional<PromptState> best;
    std::size_t most = 0;
    for (const Saved& saved : saved_)
        if (const std::size_t size = common_prefix(saved.tokens, tokens); size > most) {
            most = size;
            best = saved;
        }
    for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id) {
        const Entry& entry = entries_[id];
        const std::size_t size = entry.used ? common_prefix(entry.tokens, tokens) : 0;
        if (size <= most) continue;
        if (std::optional<PromptState> state = read_state(id, SIZE_MAX)) {
            most = size;
            best = std::move(state);
        }
    }
    return best;
}

bool Sequences::remember(PromptState state) {
    if (state.bytes.size() > ram_limit_) return false;
    keep({std::move(state), Clock::now(), 0});  // a file does not tell
    return true;
}

std::size_t Sequences::forget(const Tokens& tokens) {
    const auto begins_alike = [&](const Tokens& other) { return common_prefix(other, tokens) > 1; };
    std::size_t forgotten = 0;
    for (Id id = 0; id < static_cast<Id>(entries_.size()); ++id) {
        const Entry& entry = entries_[id];
        if (!entry.used || entry.busy || !begins_alike(entry.tokens)) continue;
        forgotten += entry.tokens.size();
        clear(id);
    }
    for (auto saved = saved_.begin(); saved != saved_.end();) {
        if (!begins_alike(saved->tokens)) {
            ++saved;
            continue;
        }
        forgotten += saved->tokens.size();
        ram_used_ -= saved->bytes.size();
        saved = saved_.erase(saved);
    }
    return forgotten;
}

std::size_t Sequences::idle_count() const {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.used && !e.busy; }));
}

std::size_t Sequences::busy_count() const {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.busy; }));
}

std::size_t Sequences::remembered_tokens() const {
    std::size_t tokens = 0;
    for (const Entry& entry : entries_)
        if (entry.used && !entry.busy) tokens += entry.tokens.size();
    return tokens;
}

}  // namespace headrace::llm
