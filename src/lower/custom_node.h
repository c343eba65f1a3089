#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/run_stop.h"
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

    /// one_thread: the first does all of it. pieces: between which a run can be stopped.
    CustomNode(Run run, AttrBox attrs, bool one_thread = false, std::string title = {}, int pieces = 1)
        : run_(run),
          attrs_(std::move(attrs)),
          one_thread_(one_thread),
          pieces_(pieces),
          title_(std::move(title)) {}

    /// The node's title, for messages.
    const std::string& title() const { return title_; }

    /// Sets the stop of its graph's runs; that must live as long.
    void set_stop(RunStop* stop) { stop_ = stop; }
    /// Operand that comes from ggml source `source`; -1 leaves an optional operand out.
    void add_input(const TensorType& type, int source);
    /// Operand that the kernel reads in packed form.
    void add_packed(const TensorType& type, std::shared_ptr<const std::byte> packed);
    /// Output at a byte offset of the node's own data.
    void add_output(const TensorType& type, std::size_t offset);

    /// What ggml calls, once per thread. Never throws: what a kernel throws is kept for take_failure().
    static void compute(ggml_tensor* dst, int ith, int nth, void* self) noexcept;
    /// What a kernel threw since the last call; null: nothing. Not during a run.
    std::exception_ptr take_failure() {
        return failed_.exchange(false) ? std::exchange(thrown_, nullptr) : nullptr;
    }

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
    void execute_in_pieces(ggml_tensor* dst, Share share) const;
    template <class Work>
    void keep_failure(const Work& work) noexcept;
    void ask_while_others_compute(Share share) noexcept;

    Run run_;
    AttrBox attrs_;
    bool one_thread_;
    int pieces_;
    RunStop* stop_ = nullptr;
    std::atomic<int> ended_ = 0;  ///< of the node that runs: threads other than the first
    std::string title_;
    std::vector<Slot> inputs_, outputs_;
    std::atomic<bool> failed_ = false;
    std::exception_ptr thrown_;  ///< of the thread that failed first
};

}  // namespace headrace
