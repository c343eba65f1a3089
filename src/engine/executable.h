#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_lru.h"
#include "engine/stage.h"
#include "headrace/headrace.h"
#include "ir/graph.h"
#include "ir/specialize.h"
#include "plan/plan.h"
#include "run/device_constants.h"
#include "run/devices.h"

namespace headrace {

using ShapeKey = std::vector<std::vector<std::int64_t>>;  ///< concrete input shapes, in graph order

/// What sessions and threads share. Everything but the caches is fixed after compile; those lock.
struct Executable::Impl {
    explicit Impl(const CompileOptions& chosen)
        : options(chosen),
          buffers(chosen.buffers ? chosen.buffers : std::make_shared<BufferPool>()),
          plans_(chosen.cache_bytes) {}

    Graph graph;  ///< after all passes
    CompileOptions options;
    Device device;
    std::uint64_t device_room = UINT64_MAX;  ///< bytes of constants there
    CompileStats stats;
    PackedConstants packed;
    DeviceConstants device_constants;
    std::shared_ptr<BufferPool> buffers;
    std::shared_ptr<const Tuning> tuning;  ///< measured choices for the CPU; null: none
    /// Where a run counts extents or has bodies: the graph's stages, each compiled. Else none.
    struct CompiledStage {
        Stage stage;  ///< its graph is the executable's
        std::shared_ptr<Impl> executable;
    };
    std::vector<CompiledStage> stages;
    std::map<NodeId, std::vector<std::shared_ptr<Impl>>> bodies;  ///< of the graph's nodes that have some

    /// Threads that a run asks for, at this moment.
    int threads() const;
    /// The plan for these shapes, made on first use. Plans that sessions still run are never lost: they hold
    /// them.
    Result<std::shared_ptr<const Plan>> plan_for(const ShapeKey& shapes);
    /// The same plan as the session's own, out of one that it gives up, and which nodes that has changed.
    /// Nothing else keeps it.
    struct ChangedPlan {
        std::shared_ptr<const Plan> plan;
        std::vector<bool> nodes;
    };
    Result<ChangedPlan> changed_plan(std::shared_ptr<const Plan> from, const ShapeKey& shapes);

private:
    PlanOptions plan_options() const;
    Result<std::vector<bool>> change(Plan& plan, SymbolBindings bindings);

    std::mutex mutex_;
    std::optional<SymbolUses> uses_;
    std::shared_ptr<const Plan> latest_;  ///< the last one made, of which the next one takes what is the same
    ByteLru<ShapeKey, std::shared_ptr<const Plan>> plans_;
    friend class Executable;
};

/// tuning: null for what is stored where options.tuning says.
Result<std::shared_ptr<Executable::Impl>> compile_graph(Graph graph, const CompileOptions& options,
                                                        std::shared_ptr<const Tuning> tuning = nullptr);

/// Where options.tuning says that measured choices are; empty: nowhere.
Result<std::string> tuning_folder(const CompileOptions& options);

TensorInfo describe(const std::string& name, const TensorType& type);

}  // namespace headrace
