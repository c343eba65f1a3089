#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/executable.h"
#include "run/instance.h"

namespace headrace {

/// One run of the stages: what each made, for as long as another reads it.
class StagedRun {
public:
    StagedRun(const Executable::Impl& executable, std::span<const InputView> inputs,
              const StateBuffers& states, bool reuse_buffers)
        : exe_(executable),
          graph_(executable.graph),
          inputs_(inputs),
          states_(states),
          reuse_(reuse_buffers) {}

    /// `sessions`: one for each stage.
    Status run(std::span<Session> sessions, const Session::MakeOutputs& make_outputs,
               const RunOptions& options);

private:
    struct Held {
        std::vector<std::int64_t> shape;
        PooledBuffer memory;
        void* elsewhere = nullptr;  ///< the caller's memory of an output
        const void* data() const { return elsewhere ? elsewhere : memory.data(); }
    };

    Status count(const Stage& stage);
    Result<ConstView> view(ValueId id) const;
    std::vector<InputView> inputs_of(const Stage& stage);
    Status run_stage(const Stage& stage, Session& session, const RunOptions& options);
    Status run_last(const Stage& stage, Session& session, const Session::MakeOutputs& make_outputs,
                    const RunOptions& options);
    Status copy_outputs(std::span<const OutputView> outputs) const;
    void release_after(std::size_t stage);

    const Executable::Impl& exe_;
    const Graph& graph_;
    std::span<const InputView> inputs_;
    const StateBuffers& states_;
    bool reuse_;
    std::map<ValueId, Held> held_;
    std::map<std::string, std::int64_t> counts_;
    std::vector<std::vector<std::int64_t>> empty_shapes_;  ///< [count, 0] of each symbol
};

}  // namespace headrace
