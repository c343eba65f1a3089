#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/buffer_pool.h"
#include "headrace/headrace.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "run/device_constants.h"
#include "run/devices.h"
#include "run/tensor_memory.h"

namespace headrace {

/// A session's state tensors, shared by its instances and perhaps with other sessions.
using States = std::vector<std::shared_ptr<TensorMemory>>;

/// A plan made runnable: the ggml graph with its memory. Belongs to one session.
class Instance {
public:
    virtual ~Instance() = default;
    /// Caller memory in graph order; sizes were checked. threads >= 1.
    virtual Status run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads,
                       const RunOptions& options) = 0;
    /// Memory that the instance keeps between runs, apart from the plan, states and shared constants.
    virtual std::size_t own_bytes() const;
    /// Makes it that of another plan of the same executable, which differs in some nodes' extents. False: it
    /// cannot be, and is of no further use. Its own plan may have been taken.
    virtual Result<bool> adapt(std::shared_ptr<const Plan> /*plan*/, const std::vector<bool>& /*changed*/) {
        return false;
    }
    std::shared_ptr<const Plan> take_plan() { return std::move(plan_); }
    /// Its device is gone: every further run fails.
    virtual bool is_lost() const { return false; }

    const Plan& plan() const { return *plan_; }
    const RunStats& stats() const { return stats_; }

protected:
    Instance(std::shared_ptr<const Plan> plan, LoweredGraph lowered)
        : plan_(std::move(plan)), lowered_(std::move(lowered)) {}
    /// Points states on the host at the session's memory and CPU constants at their bytes.
    void place_leaves(const States& states);
    /// Before and after a run: what it reads of states is where it reads it, and what it wrote is the newest.
    Status bring_states(const Device* device);
    void note_written_states(const Device* device);
    bool is_on_device(std::size_t state) const {
        return state < plan_->device_states.size() && plan_->device_states[state];
    }
    void note_copy(std::size_t bytes) {
        ++stats_.copies;
        stats_.copied_bytes += bytes;
    }
    Status take_failures();
    /// "the largest is that of NODE, of N bytes": for errors about memory for results.
    std::string largest_result() const;
    static Error run_was_stopped() { return {Code::cancelled, "the run was stopped by its caller"}; }
    static Status check_may_run(const RunOptions& options) {
        return options.should_stop && options.should_stop() ? Status(run_was_stopped()) : success();
    }

    std::shared_ptr<const Plan> plan_;
    LoweredGraph lowered_;
    States states_;
    std::vector<bool> is_written_;  ///< of states: by this plan
    RunStats stats_;
};

/// On the CPU alone: ggml's compute call directly, inputs and outputs bound to caller memory, activations in
/// a buffer that goes back to the pool after each run.
Result<std::unique_ptr<Instance>> make_cpu_instance(std::shared_ptr<const Plan> plan, const States& states,
                                                    const BufferPool& buffers);

/// On a device with the CPU beside it, through ggml's scheduler.
Result<std::unique_ptr<Instance>> make_scheduled_instance(std::shared_ptr<const Plan> plan,
                                                          const States& states, const Device& device,
                                                          DeviceConstants& constants);

}  // namespace headrace
