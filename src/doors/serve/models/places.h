#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/language_model.h"

namespace headrace::serve {

/// What a place of the server's table of slots is doing.
struct PlaceState {
    bool is_processing = false;
    std::int64_t task = -1;                           ///< number of the request, the last one when idle
    std::vector<std::int32_t> tokens;                 ///< prompt and answer of the last request that ended
    std::int64_t read_tokens = 0, cached_tokens = 0;  ///< of that one's prompt
    std::int64_t generated_tokens = 0;
    bool has_new_line = false;  ///< in the answer so far
    Parameters parameters;      ///< of its request, the last one when idle
    bool streams = false;
    std::string client;  ///< whose key that request came with
};

/// The places of llama-server's `/slots`, and how many requests each key has at once. The engine has no
/// slots: these are numbers for those that run. Thread-safe.
class Places {
public:
    /// most_per_client: requests of one key at once; 0: no limit.
    Places(std::size_t count, std::size_t most_per_client)
        : states_(count), most_per_client_(most_per_client) {}

    /// A request from its arrival to its end.
    class Holder {
    public:
        ~Holder();
        Holder(const Holder&) = delete;
        Holder& operator=(const Holder&) = delete;
        /// What the request has, and whose key it came with; shown with its slot.
        void asks_for(const Parameters& parameters, bool streams, const std::string& client);
        /// The slot's number, -1 while it waits for one.
        int slot();
        /// More of the answer: its text, and its tokens so far.
        void generated(std::string_view text, std::int64_t tokens);
        void ends_with(const Reply& reply);

    private:
        friend class Places;
        Holder(Places& places, std::optional<std::string> client)
            : places_(places), client_(std::move(client)) {}

        Places& places_;
        const std::optional<std::string> client_;  // that it counts for
        std::int64_t task_ = 0;
        int slot_ = -1;
        Parameters parameters_;
        bool streams_ = false;
        std::string asker_;
    };
    /// client: nothing for another answer to a request that has a place already, which counts once. Throws
    /// ApiError 429 when the key has as many as it may have.
    std::unique_ptr<Holder> enter(const std::optional<std::string>& client, int wanted_slot);

    std::vector<PlaceState> states() const;
    std::size_t count() const { return states_.size(); }
    std::size_t waiting() const;
    /// client: whose they are from now on.
    void set_tokens(int slot, std::vector<std::int32_t> tokens, const std::string& client);

private:
    void count_request(const std::string& client);
    bool take_slot(Holder& holder, int wanted);

    mutable std::mutex mutex_;
    std::vector<PlaceState> states_;
    std::map<std::string, std::size_t> clients_;
    const std::size_t most_per_client_;
    std::int64_t next_task_ = 0;
    std::size_t waiting_ = 0;
};

}  // namespace headrace::serve
