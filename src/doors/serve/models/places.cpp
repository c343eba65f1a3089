#include "doors/serve/models/places.h"

#include <fmt/format.h>

#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// With mutex_ held.
void Places::count_request(const std::string& client) {
    std::size_t& held = clients_[client];
    if (most_per_client_ > 0 && held >= most_per_client_) {
        ApiError error(
            429, "rate_limit_error",
            fmt::format("this key has {} requests at once, which is as many as it may have", held));
        error.retry_after = 1;
        throw error;
    }
    ++held;
}

std::unique_ptr<Places::Holder> Places::enter(const std::optional<std::string>& client, int wanted_slot) {
    const std::lock_guard lock(mutex_);
    if (client) count_request(*client);
    ++waiting_;
    std::unique_ptr<Holder> holder(new Holder(*this, client));
    holder->task_ = next_task_++;
    // One beyond the last counts round, as llama-server has it.
    if (wanted_slot > 0) wanted_slot %= static_cast<int>(states_.size());
    take_slot(*holder, wanted_slot);
    return holder;
}

/// With mutex_ held. The one that is wanted, if it is free, or else the first.
bool Places::take_slot(Holder& holder, int wanted) {
    if (holder.slot_ >= 0) return true;
    int found = -1;
    for (int i = static_cast<int>(states_.size()) - 1; i >= 0; --i)
        if (!states_[static_cast<std::size_t>(i)].is_processing && (found < 0 || found != wanted)) found = i;
    if (found < 0) return false;
    holder.slot_ = found;
    --waiting_;
    PlaceState& state = states_[static_cast<std::size_t>(found)];
    state.is_processing = true;
    state.task = holder.task_;
    state.generated_tokens = 0;
    state.has_new_line = false;
    state.parameters = holder.parameters_;
    state.streams = holder.streams_;
    state.client = holder.asker_;
    return true;
}

void Places::Holder::asks_for(const Parameters& parameters, bool streams, const std::string& client) {
    const std::lock_guard lock(places_.mutex_);
    parameters_ = parameters;
    streams_ = streams;
    asker_ = client;
    if (slot_ < 0) return;
    PlaceState& state = places_.states_[static_cast<std::size_t>(slot_)];
    state.parameters = parameters;
    state.streams = streams;
    state.client = client;
}

Places::Holder::~Holder() {
    const std::lock_guard lock(places_.mutex_);
    if (slot_ >= 0)
        places_.states_[static_cast<std::size_t>(slot_)].is_processing = false;
    else
        --places_.waiting_;
    if (!client_) return;
    const auto found = places_.clients_.find(*client_);
    if (--found->second == 0) places_.clients_.erase(found);
}

int Places::Holder::slot() {
    const std::lock_guard lock(places_.mutex_);
    places_.take_slot(*this, -1);
    return slot_;
}

void Places::Holder::generated(std::string_view text, std::int64_t tokens) {
    const std::lock_guard lock(places_.mutex_);
    if (!places_.take_slot(*this, -1)) return;
    PlaceState& state = places_.states_[static_cast<std::size_t>(slot_)];
    state.generated_tokens = tokens;
    state.has_new_line = state.has_new_line || text.find('\n') != std::string_view::npos;
}

void Places::Holder::ends_with(const Reply& reply) {
    const std::lock_guard lock(places_.mutex_);
    if (!places_.take_slot(*this, -1)) return;
    PlaceState& state = places_.states_[static_cast<std::size_t>(slot_)];
    state.tokens = reply.prompt;
    state.tokens.insert(state.tokens.end(), reply.tokens.begin(), reply.tokens.end());
    state.read_tokens = reply.prompt_tokens - reply.cached_tokens;
    state.cached_tokens = reply.cached_tokens;
    state.generated_tokens = reply.generated_tokens;
}

std::vector<PlaceState> Places::states() const {
    const std::lock_guard lock(mutex_);
    return states_;
}

std::size_t Places::waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
}

void Places::set_tokens(int slot, std::vector<std::int32_t> tokens, const std::string& client) {
    const std::lock_guard lock(mutex_);
    PlaceState& state = states_[static_cast<std::size_t>(slot)];
    state.tokens = std::move(tokens);
    state.client = client;
}

}  // namespace headrace::serve
