#include <mlx/backend/cpu/encoder.h>

#include <algorithm>
#include <exception>
#include <future>
#include <iterator>

#include "backends/mlx/graph/tape.h"

namespace headrace::mlx {

namespace {

/// What is allocated before the kernels that fill it have run, so that a long graph need not be in memory
/// at once.
constexpr std::size_t kBytesAhead = std::size_t{1} << 18;

}  // namespace

/// One run of a tape on the CPU, in the thread of MLX's stream.
///
/// MLX's own evaluation hands each kernel from the caller's thread to the stream's, which for small ones
/// costs more than the kernel: the two wake each other and wait for the queue's lock in turn. Here the
/// stream's thread starts the primitives itself, and the kernels follow in its own queue.
class Tape::Run {
public:
    Run(const Tape& tape, mx::Stream stream)
        : tape_(tape),
          stream_(stream),
          encoder_(mx::cpu::get_command_encoder(stream)),
          slots_(tape.given()) {}

    std::vector<array> outputs() {
        const auto done = done_->get_future();
        mx::scheduler::enqueue(stream_, [this] { advance(); });
        done.wait();
        if (error_) std::rethrow_exception(error_);
        mx::scheduler::check_error(stream_);
        std::vector<array> outputs;
        outputs.reserve(tape_.outputs_.size());
        for (const int slot : tape_.outputs_) {
            outputs.push_back(*slots_[slot]);
            outputs.back().set_status(array::Status::available);
        }
        return outputs;
    }

private:
    /// Starts steps until enough memory is theirs, and goes on behind them.
    void advance() {
        in_use_.clear();
        try {
            for (std::size_t bytes = 0; next_ < tape_.steps_.size() && bytes < kBytesAhead; ++next_)
                bytes += start(tape_.steps_[next_]);
            std::ranges::move(encoder_.temporaries(), std::back_inserter(in_use_));
            encoder_.temporaries().clear();
        } catch (...) {
            error_ = std::current_exception();
        }
        if (!error_ && next_ < tape_.steps_.size())
            mx::scheduler::enqueue(stream_, [this] { advance(); });
        else  // behind kernels that were started before an error, too: they use the run's memory
            mx::scheduler::enqueue(stream_, [this, done = done_] {
                in_use_.clear();
                done->set_value();
            });
    }

    /// Returns the bytes of the step's results.
    std::size_t start(const Step& step) {
        inputs_.clear();
        results_.clear();
        // A primitive may take over the memory of an input that nobody else holds.
        for (std::size_t k = 0; k < step.inputs.size(); ++k) {
            std::optional<array>& slot = slots_[step.inputs[k]];
            inputs_.push_back(step.is_last_use[k] ? std::move(*slot) : *slot);
            if (step.is_last_use[k]) slot.reset();
        }
        // Some of MLX's kernels ask their result for the primitive's stream.
        for (std::size_t k = 0; k < step.outputs.size(); ++k)
            results_.emplace_back(step.shapes[k], step.dtypes[k], step.primitive, std::vector<array>{});
        step.primitive->eval_cpu(inputs_, results_);
        std::ranges::move(inputs_, std::back_inserter(in_use_));
        std::size_t bytes = 0;
        for (std::size_t k = 0; k < results_.size(); ++k) {
            bytes += results_[k].nbytes();
            slots_[step.outputs[k]] = std::move(results_[k]);
        }
        return bytes;
    }

    const Tape& tape_;
    mx::Stream stream_;
    mx::cpu::CommandEncoder& encoder_;
    std::vector<std::optional<array>> slots_;
    std::vector<array> in_use_;            ///< by kernels that were started
    std::vector<array> inputs_, results_;  ///< of the step at hand; kept when its primitive throws
    std::size_t next_ = 0;
    std::exception_ptr error_;
    /// Shared with the task that keeps it, which may still be at it when the caller goes on.
    std::shared_ptr<std::promise<void>> done_ = std::make_shared<std::promise<void>>();
};

std::vector<array> Tape::run(mx::Stream stream) const { return Run(*this, stream).outputs(); }

bool Tape::runs_on_cpu() const {
    return std::ranges::all_of(steps_,
                               [](const Step& step) { return step.primitive->device() == mx::Device::cpu; });
}

}  // namespace headrace::mlx
