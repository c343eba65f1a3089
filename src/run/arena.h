#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "lower/lower.h"

struct ggml_backend;
struct ggml_backend_buffer_type;
struct ggml_backend_sched;
struct ggml_tensor;

namespace headrace {

/// Views have no work of their own: they are where their source is.
bool is_view(const ggml_tensor* t);

/// Offsets in memory of a device, which ggml gives out in buffers of at most `chunk` bytes. They have 64 bits
/// where addresses have 32, so that what does not fit is known.
class FreeList {
public:
    explicit FreeList(std::uint64_t chunk = SIZE_MAX) : chunk_(chunk) {}
    /// The smallest free piece that holds the bytes, or the end. At most a chunk.
    std::uint64_t take(std::uint64_t bytes);
    void give_back(std::uint64_t offset, std::uint64_t bytes);
    std::uint64_t end() const { return end_; }
    std::size_t pieces() const { return pieces_.size(); }

private:
    std::uint64_t chunk_, end_ = 0;
    std::map<std::uint64_t, std::uint64_t> pieces_;  // bytes by offset; neighbours in a chunk are one
};

/// Where the activations of a backend go.
struct Arena {
    struct Place {
        ggml_tensor* tensor;
        std::size_t offset;
    };
    ggml_backend* backend;  ///< null without a scheduler
    std::vector<Place> places;
    std::size_t chunk = SIZE_MAX, bytes = 0;  ///< no place crosses a multiple of the chunk
};

/// For graphs that ggml's allocator does not take: it ends the process when what was given back lies in more
/// than 256 pieces, which cannot be while less are alive at once, and its sums wrap around where addresses
/// have 32 bits. Nothing where it does take the graph. Only what has no memory yet gets a place. sched: with
/// all tensors assigned, whose copies between backends stay ggml's; null: everything is on the CPU. Errors:
/// those copies alone are too many; there are not as many addresses.
Result<std::vector<Arena>> arenas_beside_ggml(const LoweredGraph& lowered, ggml_backend_sched* sched);

}  // namespace headrace
