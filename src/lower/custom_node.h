#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "ir/graph.h"
#include "plan/packed_constants.h"

struct ggml_tensor;

namespace headrace {

/// A reference or packed kernel as ggml sees it: the userdata of a GGML_OP_CUSTOM node. Lives as long as the
/// lowered graph. Operands are read through the node's `src`, since the scheduler may replace those by
/// copies.
class CustomNode {
public:
    using Run = void (*)(const TensorArgs&, const void* attrs);

    /// one_thread: the first does all of it.
    CustomNode(Run run, AttrBox attrs, bool one_thread = false)
        : run_(run), attrs_(std::move(attrs)), one_thread_(one_thread) {}

    /// Operand that comes from ggml source `source`; -1 leaves an optional operand out.
    void add_input(const TensorType& type, int source);
    /// Operand that the kernel reads in packed form.
    void add_packed(const TensorType& type, std::shared_ptr<const std::byte> packed);
    /// Output at a byte offset of the node's own data.
    void add_output(const TensorType& type, std::size_t offset);

    /// What ggml calls, once per thread. Never throws: a failed allocation is kept for failed().
    static void compute(ggml_tensor* dst, int ith, int nth, void* self) noexcept;
    /// True when a run could not allocate its scratch since the last call.
    bool take_failure() { return failed_.exchange(false); }

private:
    struct Slot {
        DType dtype;
        BlockFormat format = BlockFormat::plain;
        std::vector<std::int64_t> shape;
        int source = -1;
        std::size_t offset = 0;
        std::shared_ptr<const std::byte> packed;
    };
    void execute(ggml_tensor* dst, Share share) const;

    Run run_;
    AttrBox attrs_;
    bool one_thread_;
    std::vector<Slot> inputs_, outputs_;
    std::atomic<bool> failed_ = false;
};

}  // namespace headrace
