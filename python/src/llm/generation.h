#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "headrace/language_model.h"
#include "held_model.h"

namespace headrace::python {

namespace nb = nanobind;

/// headrace.language_model.Generation: an answer that is being written, as an iterator over its pieces.
class Stream {
public:
    /// `start` may be called in another thread, and owns all that it reads.
    Stream(SharedModel model, std::function<Generation()> start);

    /// nb::stop_iteration at the end.
    std::string next();
    /// Waits for the end.
    Reply reply();
    /// The same for an answer whose pieces nobody reads.
    Reply read_to_end();
    void cancel();
    void close();
    std::int64_t generated_tokens() const { return generated_tokens_; }

private:
    struct Reading {
        Generation generation;
        std::mutex mutex = {};  ///< of who takes pieces

        explicit Reading(Generation started) : generation(std::move(started)) {}
        Reading(Reading&& other) noexcept : generation(std::move(other.generation)) {}
        /// False when there was none in time; an empty piece at the end.
        bool next(Patience patience, std::optional<Generation::Piece>& piece);
    };
    template <class Call>
    auto or_cancel(Call call);

    Held<Reading> reading_;
    bool is_over_ = false;  ///< nobody reads on
    std::int64_t generated_tokens_ = 0;
};

void bind_generation(nb::module_& m);

}  // namespace headrace::python
