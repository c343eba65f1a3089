#include "llm/engine/drafts.h"

#include <algorithm>

#include "base/hash_step.h"

namespace headrace::llm {
namespace {

std::uint64_t hash_of(const llama_token* tokens, int count) {
    std::uint64_t hash = kHashStart;
    for (int i = 0; i < count; ++i) hash = hash_step(hash, static_cast<std::uint64_t>(tokens[i]));
    return hash;
}

}  // namespace

Tokens Drafts::propose(const Tokens& history, int most) {
    const auto n = static_cast<std::size_t>(settings_.ngram_size);
    if (!settings_.enabled || history.size() < n + 1) return {};
    // The last n-gram is left out until a token follows it.
    for (indexed_ = std::max(indexed_, n); indexed_ < history.size(); ++indexed_)
        places_[hash_of(history.data() + indexed_ - n, settings_.ngram_size)] = indexed_;
    most = wanted(most);
    if (most < 1) return {};
    const llama_token* last = history.data() + history.size() - n;
    const auto found = places_.find(hash_of(last, settings_.ngram_size));
    if (found == places_.end()) return {};
    std::size_t place = found->second;
    if (place >= history.size() || !std::equal(last, last + n, history.data() + place - n)) return {};
    // What repeats with a short period may be continued beyond the history's end.
    Tokens draft;
    const std::size_t period = history.size() - place;
    for (std::size_t i = 0; i < static_cast<std::size_t>(most); ++i)
        draft.push_back(history[place + i % period]);
    return draft;
}

int Drafts::wanted(int most) {
    if (pause_ > 0) {
        --pause_;
        return 0;
    }
    return std::min({most, settings_.n_max, length_});
}

void Drafts::judge(int proposed, int accepted) {
    if (proposed == 0) return;
    length_ = accepted == proposed ? std::min(2 * length_, settings_.n_max) : std::max(2, accepted + 1);
    acceptance_ += 0.25 * (static_cast<double>(accepted) / proposed - acceptance_);
    if (acceptance_ < settings_.min_acceptance) {
        pause_ = next_pause_;
        next_pause_ = std::min(2 * next_pause_, 1024);
        acceptance_ = 1;  // the next trial is judged on its own
    } else if (acceptance_ > 0.7) {
        next_pause_ = 16;
    }
}

void Drafts::forget() {
    places_.clear();
    indexed_ = 0;
}

}  // namespace headrace::llm
