#pragma once
#include <memory>
#include <vector>

#include "cli/graph_options.h"

namespace headrace::cli {

/// A session with its operands ready, so that a run is one call.
class Prepared {
public:
    /// Extents that were made up are told on standard error.
    static Result<std::unique_ptr<Prepared>> make(const Executable& executable, const GraphOptions& options);
    static Result<std::unique_ptr<Prepared>> make(const GraphOptions& options);

    void run(RunOptions options = {});
    /// Plans and allocates; runs only where that decides what there is to plan.
    void plan();

    const Executable& executable() const { return executable_; }
    const Session& session() const { return session_; }
    const std::vector<Array>& inputs() const { return inputs_; }
    const std::vector<InputView>& input_views() const { return views_; }
    /// The outputs of the last run, in the graph's order.
    std::vector<Array>& outputs() { return outputs_; }

private:
    Prepared(const Executable& executable, std::int64_t most_iterations)
        : executable_(executable), session_(executable), most_iterations_(most_iterations) {}
    std::vector<OutputView> memory_for(const std::vector<std::vector<std::int64_t>>& shapes);

    Executable executable_;
    Session session_;
    std::vector<Array> inputs_, outputs_;
    std::vector<InputView> views_;
    std::int64_t most_iterations_;
};

}  // namespace headrace::cli
