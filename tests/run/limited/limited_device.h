#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ggml.h"

namespace headrace::testing {

/// What a LimitedDevice refuses, and how it fails. May be changed while nothing runs.
struct Limits {
    std::size_t tensor_bytes = SIZE_MAX;  ///< larger tensors are refused: leaves, operands, results, views
    std::size_t buffer_bytes = SIZE_MAX;  ///< what it says of its buffers; larger ones it does not allocate
    std::size_t memory_bytes = SIZE_MAX;  ///< of all buffers together
    std::set<ggml_op> refused_ops;
    std::set<ggml_type> refused_types;
    ggml_status compute_status = GGML_STATUS_SUCCESS;
    bool throws_in_compute = false;
    bool throws_in_upload = false;
    std::set<ggml_op> wrong_ops;   ///< their results of f32 are 1 too large
    bool rounds_products = false;  ///< of f32 with these rows, to some 3 digits; not to be changed
    std::int64_t rounded_from = 9, rounded_to = INT64_MAX;  ///< rows, both included
};

/// A ggml device of this process that behaves as a discrete GPU: it has a memory of its own, whose addresses
/// nobody but the device can read or write. It computes with ggml's CPU kernels. Registered with ggml for
/// good; a free one is used again.
class LimitedDevice {
public:
    explicit LimitedDevice(Limits limits = {});
    ~LimitedDevice();
    LimitedDevice(const LimitedDevice&) = delete;
    LimitedDevice& operator=(const LimitedDevice&) = delete;

    std::string name() const;
    Limits& limits();
    /// Tensors and nodes that it was given although it had refused them, or would have.
    std::vector<std::string> violations() const;
    std::size_t bytes_in_use() const;
    /// Since the last call of reset_counts().
    struct Counts {
        std::int64_t graphs = 0;  ///< of the scheduler's cuts, that were computed here
        std::int64_t nodes = 0;   ///< without views
        std::int64_t failed_allocations = 0;
        std::int64_t buffers = 0;
        std::size_t uploaded_bytes = 0, read_bytes = 0;
        std::size_t largest_tensor = 0;  ///< bytes of what got memory here
    };
    Counts counts() const;
    void reset_counts();

    struct State;

private:
    State* state_;
};

}  // namespace headrace::testing
