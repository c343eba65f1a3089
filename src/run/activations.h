#pragma once
#include <cstddef>
#include <vector>

#include "base/result.h"
#include "lower/lower.h"
#include "run/arena.h"

namespace headrace {

/// Where a graph's activations on the CPU lie in memory that comes and goes. ggml's allocator decides on it,
/// or arena.h where it cannot.
class Activations {
public:
    /// All that has no memory. Errors: out_of_memory.
    Status place(const LoweredGraph& lowered);
    /// The same after relower(): where all have stayed, as far as they still have the room. Where they grow a
    /// little, they get more than they need.
    Status place_again(const LoweredGraph& lowered);
    void move_to(std::byte* memory) const;

    std::size_t bytes() const { return bytes_; }
    std::size_t own_bytes() const { return placed_.capacity() * sizeof(Placed); }

private:
    /// A tensor with memory of its own, or a view of one.
    struct Placed {
        ggml_tensor* tensor;
        std::size_t offset;                   ///< of what it is a view of, or its own
        std::size_t room;                     ///< bytes from there on that it may have; of a view: none
        const ggml_tensor* source = nullptr;  ///< whose memory it shares, since they have one layout
    };

    Status place(const LoweredGraph& lowered, bool with_room);
    Status place_by_ggml(const LoweredGraph& lowered, bool with_room);
    void place_in(const LoweredGraph& lowered, const Arena& arena);
    void note_sharing();
    bool fit() const;
    bool grow_a_little() const;

    std::vector<Placed> placed_;
    std::size_t bytes_ = 0;
};

}  // namespace headrace
