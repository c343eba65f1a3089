#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/executable.h"
#include "engine/held.h"
#include "ir/constant.h"
#include "run/instance.h"

namespace headrace {

/// The sessions of what an executable consists of.
struct StageSessions {
    std::vector<Session> stages;                    ///< one for each stage
    std::map<NodeId, std::vector<Session>> bodies;  ///< of nodes that have some
};

/// One run of the stages and of what lies between them: what each made, for as long as another reads it.
class StagedRun {
public:
    StagedRun(const Executable::Impl& executable, std::span<const InputView> inputs, const States& states,
              StageSessions& sessions, const RunOptions& options)
        : exe_(executable),
          graph_(executable.graph),
          inputs_(inputs),
          states_(states),
          sessions_(sessions),
          options_(options) {}

    Status run(const Session::MakeOutputs& make_outputs);
    std::int64_t iterations() const { return iterations_; }

private:
    Status see_to(NodeId id);
    Status count(const Node& node, std::span<const ConstView> operands);
    Status branch(NodeId id, std::span<const ConstView> operands);
    Status repeat(NodeId id, std::span<const ConstView> operands);
    std::int64_t known_extent(const Dim& d) const;
    Status keep_results(const Node& node, std::vector<Held> results);
    Status run_body(Session& body, std::span<const InputView> inputs, const Session::MakeOutputs& make);
    Result<std::vector<ConstView>> operands_of(const Node& node);
    Result<ConstView> view(ValueId id);
    std::vector<InputView> inputs_of(const Stage& stage);
    Status run_stage(const Stage& stage, Session& session);
    Status run_last(const Stage& stage, Session& session, const Session::MakeOutputs& make_outputs);
    std::vector<OutputView> output_memory(const Session::MakeOutputs& make_outputs);
    Status copy_outputs(std::span<const OutputView> outputs);

    const Executable::Impl& exe_;
    const Graph& graph_;
    std::span<const InputView> inputs_;
    const States& states_;
    StageSessions& sessions_;
    const RunOptions& options_;
    std::map<ValueId, Held> held_;
    std::map<std::string, std::int64_t> counts_;
    std::map<const Constant*, AlignedBytes> constants_;    ///< that views point into
    std::vector<std::vector<std::int64_t>> empty_shapes_;  ///< [count, 0] of each symbol
    std::deque<std::vector<std::int64_t>> sizes_;          ///< that views of constants and states point into
    std::int64_t iterations_ = 0;
};

}  // namespace headrace
