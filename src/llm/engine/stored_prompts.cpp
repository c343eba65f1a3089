#include "llm/engine/stored_prompts.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/log.h"

namespace headrace::llm {
namespace {

constexpr int kMostPending = 4;             // blocks that wait for the disk, in memory
constexpr std::size_t kMostAhead = 8;       // blocks that wait for the loop
constexpr std::size_t kWorthFetching = 32;  // tokens: fewer are computed as fast
constexpr std::size_t kMostKnown = 1 << 16;
constexpr int kLooksAgain = 8;  // prompts, until a disk that was too slow is tried again
constexpr auto kRetry = std::chrono::seconds(30);
constexpr auto kLeastPatience = std::chrono::seconds(2);
constexpr auto kMostPatience = std::chrono::seconds(30);
constexpr double kNewest = 0.3;  // of the latest time in an average

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void average_in(std::atomic<double>& average, double ms) {
    const double before = average;
    average = before == 0 ? ms : before + kNewest * (ms - before);
}

}  // namespace

/// Blocks on their way from the disk to a stream.
struct StoredPrompts::Delivery {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<BlockFolder::Block> blocks;
    bool is_complete = false, is_cancelled = false;

    void cancel() {
        const std::lock_guard lock(mutex);
        is_cancelled = true;
        changed.notify_all();
    }
    /// Waits while the loop has enough. False: it wants no more.
    bool put(BlockFolder::Block block) {
        std::unique_lock lock(mutex);
        blocks.push_back(std::move(block));
        changed.wait(lock, [&] { return is_cancelled || blocks.size() < kMostAhead; });
        return !is_cancelled;
    }
    /// The next block; none where none has come yet. complete: none will.
    std::optional<BlockFolder::Block> take(bool& complete) {
        const std::lock_guard lock(mutex);
        complete = is_complete && blocks.empty();
        if (blocks.empty()) return std::nullopt;
        BlockFolder::Block block = std::move(blocks.front());
        blocks.pop_front();
        changed.notify_all();
        return block;
    }
};

/// What the threads tell the loop.
struct StoredPrompts::Results {
    std::atomic<double> read_ms = 0, append_ms = 0;  // of a block
    std::atomic<int> pending = 0;                    // blocks to write
    std::mutex mutex;
    std::vector<ContentHash> written;
    std::optional<Error> write_error, read_error;
};

StoredPrompts::StoredPrompts(BlockStore store, Sequences& sequences, EngineStatistics& counters,
                             std::function<void()> wake)
    : store_(std::move(store)),
      sequences_(sequences),
      counters_(counters),
      wake_(std::move(wake)),
      results_(std::make_shared<Results>()),
      writes_(!store_.folder->is_read_only()) {
    if (store_.problem) note_problem(*store_.problem, Clock::now());
}

StoredPrompts::~StoredPrompts() {
    for (const Fetch& fetch : fetches_) fetch.delivery->cancel();
}

BlockOrigin StoredPrompts::origin_of(std::uint64_t variant) {
    variants_.insert(variant);
    return {store_.model, variant, store_.block_size};
}

/// Time to compute a block's tokens, from the prompts so far; 0 where there were none.
double StoredPrompts::compute_ms() const {
    if (counters_.prompt_tokens < store_.block_size) return 0;
    return counters_.prompt_ms / static_cast<double>(counters_.prompt_tokens) *
           static_cast<double>(store_.block_size);
}

void StoredPrompts::fetch(std::vector<Stream*>& active, Clock::time_point now) {
    std::erase_if(fetches_, [&](const Fetch& fetch) {
        const bool goes_on = std::ranges::any_of(active, [&](const Stream* stream) {
            return stream->generation->id() == fetch.stream && stream->sequence == fetch.sequence;
        });
        if (!goes_on) fetch.delivery->cancel();  // its stream was paused, or has ended
        return !goes_on;
    });
    for (Stream* stream : active) {
        if (stream->is_fetched) continue;
        const auto fetch = std::ranges::find(fetches_, stream->generation->id(), &Fetch::stream);
        if (fetch == fetches_.end()) {
            if (!waits_for_fetch(*stream, active)) stream->is_fetched = !begin(*stream, now);
        } else if (!go_on(*fetch, *stream, now)) {
            stream->is_fetched = true;
            fetches_.erase(fetch);
        }
    }
    std::erase_if(active, [](const Stream* stream) { return !stream->is_fetched; });
}

/// Whether another stream fetches what both begin with: it will be shared.
bool StoredPrompts::waits_for_fetch(const Stream& stream, const std::vector<Stream*>& active) const {
    return std::ranges::any_of(fetches_, [&](const Fetch& fetch) {
        const auto other = std::ranges::find_if(
            active, [&](const Stream* one) { return one->generation->id() == fetch.stream; });
        return other != active.end() && stream.shares && (*other)->variant == stream.variant &&
               common_prefix((*other)->tokens, stream.tokens) >= stream.decoded + store_.block_size;
    });
}

/// Whether what is stored of a prompt is being looked for.
bool StoredPrompts::begin(Stream& stream, Clock::time_point now) {
    if (!reads_ || !stream.shares || stream.has_images() || stream.pending() <= 1) return false;
    stream.decoded = static_cast<std::size_t>(sequences_.extend(*stream.sequence, stream.tokens));
    const std::size_t size = store_.block_size;
    // The last token is left to be computed.
    const std::size_t whole = (stream.tokens.size() - 1) / size, first = stream.decoded / size;
    Tokens tokens(stream.tokens.begin(), stream.tokens.begin() + static_cast<std::ptrdiff_t>(whole * size));
    const BlockOrigin origin = origin_of(stream.variant);
    std::vector<BlockKey> keys = block_keys(origin, tokens);
    if (whole * size < stream.decoded + kWorthFetching || !is_worth_reading()) {
        if (first > 0)  // used, all the same
            writer_.post([folder = store_.folder, keys = std::move(keys), first] {
                folder->touch(std::span(keys).first(std::min(first, keys.size())));
            });
        return false;
    }
    const double expected = compute_ms() * static_cast<double>(whole - first);
    const auto patience = std::clamp<Clock::duration>(
        std::chrono::microseconds(static_cast<std::int64_t>(expected * 1000)), kLeastPatience, kMostPatience);
    const auto delivery = std::make_shared<Delivery>();
    fetches_.push_back({stream.generation->id(), *stream.sequence, first, now + patience, delivery});
    reader_.post([folder = store_.folder, results = results_, wake = wake_, delivery, origin, first,
                  keys = std::move(keys), tokens = std::move(tokens), known_ms = compute_ms()] {
        double compute_ms = known_ms;
        std::size_t i = first;
        for (bool wanted = true; wanted && i < keys.size(); ++i) {
            const auto begin = Clock::now();
            Result<BlockFolder::Block> block =
                folder->read(keys[i], origin, std::span(tokens).first((i + 1) * origin.size));
            if (!block.ok()) {
                const std::lock_guard lock(results->mutex);
                if (block.error().code != Code::not_found) results->read_error = block.error();
                break;
            }
            average_in(results->read_ms, ms_since(begin));
            if (compute_ms == 0) compute_ms = block.value().stored.compute_ms;
            const bool slow = compute_ms > 0 && results->read_ms + results->append_ms > compute_ms;
            wake();
            wanted = delivery->put(std::move(block).value()) && !slow;
            wake();
        }
        {
            const std::lock_guard lock(delivery->mutex);
            delivery->is_complete = true;
        }
        wake();
        if (i > 0) folder->touch(std::span(keys).first(i));
    });
    return true;
}

/// Whether a block comes from the disk sooner than it is computed, by what both took before. What takes long
/// once, on a disk that was busy or cold, is measured again now and then.
bool StoredPrompts::is_worth_reading() {
    const double compute = compute_ms(), read = results_->read_ms + results_->append_ms;
    if (compute == 0 || read == 0 || read < compute) {
        left_out_ = 0;
        return true;
    }
    return ++left_out_ % kLooksAgain == 0;
}

/// Whether more is to come.
bool StoredPrompts::go_on(Fetch& fetch, Stream& stream, Clock::time_point now) {
    bool is_complete = false;
    while (const std::optional<BlockFolder::Block> block = fetch.delivery->take(is_complete)) {
        const auto begin = Clock::now();
        const llama_token* tokens = stream.tokens.data() + fetch.next * store_.block_size;
        const auto appended =
            sequences_.append_block({fetch.sequence, fetch.next}, tokens, block->stored.state);
        const std::size_t before = std::exchange(stream.decoded, sequences_.size(fetch.sequence));
        if (appended != Sequences::Appended::done) {
            if (appended == Sequences::Appended::refused) {
                reads_ = false;
                ++counters_.disk_failures;
                HR_LOG(warn, {},
                       "cache_dir: llama.cpp refuses what was stored; prompts are computed from now on");
            }
            fetch.delivery->cancel();
            return false;
        }
        average_in(results_->append_ms, ms_since(begin));
        counters_.disk_cached_tokens += stream.decoded - std::min(before, stream.decoded);
        ++fetch.next;
    }
    if (!is_complete && now < fetch.deadline) return true;
    fetch.delivery->cancel();
    return false;
}

bool StoredPrompts::store_next(Clock::time_point now) {
    take_results(now);
    if (!writes_ || now < retry_ || results_->pending >= kMostPending) return false;
    const std::optional<Sequences::Block> block = sequences_.next_block();
    if (!block) return false;
    sequences_.note_stored(block->id, block->index + 1);
    try {
        write(*block);
    } catch (const std::bad_alloc&) {
        note_problem(failure(Code::out_of_memory, "there is no memory for a block"), now);
    }
    return true;
}

void StoredPrompts::write(const Sequences::Block& block) {
    const Tokens& all = sequences_.tokens(block.id);
    Tokens tokens(all.begin(),
                  all.begin() + static_cast<std::ptrdiff_t>((block.index + 1) * store_.block_size));
    const BlockOrigin origin = origin_of(sequences_.variant(block.id));
    std::vector<BlockKey> keys = block_keys(origin, tokens);
    if (written_.contains(keys.back().hash)) return;
    Result<AlignedBuffer> read = sequences_.read_block(block);
    if (!read.ok()) return note_problem(read.error(), Clock::now());
    const auto state = std::make_shared<const AlignedBuffer>(std::move(read).value());
    ++results_->pending;
    writer_.post([folder = store_.folder, results = results_, wake = wake_, origin, state,
                  keys = std::move(keys), tokens = std::move(tokens), ms = compute_ms()] {
        const Status written = folder->write(keys, origin, tokens, {{state->data(), state->bytes()}, ms});
        {
            const std::lock_guard lock(results->mutex);
            if (written.ok())
                results->written.push_back(keys.back().hash);
            else
                results->write_error = written.error();
        }
        --results->pending;
        wake();
    });
}

void StoredPrompts::take_results(Clock::time_point now) {
    std::vector<ContentHash> written;
    std::optional<Error> write_error, read_error;
    {
        const std::lock_guard lock(results_->mutex);
        written.swap(results_->written);
        write_error.swap(results_->write_error);
        read_error.swap(results_->read_error);
    }
    counters_.disk_written_tokens += written.size() * store_.block_size;
    counters_.disk_cache_bytes = store_.folder->bytes();
    if (written_.size() > kMostKnown) written_.clear();
    written_.insert(written.begin(), written.end());
    if (write_error) note_problem(*write_error, now);
    if (!read_error) return;
    ++counters_.disk_failures;
    if (!std::exchange(has_warned_of_reading_, true))
        HR_LOG(warn, {}, "cache_dir: {}; what it holds is computed again. Later ones are only counted",
               read_error->message);
}

/// After a while everything is offered again, but for what is known to be there.
void StoredPrompts::note_problem(const Error& error, Clock::time_point now) {
    ++counters_.disk_failures;
    retry_ = now + kRetry;
    if (error.code == Code::unsupported) writes_ = false;
    sequences_.forget_stored();
    if (!std::exchange(has_warned_of_writing_, true))
        HR_LOG(warn, {}, "cache_dir: {}; prompts are not stored{}", error.message,
               writes_ ? ", and every 30 s it is tried again. Later errors are only counted" : "");
}

void StoredPrompts::store_all(std::chrono::milliseconds most) {
    const Clock::time_point end = Clock::now() + most;
    for (Clock::time_point now; (now = Clock::now()) < end;) {
        if (store_next(now)) continue;
        if (results_->pending == 0) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void StoredPrompts::forget(const Tokens& tokens) {
    written_.clear();
    for (const std::uint64_t variant : variants_)
        writer_.post(
            [folder = store_.folder, keys = block_keys({store_.model, variant, store_.block_size}, tokens)] {
                for (const BlockKey& key : keys) folder->remove(key);
            });
}

}  // namespace headrace::llm
