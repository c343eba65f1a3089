#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/held.h"
#include "headrace/headrace.h"
#include "ir/graph.h"

namespace headrace {

/// Runs a body once.
using RunBody = std::function<Status(std::span<const InputView>, const Session::MakeOutputs&)>;

/// One run of a node that is a loop: what it carries from one iteration to the next, and what it collects.
class LoopRun {
public:
    /// operands: the node's. Views must live as long as this.
    /// extent_of: a result's as the node declares it, -1 where only the body tells; asked where it never
    /// runs.
    LoopRun(const Node& node, std::span<const ConstView> operands, const BufferPool& pool, bool reuse,
            std::function<std::int64_t(const Dim&)> extent_of);

    /// Errors: the body's; another iteration where `may_go_on` says no.
    Status run(const RunBody& body, const std::function<bool()>& may_go_on);
    /// The node's, in order.
    Result<std::vector<Held>> take_results();

private:
    /// Equal tensors one behind the other.
    struct Collected {
        Held all;
        std::int64_t room = 0;  ///< of so many
    };

    std::vector<OutputView> make(const std::vector<std::vector<std::int64_t>>& shapes);
    OutputView room_for(Collected& collected, DType dtype, const std::vector<std::int64_t>& shape);
    std::vector<InputView> inputs() const;

    const Graph& body_;
    std::span<const ConstView> operands_;  ///< what is carried at first, and the other values
    const BufferPool& pool_;
    bool reuse_;
    std::size_t carried_count_;
    Shape result_extents_;  ///< all results' as they are declared
    std::function<std::int64_t(const Dim&)> extent_of_;
    std::int64_t count_ = INT64_MAX;  ///< the most iterations that the node asks for
    bool goes_on_ = true;
    std::int64_t iteration_ = 0;
    std::vector<Held> carried_, next_;
    std::vector<Collected> collected_;
    alignas(16) std::byte condition_[16] = {};
};

}  // namespace headrace
